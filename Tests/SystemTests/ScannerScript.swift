// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import HCI
import LinuxIO
import Scanner
import Testing

/// A way to a controller that a test plays: over a pair of sockets that keeps packets whole, as the kernel's channels do,
/// or over a stream.
final class ScriptedPort: ControllerPort {
    let name = "hci7"
    let kind: PacketChannel.Kind
    var isMissing = false
    var isUp: Bool?
    var mayCyclePower = true
    var radioSwitch: AdapterDescription.Switch?
    var suspendedTime = TimeInterval.zero
    /// Looks that pass before a power cycle is over.
    var powerCycleDelay = 0
    var powerCycleOutcome: Result<Void, SystemError>? {
        if powerCycleDelay > 0 {
            powerCycleDelay -= 1
            return nil
        }
        return .success(())
    }
    private(set) var openCount = 0
    private(set) var powerChanges: [PowerChange] = []
    var powerCycleCount: Int { powerChanges.count }
    /// The other end; nil when it was pulled out.
    private var script: FileDescriptor?

    init(_ kind: PacketChannel.Kind) {
        self.kind = kind
        // A write to a controller that is gone is an error, not the end.
        _ = signal(SIGPIPE, SIG_IGN)
    }

    var isExclusive: Bool { kind != .shared }

    func open() throws(PortError) -> PacketChannel {
        guard !isMissing else { throw PortError(.missing, "hci7: no such adapter") }
        var pair: [Int32] = [0, 0]
        let type =
            Int32(kind == .stream ? SOCK_STREAM.rawValue : SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw PortError(.unusable, "socketpair") }
        script = FileDescriptor(owning: pair[1])
        openCount += 1
        return PacketChannel(FileDescriptor(owning: pair[0]), kind: kind)
    }

    func begin(_ change: PowerChange) -> Bool {
        guard mayCyclePower else { return false }
        powerChanges.append(change)
        if isUp == false { isUp = true }
        return true
    }

    /// The next command that the scanner sent; nil when there is none.
    func command() throws -> Command? {
        var buffer = [UInt8](repeating: 0, count: 4)
        if kind != .stream {
            buffer = [UInt8](repeating: 0, count: 300)
            guard let count = try script?.read(into: &buffer) else { return nil }
            return Command(packet: buffer.span.extracting(0..<count))
        }
        guard let count = try script?.read(into: &buffer), count == 4 else { return nil }
        var rest = [UInt8](repeating: 0, count: Int(buffer[3]))
        if !rest.isEmpty { try #require(try script?.read(into: &rest) == rest.count) }
        return Command(packet: (buffer + rest).span)
    }

    func send(_ octets: [UInt8]) throws { try #require(try script?.write(octets) == octets.count) }

    /// Ends the connection.
    func pullOut() { script = nil }
}

/// A controller with a scanner in front of it, on a clock of its own.
final class ScriptedController {
    let port: ScriptedPort
    let scanner: AdapterScanner
    private(set) var now = MonotonicTime.zero
    private(set) var changes: [AdapterScanner.Change] = []
    private(set) var packets: [String] = []
    private(set) var commands: [Command] = []

    // How it answers.
    var hasExtended = false
    var hasCoded = false
    var isSilent = false
    /// Commands that are not answered.
    var unanswered: Set<Opcode> = []
    /// Statuses that are not success; the first of a command is used up first, the last stays.
    var statuses: [Opcode: [UInt8]] = [:]
    /// Num_HCI_Command_Packets in each answer.
    var credits: UInt8 = 1
    var address: UInt8 = 0x13

    init(_ kind: PacketChannel.Kind = .shared, window: Int64 = 30, interval: Int64 = 30, isActive: Bool = false) throws
    {
        port = ScriptedPort(kind)
        scanner = try AdapterScanner(
            port, parameters: Self.parameters(window: window, interval: interval, isActive: isActive))
    }

    static func parameters(window: Int64, interval: Int64, isActive: Bool = false) -> ScanParameters {
        ScanParameters(
            interval: .init(nanoseconds: interval * 1_000_000), window: .init(nanoseconds: window * 1_000_000),
            isActive: isActive)
    }

    func start() throws {
        scanner.start(at: now) { changes.append($0) }
        try settle()
    }

    /// What was told since the last call.
    func takeChanges() -> [AdapterScanner.Change] {
        defer { changes = [] }
        return changes
    }

    /// The states that were told since the last call.
    func takeStates() -> [Event.AdapterState] {
        takeChanges().compactMap { if case .state(let state, _) = $0 { state } else { nil } }
    }

    /// The commands since the last call, in hexadecimal digits without the indicator.
    func takeCommands() -> [String] {
        defer { commands = [] }
        return commands.map { Hexadecimal.text($0.packet.dropFirst()) }
    }

    func takeOpcodes() -> [Opcode] {
        defer { commands = [] }
        return commands.map(\.opcode)
    }

    /// Answers commands until no more come.
    func settle() throws {
        advance()
        while let command = try port.command() {
            commands.append(command)
            guard !isSilent, !unanswered.contains(command.opcode) else { continue }
            try port.send(answer(to: command))
            advance()
        }
    }

    func send(_ digits: String) throws {
        try port.send(try #require(Hexadecimal.octets(digits)))
        try settle()
    }

    /// An advertising report of iBeacon length without data.
    func advertise() throws { try send("043e0c02010400b30b7c8fe25800d4") }

    /// Lets time pass, with everything that falls due in it.
    func pass(_ interval: TimeInterval) throws {
        let end = now + interval
        while scanner.deadline <= end {
            now = max(now, scanner.deadline)
            try settle()
        }
        now = end
        try settle()
    }

    func use(_ parameters: ScanParameters?) throws {
        scanner.use(parameters, at: now) { changes.append($0) }
        try settle()
    }

    func askForSign() throws {
        scanner.askForSign(at: now) { changes.append($0) }
        try settle()
    }

    func advance() {
        scanner.advance(to: now) { packet, _ in
            packets.append(Hexadecimal.text(packet.indices.map { packet[$0] }))
        } _: {
            changes.append($0)
        }
    }

    private func answer(to command: Command) -> [UInt8] {
        var status: UInt8 = 0
        if let planned = statuses[command.opcode]?.first {
            status = planned
            if statuses[command.opcode, default: []].count > 1 { statuses[command.opcode]?.removeFirst() }
        }
        var parameters: [UInt8] = []
        switch command.opcode {
        case .readLocalVersionInformation: parameters = [9, 0, 0, 9, 0x5D, 0, 1, 0]
        case .readBDADDR: parameters = [address, 0x71, 0xDA, 0x7D, 0x1A, 0x00]
        case .readLocalSupportedCommands: parameters = (0..<64).map { $0 == 37 && hasExtended ? 0x60 : 0 }
        case .leReadLocalSupportedFeatures: parameters = [0, hasCoded ? 0x08 : 0, 0, 0, 0, 0, 0, 0]
        default: break
        }
        return [
            0x04, 0x0E, UInt8(4 + parameters.count), credits, UInt8(truncatingIfNeeded: command.opcode.rawValue),
            UInt8(command.opcode.rawValue >> 8), status,
        ] + parameters
    }
}
