// SPDX-License-Identifier: Apache-2.0

import Glibc
import LinuxIO

/// Lines of standard input.
struct StandardInput: ~Copyable {
    private let file = FileDescriptor(owning: dup(STDIN_FILENO))
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    private var unread = 0..<0
    private var isAtEnd = false

    /// Longest line; a longer one is an error, so that an endless line cannot fill the memory. A sequence of HCI packets
    /// has some 500 digits a packet.
    private static let maximumLine = 1 << 20

    /// Whether another line can be had without waiting.
    var hasMore: Bool { !unread.isEmpty }

    mutating func nextLine() throws(CommandError) -> String? {
        var line: [UInt8] = []
        while true {
            if let newline = buffer[unread].firstIndex(of: UInt8(ascii: "\n")) {
                line += buffer[unread.lowerBound..<newline]
                unread = newline + 1..<unread.upperBound
                return String(decoding: line, as: UTF8.self)
            }
            line += buffer[unread]
            unread = 0..<0
            guard line.count <= Self.maximumLine else {
                throw CommandError(.noInput, "standard input: a line is longer than \(Self.maximumLine) characters")
            }
            guard !isAtEnd else { return line.isEmpty ? nil : String(decoding: line, as: UTF8.self) }
            do {
                let count = try file.read(into: &buffer) ?? 0
                isAtEnd = count == 0
                unread = 0..<count
            } catch {
                throw CommandError(.noInput, "standard input: \(error)")
            }
        }
    }
}
