// SPDX-License-Identifier: Apache-2.0

import CLinuxIO
import Glibc

/// Stream sockets that are named by a path (unix(7)). All of them are non-blocking.
public enum UnixSocket {
    /// Octets that a path may have: `sun_path` without the zero behind it.
    public static let maximumPath = 107

    /// Connects to the program that listens at a path.
    public static func connect(to path: String) throws(SystemError) -> FileDescriptor {
        let socket = try make(path)
        let result = unsafe try withAddress(of: path) { address, length in
            retryingOnInterrupt { unsafe Glibc.connect(socket.number, address, length) }
        }
        guard result == 0 else { throw SystemError("connect", path) }
        return socket
    }

    /// Listens at a path. The file gets the mode 0660 less the umask.
    ///
    /// - Throws: `EADDRINUSE` when the path exists, even if nobody listens there.
    public static func listen(at path: String, backlog: Int32 = 8) throws(SystemError) -> FileDescriptor {
        let socket = try make(path)
        let mask = umask(0)
        _ = umask(mask | 0o117)
        defer { _ = umask(mask) }
        let result = unsafe try withAddress(of: path) { address, length in
            unsafe Glibc.bind(socket.number, address, length)
        }
        guard result == 0 else { throw SystemError("bind", path) }
        guard Glibc.listen(socket.number, backlog) == 0 else { throw SystemError("listen", path) }
        return socket
    }

    /// The next client of a socket that listens; nil when there is none.
    public static func accept(_ socket: borrowing FileDescriptor) throws(SystemError) -> FileDescriptor? {
        let number = retryingOnInterrupt { clinuxio_accept(socket.number) }
        if number >= 0 { return FileDescriptor(owning: number) }
        if errno == EAGAIN || errno == ECONNABORTED { return nil }
        throw SystemError("accept", "")
    }

    private static func make(_ path: String) throws(SystemError) -> FileDescriptor {
        guard !path.isEmpty, path.utf8.count <= maximumPath else {
            throw SystemError("socket", path, code: ENAMETOOLONG)
        }
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let number = Glibc.socket(AF_UNIX, type, 0)
        guard number >= 0 else { throw SystemError("socket", path) }
        return FileDescriptor(owning: number)
    }

    private static func withAddress(
        of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(SystemError) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let octets = Array(path.utf8)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            for index in octets.indices { unsafe bytes[index] = octets[index] }
        }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, length) }
        }
    }
}
