// SPDX-License-Identifier: Apache-2.0

import CBluetooth
import Glibc
public import LinuxIO

/// The way to a controller, by which it is opened again after it was gone.
public protocol ControllerPort: AnyObject {
    /// For logs: `hci0`.
    var name: String { get }
    /// Nobody else drives the controller.
    var isExclusive: Bool { get }
    /// Opens the channel, or begins to: see ``PacketChannel/isReady()``.
    func open() throws(PortError) -> PacketChannel
    /// Whether the adapter is switched on; nil when that cannot be told.
    var isUp: Bool? { get }
    /// Begins to switch the adapter off and on, or only on; false when it cannot be.
    func beginPowerCycle(onlyUp: Bool) -> Bool
    /// What became of it; nil while it goes on.
    var powerCycleOutcome: Result<Void, SystemError>? { get }
}

/// Why a controller cannot be opened: cause and cure in one line.
public struct PortError: Error, CustomStringConvertible {
    public enum Cause: Sendable {
        /// It is not there, and may come.
        case missing
        /// It is there and switched off, in use or unreachable, which may change.
        case unusable
        /// It will not change while the program runs: a permission or the kernel.
        case hopeless
    }

    public var cause: Cause
    public var description: String

    public init(_ cause: Cause, _ description: String) {
        self.cause = cause
        self.description = description
    }
}

/// The way to a controller that a specification names.
public final class SystemPort: ControllerPort {
    private let specification: ControllerSpecification
    /// Where the adapter was found last.
    private var index: UInt16?
    /// Its address, by which it is found again when it comes back under another index.
    private var address: UInt64?
    private var powerCycle: PowerCycle?

    /// Room for what comes while the loop is busy: some seconds of a full air. The kernel doubles it and caps it.
    private static let receiveBuffer: Int32 = 1 << 20

    public init(_ specification: ControllerSpecification) {
        self.specification = specification
    }

    public var name: String { specification.name }

    public var isExclusive: Bool {
        if case .raw = specification { false } else { true }
    }

    public func open() throws(PortError) -> PacketChannel {
        do throws(SystemError) {
            switch specification {
            case .raw(let adapter):
                return PacketChannel(try bound(adapter, channel: HCI_CHANNEL_RAW), kind: .shared)
            case .user(let adapter):
                return PacketChannel(try bound(adapter, channel: HCI_CHANNEL_USER), kind: .exclusive)
            case .tcp(let host, let port):
                return PacketChannel(try FileDescriptor.connecting(host: host, port: port), kind: .stream)
            case .unix(let path): return PacketChannel(try FileDescriptor.connecting(path: path), kind: .stream)
            case .serial(let path, let rate, let flow):
                let line = try FileDescriptor.serialLine(path, rate: rate, hardwareFlowControl: flow)
                return PacketChannel(line, kind: .stream)
            }
        } catch { throw explain(error) }
    }

    public var isUp: Bool? {
        guard case .raw = specification, let index else { return nil }
        return LocalAdapter.state(of: index)?.isUp
    }

    public func beginPowerCycle(onlyUp: Bool) -> Bool {
        guard let index, case .raw = specification else { return false }
        powerCycle = try? PowerCycle(onlyUp ? .up : .downAndUp, of: index)
        return powerCycle != nil
    }

    public var powerCycleOutcome: Result<Void, SystemError>? { powerCycle?.result }

    // MARK: Local adapters

    private func bound(
        _ adapter: ControllerSpecification.Adapter, channel: Int32
    ) throws(SystemError) -> FileDescriptor {
        let known = try address.flatMap { (address) throws(SystemError) in try LocalAdapter.index(of: .address(address))
        }
        index = if let known { known } else { try LocalAdapter.index(of: adapter) }
        guard let index else { throw SystemError("ioctl", name, code: ENODEV) }
        let socket = try taken(index, channel: channel)
        // An adapter that is still being set up has no address yet.
        if let found = LocalAdapter.state(of: index)?.address, found != 0 { address = found }
        return socket
    }

    private func taken(_ index: UInt16, channel: Int32) throws(SystemError) -> FileDescriptor {
        do { return try Self.bound(index, channel: channel) } catch {
            guard channel == HCI_CHANNEL_USER, error.code == EBUSY else { throw error }
            // The user channel takes an adapter only when it is down.
            try LocalAdapter.setPower(false, of: index)
            return try Self.bound(index, channel: channel)
        }
    }

    private static func bound(_ index: UInt16, channel: Int32) throws(SystemError) -> FileDescriptor {
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
    }

    private func explain(_ error: SystemError) -> PortError {
        let reason = SystemError.text(error.code)
        switch specification {
        case .raw, .user: break
        case .tcp, .unix: return PortError(.unusable, "\(specification): \(error); is the other side running?")
        case .serial:
            let isDenied = error.code == EACCES || error.code == EPERM
            return PortError(
                error.code == ENOENT ? .missing : .unusable,
                "\(specification): \(error)"
                    + (isDenied ? "; the program needs the group that owns the line, often dialout" : ""))
        }
        let isUser = isExclusive
        let capability = isUser ? "CAP_NET_ADMIN" : "CAP_NET_RAW"
        return switch error.code {
        case EAFNOSUPPORT:
            PortError(
                .hopeless, "\(name): this kernel has no Bluetooth (\(reason)); load the module: modprobe bluetooth")
        case ENODEV:
            PortError(.missing, "\(name): no such adapter (\(reason)); plug it in, or name another one")
        case EPERM, EACCES:
            PortError(
                .hopeless,
                "\(name): not permitted (\(reason)); the program needs the capability \(capability): run the service, "
                    + "or setcap \(capability.lowercased())+ep on the program")
        case EBUSY, EUSERS:
            PortError(
                .unusable,
                "\(name): in use (\(reason)); another program has its user channel, or it is up: stop bluetoothd, or "
                    + "use hci: instead of user:")
        case ERFKILL:
            PortError(.unusable, "\(name): blocked by rfkill; rfkill unblock bluetooth")
        default: PortError(.unusable, "\(name): \(reason)")
        }
    }
}
