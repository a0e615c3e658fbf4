// SPDX-License-Identifier: Apache-2.0

import CBluetooth
import Glibc
public import LinuxIO

/// The raw HCI channel of a local adapter, beside the kernel and bluetoothd, for a conversation of one's own.
public struct AdapterSocket: ~Copyable {
    private let socket: FileDescriptor

    public init(index: UInt16) throws(PortError) {
        do { socket = try Self.bound(index, channel: HCI_CHANNEL_RAW) } catch {
            throw Self.explain(error, "hci\(index)", isExclusive: false)
        }
    }

    /// Opens the adapter of an index or an address.
    public init(_ adapter: ControllerSpecification.Adapter) throws(PortError) {
        let index: UInt16?
        do { index = try LocalAdapter.index(of: adapter) } catch {
            throw Self.explain(error, "\(adapter)", isExclusive: false)
        }
        guard let index else {
            throw PortError(.missing, "no adapter has the address \(adapter); see beacond adapters")
        }
        try self.init(index: index)
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
}

// MARK: Opening

extension AdapterSocket {
    /// Room for what comes while the loop is busy: some seconds of a full air. The kernel doubles it and caps it.
    private static let receiveBuffer: Int32 = 1 << 20

    /// A socket of an adapter's raw or user channel, with everything set.
    static func bound(_ index: UInt16, channel: Int32) throws(SystemError) -> FileDescriptor {
        let socket = try LocalAdapter.controlSocket()
        let number = socket.number
        var size = receiveBuffer
        var on: Int32 = 1
        let length = socklen_t(MemoryLayout<Int32>.size)
        // With CAP_NET_ADMIN beyond the system's limit; else as far as that goes. Either is no reason to fail.
        if unsafe setsockopt(number, SOL_SOCKET, SO_RCVBUFFORCE, &size, length) != 0 {
            _ = unsafe setsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, length)
        }
        if channel == HCI_CHANNEL_RAW {
            try setFilter(number, index)
            _ = unsafe setsockopt(number, SOL_HCI, HCI_TIME_STAMP, &on, length)
        } else {
            _ = unsafe setsockopt(number, SOL_SOCKET, SO_TIMESTAMP, &on, length)
        }
        var address = sockaddr_hci()
        address.hci_family = sa_family_t(AF_BLUETOOTH)
        address.hci_dev = index
        address.hci_channel = UInt16(channel)
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(number, $0, socklen_t(MemoryLayout<sockaddr_hci>.size))
            }
        }
        guard bound == 0 else { throw SystemError("bind", "hci\(index)") }
        return socket
    }

    /// Set once, before anything can arrive: the answers to commands, advertising reports, hardware errors, and the
    /// commands of others. The kernel never gives a socket its own commands back.
    private static func setFilter(_ number: Int32, _ index: UInt16) throws(SystemError) {
        var filter = hci_filter()
        filter.type_mask = 1 << HCI_EVENT_PKT | 1 << HCI_COMMAND_PKT
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
        // Without CAP_NET_RAW the kernel gives the socket, takes what it forbids out of the filter, and refuses every
        // command of use later.
        var length = size
        guard unsafe getsockopt(number, SOL_HCI, HCI_FILTER, &filter, &length) == 0,
            filter.type_mask & 1 << HCI_COMMAND_PKT != 0
        else { throw SystemError("setsockopt", "hci\(index)", code: EPERM) }
    }

    static func explain(_ error: SystemError, _ name: String, isExclusive: Bool) -> PortError {
        let reason = SystemError.text(error.code)
        let capability = isExclusive ? "CAP_NET_ADMIN" : "CAP_NET_RAW"
        return switch error.code {
        case EAFNOSUPPORT:
            PortError(
                .noBluetooth,
                "\(name): this kernel has no Bluetooth (\(reason)); load the module: modprobe bluetooth")
        case ENODEV:
            PortError(.missing, "\(name): no such adapter (\(reason)); plug it in, or name another one")
        case EPERM, EACCES:
            PortError(
                .forbidden,
                "\(name): not permitted (\(reason)); the program needs the capability \(capability): run the service, "
                    + "or setcap \(capability.lowercased())+ep on the program")
        case EBUSY, EUSERS:
            PortError(
                .unusable,
                "\(name): in use (\(reason)); another program has its user channel, or keeps it up")
        case ERFKILL:
            PortError(.unusable, "\(name): blocked by rfkill; rfkill unblock bluetooth")
        default: PortError(.unusable, "\(name): \(reason)")
        }
    }
}
