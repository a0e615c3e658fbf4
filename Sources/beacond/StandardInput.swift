// SPDX-License-Identifier: Apache-2.0

import Glibc
import LinuxIO

/// Lines of standard input.
struct StandardInput: ~Copyable {
    private let file = FileDescriptor(owning: dup(STDIN_FILENO))
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    /// What was read and not handed out yet.
    private var unread = 0..<0

    /// Longest line; a longer one is an error, so that an endless line cannot fill the memory. A sequence of HCI packets
    /// has some 500 digits a packet.
    private static let maximumLine = 1 << 20

    /// Calls `body` with each line, without its newline, and whether another one can be had without waiting.
    mutating func forEachLine(
        _ body: (_ line: Span<UInt8>, _ hasMore: Bool) throws(CommandError) -> Void
    ) throws(CommandError) {
        repeat {
            while let newline {
                let line = unread.lowerBound..<newline
                unread = newline + 1..<unread.upperBound
                try body(buffer.span.extracting(line), !unread.isEmpty)
            }
        } while try readMore()
        if !unread.isEmpty { try body(buffer.span.extracting(unread), false) }
    }

    /// Where the next line ends.
    private var newline: Int? {
        for index in unread where buffer[index] == UInt8(ascii: "\n") { return index }
        return nil
    }

    /// Reads behind what is unread, which it moves to the front; false at the end.
    private mutating func readMore() throws(CommandError) -> Bool {
        for (place, index) in unread.enumerated() { buffer[place] = buffer[index] }
        unread = 0..<unread.count
        guard unread.count <= Self.maximumLine else {
            throw CommandError(.noInput, "standard input: a line is longer than \(Self.maximumLine) characters")
        }
        if unread.count == buffer.count { buffer += [UInt8](repeating: 0, count: buffer.count) }
        do {
            let count = try file.read(into: &buffer, from: unread.upperBound) ?? 0
            unread = 0..<unread.upperBound + count
            return count > 0
        } catch {
            throw CommandError(.noInput, "standard input: \(error)")
        }
    }
}
