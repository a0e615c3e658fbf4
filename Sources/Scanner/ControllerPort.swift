// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
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
    /// Begins to change the power of the adapter; false when that cannot be.
    func begin(_ change: PowerChange) -> Bool
    /// What became of it; nil while it goes on.
    var powerCycleOutcome: Result<Void, SystemError>? { get }
    /// How the radio switch of the adapter stands (rfkill); nil when it has none.
    var radioSwitch: AdapterDescription.Switch? { get }
    /// How long the machine was suspended until now.
    var suspendedTime: TimeInterval { get }
}

/// The way to a controller that a specification names.
public final class SystemPort: ControllerPort {
    private let specification: ControllerSpecification
    /// Where the adapter was found last.
    private var index: UInt16?
    /// Its address, by which it is found again when it comes back under another index.
    private var address: UInt64?
    private var missingSince: MonotonicTime?
    /// An adapter that is away for longer was replaced, and the one that has its index is taken.
    private static let loyalty = TimeInterval.seconds(60)
    private var powerCycle: PowerCycle?

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

    public func begin(_ change: PowerChange) -> Bool {
        guard let index, case .raw = specification else { return false }
        powerCycle = try? PowerCycle(change, of: index)
        return powerCycle != nil
    }

    public var powerCycleOutcome: Result<Void, SystemError>? { powerCycle?.result }

    public var radioSwitch: AdapterDescription.Switch? {
        guard case .raw = specification, let index else { return nil }
        return RadioSwitches(systemFolder: "/sys")["hci\(index)"]
    }

    public var suspendedTime: TimeInterval { Clock.suspendedTime }

    // MARK: Local adapters

    private func bound(
        _ adapter: ControllerSpecification.Adapter, channel: Int32
    ) throws(SystemError) -> FileDescriptor {
        index = try find(adapter)
        guard let index else { throw SystemError("ioctl", name, code: ENODEV) }
        let socket = try taken(index, channel: channel)
        // An adapter that is still being set up has no address yet.
        if let found = LocalAdapter.state(of: index)?.address, found != 0 { address = found }
        return socket
    }

    /// The adapter's index now: by its address once that is known, because another one may have taken the index.
    private func find(_ adapter: ControllerSpecification.Adapter) throws(SystemError) -> UInt16? {
        guard let address else { return try LocalAdapter.index(of: adapter) }
        if let index = try LocalAdapter.index(of: .address(address)) {
            missingSince = nil
            return index
        }
        let since = missingSince ?? Clock.now
        missingSince = since
        return Clock.now - since < Self.loyalty ? nil : try LocalAdapter.index(of: adapter)
    }

    private func taken(_ index: UInt16, channel: Int32) throws(SystemError) -> FileDescriptor {
        do { return try AdapterSocket.bound(index, channel: channel) } catch {
            guard channel == HCI_CHANNEL_USER, error.code == EBUSY else { throw error }
            // The user channel takes an adapter only when it is down.
            try LocalAdapter.setPower(false, of: index)
            return try AdapterSocket.bound(index, channel: channel)
        }
    }

    private func explain(_ error: SystemError) -> PortError {
        switch specification {
        case .raw, .user: AdapterSocket.explain(error, name, isExclusive: isExclusive)
        case .tcp, .unix: PortError(.unusable, "\(specification): \(error); is the other side running?")
        case .serial:
            PortError(
                error.code == ENOENT ? .missing : .unusable,
                "\(specification): \(error)"
                    + (error.code == EACCES ? "; the program needs the group that owns the line, often dialout" : ""))
        }
    }
}
