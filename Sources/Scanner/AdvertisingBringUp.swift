// SPDX-License-Identifier: Apache-2.0

public import HCI

/// Makes a controller advertise, and makes it stop: a pure state machine, events in, actions out.
///
/// A controller that has the extended commands is driven with those, as the kernel drives it, and sends a legacy PDU all
/// the same; another one with the legacy commands. The two are never mixed: after one kind a controller refuses the
/// other until it is reset, and a refusal for that reason (0x0C) makes it try the other kind once.
public struct AdvertisingBringUp: Sendable {
    public enum Action: Equatable, Sendable {
        case send(Command)
        /// The controller advertises.
        case advertising
        case failed(reason: String)
        /// It is over; `problem` says why the controller may still advertise.
        case stopped(problem: String?)
        case none
    }

    private enum Step {
        case idle, readingCommands, disabling, settingParameters, settingData, enabling, advertising
        case stopping, removingSet, stopped, failed
    }

    private let parameters: AdvertisingParameters
    private var step = Step.idle
    private var inFlight: Opcode?
    private var hasLegacyCommands = true
    private var hasExtendedCommands = false
    private var hasChanged = false
    /// Whether the controller was asked to advertise and was not yet told to stop.
    private var mayAdvertise = false
    private var mayHaveSet = false
    private var problem: String?
    /// Whether the extended commands are used; known once the supported commands were read.
    public private(set) var usesExtendedCommands = false

    public init(_ parameters: AdvertisingParameters) {
        self.parameters = parameters
    }

    public var isAdvertising: Bool { step == .advertising }

    /// The first action.
    public mutating func start() -> Action {
        hasChanged = false
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
            // The controller has started anew and forgotten what it was told.
            mayAdvertise = false
            mayHaveSet = false
            switch step {
            case .stopping, .removingSet: return end(problem: nil)
            case .idle, .stopped: return .none
            default: return start()
            }
        }
    }

    /// No answer came in time.
    public mutating func timedOut() -> Action {
        guard let opcode = inFlight else { return .none }
        inFlight = nil
        switch step {
        case .stopping: return end(problem: "the controller does not answer \(opcode); it may still advertise")
        case .removingSet: return end(problem: problem)
        default: return fail("the controller does not answer \(opcode)")
        }
    }

    /// Makes it stop, in whatever state it is.
    public mutating func stop() -> Action {
        switch step {
        case .stopping, .removingSet: return .none
        case .stopped: return .stopped(problem: problem)
        default: break
        }
        guard mayAdvertise else { return removeSet() }
        step = .stopping
        return send(disable)
    }

    /// What turns the advertising off, for a way out that cannot wait for an answer.
    public var disable: Command {
        usesExtendedCommands ? .leSetExtendedAdvertisingEnable(false) : .leSetAdvertisingEnable(false)
    }

    private mutating func answered(_ opcode: Opcode, _ status: Status, _ answer: [UInt8]) -> Action {
        inFlight = nil
        switch step {
        case .readingCommands:
            readCommands(status, answer)
            guard hasLegacyCommands || hasExtendedCommands else {
                return fail("the controller has no commands for advertising")
            }
            usesExtendedCommands = hasExtendedCommands
            return beginDisabling()
        case .disabling:
            // It did not advertise, or our set was never made.
            guard [.success, .commandDisallowed, .unknownAdvertisingIdentifier].contains(status) else {
                return refused(opcode, status)
            }
            step = .settingParameters
            mayHaveSet = usesExtendedCommands
            return send(
                usesExtendedCommands
                    ? .leSetExtendedAdvertisingParameters(parameters) : .leSetAdvertisingParameters(parameters))
        case .settingParameters:
            guard status == .success else { return refused(opcode, status) }
            step = .settingData
            return send(
                usesExtendedCommands ? .leSetExtendedAdvertisingData(parameters) : .leSetAdvertisingData(parameters))
        case .settingData:
            guard status == .success else { return fail(opcode, status) }
            step = .enabling
            mayAdvertise = true
            return send(usesExtendedCommands ? .leSetExtendedAdvertisingEnable(true) : .leSetAdvertisingEnable(true))
        case .enabling:
            guard status == .success else {
                mayAdvertise = false
                return fail(opcode, status)
            }
            step = .advertising
            return .advertising
        case .stopping:
            mayAdvertise = false
            if status != .success, status != .commandDisallowed, status != .unknownAdvertisingIdentifier {
                problem = "\(opcode): \(status); the controller may still advertise"
            }
            return removeSet()
        case .removingSet:
            return end(problem: problem)
        case .idle, .advertising, .stopped, .failed:
            return .none
        }
    }

    /// Bits of the supported commands (6.27): octet 25, bits 5 and 7, and octet 26, bit 1; octet 36, bits 2, 3 and 5. A
    /// controller that cannot tell is an old one.
    private mutating func readCommands(_ status: Status, _ answer: [UInt8]) {
        guard status == .success, answer.count > 36 else {
            hasLegacyCommands = true
            hasExtendedCommands = false
            return
        }
        hasLegacyCommands = answer[25] & 0xA0 == 0xA0 && answer[26] & 0x02 != 0
        hasExtendedCommands = answer[36] & 0x2C == 0x2C
    }

    private mutating func beginDisabling() -> Action {
        step = .disabling
        return send(disable)
    }

    /// The commands were refused before anything was set: perhaps somebody used the other kind.
    private mutating func refused(_ opcode: Opcode, _ status: Status) -> Action {
        let hasOther = usesExtendedCommands ? hasLegacyCommands : hasExtendedCommands
        guard status == .commandDisallowed || status == .unknownCommand, hasOther, !hasChanged else {
            return fail(opcode, status)
        }
        hasChanged = true
        mayHaveSet = false
        usesExtendedCommands.toggle()
        return beginDisabling()
    }

    private mutating func removeSet() -> Action {
        guard mayHaveSet else { return end(problem: problem) }
        mayHaveSet = false
        step = .removingSet
        return send(.leRemoveAdvertisingSet)
    }

    private mutating func end(problem: String?) -> Action {
        step = .stopped
        inFlight = nil
        self.problem = problem
        return .stopped(problem: problem)
    }

    private mutating func send(_ command: Command) -> Action {
        inFlight = command.opcode
        return .send(command)
    }

    private mutating func fail(_ opcode: Opcode, _ status: Status) -> Action {
        let hint = status == .commandDisallowed ? "; another program (bluetoothd?) may be advertising" : ""
        return fail("\(opcode): \(status)\(hint)")
    }

    private mutating func fail(_ reason: String) -> Action {
        step = .failed
        inFlight = nil
        return .failed(reason: reason)
    }
}
