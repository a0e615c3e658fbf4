// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// What the host has done for one sink since the program began, deliveries of all roles together.
public struct SinkHostCounters: Equatable, Sendable {
    /// What the outbox holds, for a durable sink.
    public struct Outbox: Equatable, Sendable {
        /// Transitions that this sink has not acknowledged.
        public var waiting: UInt64
        /// When the oldest of them happened; nil for none.
        public var oldest: WallTime?
        /// Transitions that are in memory only, because the disk cannot be written.
        public var inMemory: UInt64
        /// Transactions that the disk took, for all sinks.
        public var commits: UInt64
        /// Octets that went to the disk.
        public var written: UInt64

        public init(
            waiting: UInt64 = 0, oldest: WallTime? = nil, inMemory: UInt64 = 0, commits: UInt64 = 0, written: UInt64 = 0
        ) {
            self.waiting = waiting
            self.oldest = oldest
            self.inMemory = inMemory
            self.commits = commits
            self.written = written
        }
    }

    /// Waiting, in memory or in the outbox.
    public var queued: UInt64
    /// A newer value of the same thing took their place.
    public var conflated: UInt64
    /// Lost for want of room.
    public var dropped: UInt64
    public var outbox: Outbox?

    public init(queued: UInt64 = 0, conflated: UInt64 = 0, dropped: UInt64 = 0, outbox: Outbox? = nil) {
        self.queued = queued
        self.conflated = conflated
        self.dropped = dropped
        self.outbox = outbox
    }
}
