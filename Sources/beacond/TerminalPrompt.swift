// SPDX-License-Identifier: Apache-2.0

import Glibc
import LinuxIO

/// Asks the person at the terminal.
enum TerminalPrompt {
    /// Whether there is somebody to ask.
    static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// The line that was typed, without blanks around it.
    ///
    /// - Throws: when it was ended with Ctrl-C or Ctrl-D instead. A plain read would not see Ctrl-C, which the loops of
    ///   a command take as a thing to read.
    static func ask(_ question: String) throws(CommandError) -> String {
        let loop = try CommandLoop(duration: nil)
        StandardError.print(question)
        var line: [UInt8] = []
        var isOver = false
        do {
            _ = try loop.loop.add(STDIN_FILENO) {
                // A terminal hands out whole lines.
                var buffer = [UInt8](repeating: 0, count: 4096)
                let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(STDIN_FILENO, $0.baseAddress, $0.count) }
                line += buffer[..<max(0, count)]
                isOver = count <= 0
                loop.stop()
            }
        } catch { throw CommandError(.failure, error.description) }
        try loop.run()
        guard !isOver, !loop.wasInterrupted else {
            StandardError.print("\n")
            throw CommandError(.failure, "ended before it was done")
        }
        let text = String(decoding: line, as: UTF8.self)
        return String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }
}
