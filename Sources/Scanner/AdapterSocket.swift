// SPDX-License-Identifier: Apache-2.0

import CBluetooth
import Glibc
public import LinuxIO

/// The raw HCI channel of a local adapter: what the controller says, beside the kernel and bluetoothd.
public struct AdapterSocket: ~Copyable {
    /// Why an adapter cannot be used: cause and cure in one line.
    public struct OpenError: Error, CustomStringConvertible {
        public var description: String
        /// Whether there is no such radio, as against one that may not be used.
        public var isMissing: Bool
    }

    private let socket: FileDescriptor

    public init(index: UInt16) throws(OpenError) {
        let name = "hci\(index)"
        let number = Glibc.socket(
            AF_BLUETOOTH, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
            BTPROTO_HCI)
        guard number >= 0 else { throw Self.openError(name, errno) }
        let opened = FileDescriptor(owning: number)
        do { try Self.prepare(opened.number, index) } catch { throw Self.openError(name, error.code) }
        socket = opened
    }

    /// Drives a connected socket that speaks H4 in whole packets, for a controller that is not the kernel's.
    public init(controller: consuming FileDescriptor) {
        socket = controller
    }

    public var descriptor: Int32 { socket.number }

    /// Sends one packet.
    public func send(_ packet: [UInt8]) throws(SystemError) {
        guard try socket.write(packet) == packet.count else { throw SystemError("write", "", code: EAGAIN) }
    }

    /// Reads one packet to the front of `buffer`, which should have room for 260 octets; nil when there is none, 0 when
    /// the controller is gone.
    public func read(into buffer: inout [UInt8]) throws(SystemError) -> Int? {
        try socket.read(into: &buffer)
    }

    private static func prepare(_ number: Int32, _ index: UInt16) throws(SystemError) {
        // Set once, before anything can arrive: the answers to commands, advertising reports and hardware errors.
        var filter = hci_filter()
        filter.type_mask = 1 << HCI_EVENT_PKT
        unsafe withUnsafeMutableBytes(of: &filter.event_mask) { mask in
            let words = unsafe mask.bindMemory(to: UInt32.self)
            for event in [EVT_CMD_COMPLETE, EVT_CMD_STATUS, EVT_HARDWARE_ERROR, EVT_LE_META_EVENT] {
                unsafe words[Int(event >> 5)] |= 1 << UInt32(event & 31)
            }
        }
        let size = socklen_t(MemoryLayout<hci_filter>.size)
        guard unsafe setsockopt(number, SOL_HCI, HCI_FILTER, &filter, size) == 0 else {
            throw SystemError("setsockopt", "hci\(index)")
        }
        var address = sockaddr_hci()
        address.hci_family = sa_family_t(AF_BLUETOOTH)
        address.hci_dev = index
        address.hci_channel = UInt16(HCI_CHANNEL_RAW)
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(number, $0, socklen_t(MemoryLayout<sockaddr_hci>.size))
            }
        }
        guard bound == 0 else { throw SystemError("bind", "hci\(index)") }
    }

    private static func openError(_ name: String, _ code: Int32) -> OpenError {
        let reason = SystemError.text(code)
        return switch code {
        case EAFNOSUPPORT:
            OpenError(
                description: "\(name): this kernel has no Bluetooth (\(reason)); load the module: modprobe bluetooth",
                isMissing: true)
        case ENODEV:
            OpenError(
                description: "\(name): no such adapter (\(reason)); plug it in, or name another one", isMissing: true)
        case EPERM, EACCES:
            OpenError(
                description: "\(name): not permitted (\(reason)); the program needs the capability CAP_NET_RAW: "
                    + "run the service, or setcap cap_net_raw+ep on the program", isMissing: false)
        default:
            OpenError(description: "\(name): \(reason)", isMissing: false)
        }
    }
}
