// SPDX-License-Identifier: Apache-2.0

public import HCI

/// Brings a controller to scanning: a pure state machine, events in, actions out.
///
/// It reads which commands the controller supports and uses the legacy or the extended ones, never both: after one kind
/// a controller refuses the other until it is reset. It disables before it sets, because a scanner that died without
/// disabling leaves a controller that refuses new parameters.
public struct ScanBringUp: Sendable {
    public enum Action: Equatable, Sendable {
        case send(Command)
        /// The controller scans.
        case scanning
        case failed(reason: String)
        case none
    }

    private enum Step {
        case readingCommands, disabling, settingParameters, enabling, scanning, failed
    }

    private let parameters: ScanParameters
    private var step = Step.readingCommands
    private var inFlight: Opcode?
    /// Whether the extended commands are used; known once the supported commands were read.
    public private(set) var usesExtendedCommands = false

    public init(_ parameters: ScanParameters) {
        self.parameters = parameters
    }

    public var isScanning: Bool { step == .scanning }

    /// The first action.
    public mutating func start() -> Action {
        step = .readingCommands
        return send(Command(.readLocalSupportedCommands))
    }

    public mutating func received(_ event: ControllerEvent) -> Action {
        switch event {
        case .commandComplete(let opcode, let status, let parameters):
            // On the raw channel the answers to other programs' commands arrive too.
            guard opcode == inFlight else { return .none }
            return answered(opcode, status, parameters)
        case .commandStatus(let opcode, let status):
            guard opcode == inFlight, status != .success else { return .none }
            return answered(opcode, status, [])
        case .hardwareError:
            return start()
        }
    }

    /// No answer came within ``timeLimit``.
    public mutating func timedOut() -> Action {
        guard let opcode = inFlight else { return .none }
        return fail("the controller does not answer \(opcode)")
    }

    /// What turns the scan off again.
    public var disable: Command {
        usesExtendedCommands ? .leSetExtendedScanEnable(false) : .leSetScanEnable(false)
    }

    private mutating func answered(_ opcode: Opcode, _ status: Status, _ answer: [UInt8]) -> Action {
        inFlight = nil
        switch step {
        case .readingCommands:
            // Octet 37, bits 5 and 6: LE Set Extended Scan Parameters and Enable (6.27). A controller that cannot tell
            // is an old one.
            usesExtendedCommands = status == .success && answer.count > 37 && answer[37] & 0x60 == 0x60
            step = .disabling
            return send(disable)
        case .disabling:
            // Disallowed: it did not scan.
            guard status == .success || status == .commandDisallowed else { return fail(opcode, status) }
            step = .settingParameters
            return send(
                usesExtendedCommands ? .leSetExtendedScanParameters(parameters) : .leSetScanParameters(parameters))
        case .settingParameters:
            guard status == .success else { return fail(opcode, status) }
            step = .enabling
            return send(usesExtendedCommands ? .leSetExtendedScanEnable(true) : .leSetScanEnable(true))
        case .enabling:
            guard status == .success else { return fail(opcode, status) }
            step = .scanning
            return .scanning
        case .scanning, .failed:
            return .none
        }
    }

    private mutating func send(_ command: Command) -> Action {
        inFlight = command.opcode
        return .send(command)
    }

    private mutating func fail(_ opcode: Opcode, _ status: Status) -> Action {
        let hint = status == .commandDisallowed ? "; another program (bluetoothd?) may be scanning" : ""
        return fail("\(opcode): \(status)\(hint)")
    }

    private mutating func fail(_ reason: String) -> Action {
        step = .failed
        inFlight = nil
        return .failed(reason: reason)
    }
}
