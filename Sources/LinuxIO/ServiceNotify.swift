// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Glibc

/// Tells the service manager how the service is (sd_notify(3)): a datagram to the socket named in `NOTIFY_SOCKET`.
/// Does nothing when nobody asked.
public struct ServiceNotify: ~Copyable {
    private let socket: Int32
    private let path: [UInt8]
    /// How often the watchdog wants to hear of us: half of `WATCHDOG_USEC`; nil when there is no watchdog.
    public let watchdogInterval: TimeInterval?

    public init() {
        let name = unsafe getenv("NOTIFY_SOCKET").map { unsafe String(cString: $0) } ?? ""
        path = Array(name.utf8)
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        socket = name.isEmpty ? -1 : Glibc.socket(AF_UNIX, type, 0)
        watchdogInterval = unsafe getenv("WATCHDOG_USEC").flatMap { unsafe Int64(String(cString: $0)) }.flatMap {
            $0 > 0 ? TimeInterval(nanoseconds: min($0, 1 << 40) * 500) : nil
        }
    }

    deinit {
        if socket >= 0 { _ = close(socket) }
    }

    public func ready() { send("READY=1") }
    public func stopping() { send("STOPPING=1") }
    public func watchdog() { send("WATCHDOG=1") }
    public func status(_ line: String) { send("STATUS=\(line)") }

    /// Says that the configuration is read again; ``ready()`` ends it.
    public func reloading() {
        send("RELOADING=1\nMONOTONIC_USEC=\(Clock.now.nanoseconds / 1000)")
    }

    private func send(_ text: String) {
        guard socket >= 0 else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard path.count < capacity else { return }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            for index in path.indices { unsafe bytes[index] = path[index] }
            // A leading @ stands for the zero octet of an abstract name.
            if path[0] == UInt8(ascii: "@") { unsafe bytes[0] = 0 }
        }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let octets = Array(text.utf8)
        _ = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe octets.withUnsafeBytes {
                    unsafe sendto(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL), address, length)
                }
            }
        }
    }
}
