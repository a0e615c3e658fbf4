// SPDX-License-Identifier: Apache-2.0

import CLinuxIO
import Glibc

extension FileDescriptor {
    /// Begins to connect to a host and port without waiting; ``connectionIsReady()`` tells the end.
    ///
    /// Only the look-up of a host by name may take time; an address does not.
    public static func connecting(host: String, port: UInt16) throws(SystemError) -> FileDescriptor {
        let name = "\(host):\(port)"
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_ADDRCONFIG
        var found: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(host, String(port), &hints, &found) == 0, let first = unsafe found else {
            throw SystemError("getaddrinfo", name, code: EADDRNOTAVAIL)
        }
        defer { unsafe freeaddrinfo(first) }
        let address = unsafe first.pointee
        return try unsafe connecting(address.ai_family, address.ai_addr, address.ai_addrlen, name)
    }

    /// Begins to connect to a socket in the file system without waiting; ``connectionIsReady()`` tells the end.
    public static func connecting(path: String) throws(SystemError) -> FileDescriptor {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let octets = Array(path.utf8)
        guard octets.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw SystemError("connect", path, code: ENAMETOOLONG)
        }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
            for index in octets.indices { unsafe room[index] = octets[index] }
        }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result: Result<Int32, SystemError> = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe socketConnecting(AF_UNIX, pointer, length, path)
            }
        }
        return FileDescriptor(owning: try result.get())
    }

    /// Whether a connection that was begun is made; an error when it was refused.
    public func connectionIsReady() throws(SystemError) -> Bool {
        var state = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
        guard retryingOnInterrupt({ unsafe poll(&state, 1, 0) }) > 0 else { return false }
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(number, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else { return true }
        guard code == 0 else { throw SystemError("connect", "", code: code) }
        return true
    }

    private static func connecting(
        _ family: Int32, _ address: UnsafePointer<sockaddr>?, _ length: socklen_t, _ name: String
    ) throws(SystemError) -> FileDescriptor {
        FileDescriptor(owning: try unsafe socketConnecting(family, address, length, name).get())
    }

    private static func socketConnecting(
        _ family: Int32, _ address: UnsafePointer<sockaddr>?, _ length: socklen_t, _ name: String
    ) -> Result<Int32, SystemError> {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let number = socket(family, type, 0)
        guard number >= 0 else { return .failure(SystemError("socket", name)) }
        let connected = retryingOnInterrupt { unsafe connect(number, address, length) }
        if connected == 0 || errno == EINPROGRESS { return .success(number) }
        let error = SystemError("connect", name)
        _ = close(number)
        return .failure(error)
    }
}
