// SPDX-License-Identifier: Apache-2.0

extension AdapterScanner {
    /// Counts since the beginning.
    public struct Counts: Equatable, Sendable {
        /// Another host turned our scan off or set other parameters.
        public var stolenScans: UInt64 = 0
        /// Scans that were set again because of silence.
        public var restarts: UInt64 = 0
        public var resets: UInt64 = 0
        /// Times that the machine was suspended.
        public var suspensions: UInt64 = 0
        /// Packets that the kernel dropped because they were not read in time.
        public var droppedPackets: UInt64 = 0
        /// Octets on a stream that began no packet.
        public var unknownPackets: UInt64 = 0
        public init() {}
    }
}
