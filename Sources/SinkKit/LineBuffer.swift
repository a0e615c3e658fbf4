// SPDX-License-Identifier: Apache-2.0

/// The lines of one batch, to be written with one system call, and which of them are whole when only a part was.
///
/// It keeps its memory between batches.
public struct LineBuffer: Sendable {
    /// All lines, each with its newline.
    public private(set) var bytes: [UInt8] = []
    /// Where each line ends, behind its newline.
    private var ends: [Int] = []

    public init() {}

    public var count: Int { ends.count }

    /// Appends a line.
    ///
    /// - Parameter line: without the newline, and without one inside.
    public mutating func append(_ line: [UInt8]) {
        bytes.append(contentsOf: line)
        bytes.append(UInt8(ascii: "\n"))
        ends.append(bytes.count)
    }

    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
    }

    /// How many lines are whole when this many bytes were written.
    public func wholeLines(in byteCount: Int) -> Int {
        ends.firstIndex { $0 > byteCount } ?? ends.count
    }

    /// How many bytes of a line that is not whole were written, when this many bytes were.
    public func tornBytes(in byteCount: Int) -> Int {
        let whole = wholeLines(in: byteCount)
        return byteCount - (whole == 0 ? 0 : ends[whole - 1])
    }

    /// What is missing of a line that is not whole; empty when this many bytes end with a line.
    public func missing(in byteCount: Int) -> ArraySlice<UInt8> {
        tornBytes(in: byteCount) == 0 ? [] : bytes[byteCount..<ends[wholeLines(in: byteCount)]]
    }
}
