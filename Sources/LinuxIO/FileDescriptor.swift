// SPDX-License-Identifier: Apache-2.0

public import Glibc

/// An open file of the kernel that is closed when its owner lets it go.
public struct FileDescriptor: ~Copyable, Sendable {
    public let number: Int32

    /// Takes over a descriptor that nobody else closes.
    public init(owning number: Int32) {
        self.number = number
    }

    deinit {
        // close(2) must not be repeated on EINTR: on Linux the descriptor is gone by then.
        _ = Glibc.close(number)
    }

    /// Opens a path with `O_CLOEXEC`; the C function is `open`.
    public static func open(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(SystemError) -> FileDescriptor {
        let number = retryingOnInterrupt { unsafe Glibc.open(path, flags | O_CLOEXEC, mode) }
        guard number >= 0 else { throw SystemError("open", path) }
        return FileDescriptor(owning: number)
    }

    /// Reads into the part of `buffer` from `offset` on; how many octets came, 0 at the end, nil when it would block.
    /// The C function is `read`.
    public func read(into buffer: inout [UInt8], from offset: Int = 0) throws(SystemError) -> Int? {
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[min(offset, bytes.count)...])
            return retryingOnInterrupt { unsafe Glibc.read(number, room.baseAddress, room.count) }
        }
        if count >= 0 { return count }
        if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
        throw SystemError("read", "")
    }

    /// Writes the front of `bytes` from `offset`; how many were taken, nil when it would block. The C function is
    /// `write`.
    public func write(_ bytes: [UInt8], from offset: Int = 0) throws(SystemError) -> Int? {
        let count = unsafe bytes.withUnsafeBytes { bytes in
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[min(offset, bytes.count)...])
            return retryingOnInterrupt { unsafe Glibc.write(number, rest.baseAddress, rest.count) }
        }
        if count >= 0 { return count }
        if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
        throw SystemError("write", "")
    }

    /// Reads everything from a path; `limit` in bytes keeps a device or a mistake from filling the memory.
    public static func contents(of path: String, limit: Int) throws(SystemError) -> [UInt8] {
        let file = try open(path, O_RDONLY)
        var contents: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while let count = try file.read(into: &buffer), count > 0 {
            contents.append(contentsOf: buffer[..<count])
            if contents.count > limit { throw SystemError("read", path, code: EFBIG) }
        }
        return contents
    }

    /// Puts a whole file in the place of another, so that at any moment, also after a loss of power, there is the one or
    /// the other. `path` with `.new` behind it is used meanwhile.
    public static func replace(_ path: String, with contents: [UInt8]) throws(SystemError) {
        let temporary = "\(path).new"
        do {
            let file = try open(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644)
            var written = 0
            while written < contents.count { written += try file.write(contents, from: written) ?? 0 }
            guard fsync(file.number) == 0 else { throw SystemError("fsync", temporary) }
        }
        guard unsafe rename(temporary, path) == 0 else { throw SystemError("rename", temporary) }
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let directory = try open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY)
        guard fsync(directory.number) == 0 else { throw SystemError("fsync", folder) }
    }
}
