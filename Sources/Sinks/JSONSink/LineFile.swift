// SPDX-License-Identifier: Apache-2.0

import Glibc
import LinuxIO
import SinkKit

/// A file of lines that stays one, also when the disk is full in the middle of a line or the program was killed there.
struct LineFile: ~Copyable {
    /// Why lines could not be written, and how many of them the file has.
    struct Failure: Error {
        var cause: SystemError
        var wholeLines: Int
    }

    /// The path that stands for the standard output.
    static let standardOutput = "-"

    private let path: String
    private var descriptor: FileDescriptor?
    /// Whether a part of a line can be taken back; a device does not forget.
    private var isRegular = false
    /// Bytes at the end of the file that begin a line which was not written to its end.
    private var tornBytes = 0

    init(path: String) {
        self.path = path
    }

    /// Opens the file for appending, and makes it when it is not there.
    mutating func open() throws(SystemError) {
        if path == Self.standardOutput {
            let number = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
            guard number >= 0 else { throw SystemError("fcntl", "standard output") }
            isRegular = false
            descriptor = FileDescriptor(owning: number)
            return
        }
        // Without O_NONBLOCK a FIFO that nobody reads would hold the thread.
        let opened = try FileDescriptor.open(
            path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode: 0o640)
        let status = try Self.status(opened.number, path)
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFCHR else { throw SystemError("open", path, code: ENOTSUP) }
        isRegular = kind == S_IFREG
        if isRegular { try Self.endLastLine(opened, size: status.st_size, path) }
        tornBytes = 0
        descriptor = consume opened
    }

    mutating func close() {
        try? takeBackTornLine()
        descriptor = nil
    }

    /// Appends all lines, or takes back the one that the failure tore.
    mutating func append(_ lines: borrowing LineBuffer) throws(Failure) {
        var written = 0
        do throws(SystemError) {
            try takeBackTornLine()
            while written < lines.bytes.count {
                written += try write(lines.bytes, from: written)
            }
        } catch {
            if written > 0 { tornBytes = lines.tornBytes(in: written) }
            // Should this fail too, it is tried again before the next line; the reason to tell is the first one.
            try? takeBackTornLine()
            throw Failure(cause: error, wholeLines: lines.wholeLines(in: written))
        }
    }

    private func write(_ bytes: [UInt8], from offset: Int) throws(SystemError) -> Int {
        switch descriptor {
        case .some(let file):
            do throws(SystemError) {
                guard let count = try file.write(bytes, from: offset) else {
                    throw SystemError("write", "", code: EAGAIN)
                }
                guard count > 0 else { throw SystemError("write", "", code: EIO) }
                return count
            } catch {
                throw SystemError(error.call, path, code: error.code)
            }
        case .none: throw SystemError("write", path, code: EBADF)
        }
    }

    private mutating func takeBackTornLine() throws(SystemError) {
        guard tornBytes > 0, isRegular, let number = descriptor?.number else { return }
        let size = try Self.status(number, path).st_size
        guard retryingOnInterrupt({ ftruncate(number, max(0, size - off_t(tornBytes))) }) == 0 else {
            throw SystemError("ftruncate", path)
        }
        tornBytes = 0
    }

    /// A program that was killed may have left the beginning of a line. What is there is not touched, but what follows
    /// starts on a line of its own.
    private static func endLastLine(
        _ file: borrowing FileDescriptor, size: off_t, _ path: String
    ) throws(SystemError) {
        guard size > 0 else { return }
        var last: UInt8 = 0
        let count = retryingOnInterrupt { unsafe pread(file.number, &last, 1, size - 1) }
        guard count == 1 else { throw SystemError("pread", path) }
        guard last != UInt8(ascii: "\n") else { return }
        do throws(SystemError) {
            _ = try file.write([UInt8(ascii: "\n")])
        } catch {
            throw SystemError(error.call, path, code: error.code)
        }
    }

    private static func status(_ number: Int32, _ path: String) throws(SystemError) -> stat {
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw SystemError("fstat", path) }
        return status
    }
}
