// SPDX-License-Identifier: Apache-2.0

/// To which stream the transitions of a range of positions belong.
///
/// The outbox counts its transitions by position, from 1 and for ever. A number of a stream, `seq`, is a position less
/// ``base``. A segment ends where the stream changes or the machine was started anew.
public struct StreamSegment: Equatable, Sendable {
    /// 32 hexadecimal digits, random.
    public var stream: String
    public var base: UInt64
    /// The kernel's id of the boot in which the transitions happened, 32 hexadecimal digits; empty when it is not known.
    public var boot: String

    public init(stream: String, base: UInt64, boot: String) {
        self.stream = stream
        self.base = base
        self.boot = boot
    }
}
