// SPDX-License-Identifier: Apache-2.0

/// What the store did since it was opened; appended = committed + pending + dropped + held in
/// memory.
public struct StoreCounters: Equatable, Sendable {
    /// Transitions that were handed to the store.
    public var appended: UInt64 = 0
    /// Transitions that are in the database, or were until every sink had them.
    public var committed: UInt64 = 0
    /// Transitions that are in memory only because the disk cannot be written: sinks get them from there.
    public var inMemory: UInt64 = 0
    /// Transitions that wait for the next commit.
    public var pending: UInt64 = 0
    /// Transitions that found the queue full because the disk was too slow or full; a gap for the sinks.
    public var dropped: UInt64 = 0
    /// Sequence numbers that were deleted because the outbox was full, before every sink of this run had them; a gap
    /// for those sinks.
    public var expired: UInt64 = 0
    /// Records that failed their check when they were read, counted at each reading; a gap for the sinks.
    public var damaged: UInt64 = 0
    /// Transactions that the disk has.
    public var commits: UInt64 = 0
    /// Transactions that failed and were tried again.
    public var failedCommits: UInt64 = 0
    /// Octets of the committed records.
    public var bytes: UInt64 = 0
    /// Octets that went to the disk for them, in whole pages, with the write-ahead log and what it is copied to; 0 on a
    /// file system in memory.
    public var written: UInt64 = 0

    public init() {}
}
