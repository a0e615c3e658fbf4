// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import LinuxIO

/// Lines for standard output, gathered and written with few system calls.
///
/// A reader that went away (a closed pipe) ends the program quietly, as with any filter.
struct StandardOutput: ~Copyable {
    var writer = JSONWriter()

    /// Gathered before a write.
    private static let capacity = 1 << 16

    /// Ends the line that ``writer`` holds; written when enough came together.
    mutating func endLine() throws(CommandError) {
        writer.newline()
        if writer.bytes.count >= Self.capacity { try flush() }
    }

    mutating func flush() throws(CommandError) {
        defer { writer.reset() }
        try Self.write(writer.bytes)
    }

    static func print(_ text: String) throws(CommandError) {
        try write(Array(text.utf8))
    }

    static func write(_ bytes: [UInt8]) throws(CommandError) {
        var offset = 0
        while offset < bytes.count {
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.write(STDOUT_FILENO, $0.baseAddress?.advanced(by: offset), $0.count - offset)
            }
            if count >= 0 {
                offset += count
            } else if errno == EPIPE {
                exit(ExitStatus.success.rawValue)
            } else if errno != EINTR {
                throw CommandError(.inputOutput, SystemError("write", "standard output").description)
            }
        }
    }
}
