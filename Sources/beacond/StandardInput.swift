// SPDX-License-Identifier: Apache-2.0

import Glibc
import LinuxIO

/// Lines of standard input.
struct StandardInput: ~Copyable {
    private var reader = LineReader(FileDescriptor(owning: dup(STDIN_FILENO)))

    /// Calls `body` with each line, without its newline, and whether another one can be had without waiting.
    mutating func forEachLine(
        _ body: (_ line: Span<UInt8>, _ hasMore: Bool) throws(CommandError) -> Void
    ) throws(CommandError) {
        var failure: CommandError?
        var found = true
        while found, failure == nil {
            do {
                found = try reader.next { line, hasMore in
                    do throws(CommandError) { try body(line, hasMore) } catch { failure = error }
                }
            } catch {
                throw CommandError(.noInput, "standard input: \(error)")
            }
        }
        if let failure { throw failure }
    }
}
