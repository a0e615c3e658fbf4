// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LinuxIO
import Testing

/// A terminal that a test looks at.
final class PseudoTerminal {
    /// For the program's standard output.
    let program: FileHandle
    private let test: FileDescriptor
    private var octets: [UInt8] = []

    init(columns: UInt16, rows: UInt16) throws {
        var test: Int32 = 0
        var program: Int32 = 0
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        try #require(unsafe openpty(&test, &program, nil, nil, &size) == 0)
        _ = fcntl(test, F_SETFL, O_NONBLOCK)
        self.test = FileDescriptor(owning: test)
        self.program = FileHandle(fileDescriptor: program, closeOnDealloc: true)
    }

    func type(_ text: String) { _ = try? test.write(Array(text.utf8)) }

    /// Everything that was written to it.
    var text: String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while let count = (try? test.read(into: &buffer)) ?? nil, count > 0 { octets += buffer[..<count] }
        return String(decoding: octets, as: UTF8.self)
    }
}
