// SPDX-License-Identifier: Apache-2.0

public import HCI

/// Brings a controller to scanning and keeps it as it is wanted: a pure state machine, events in, actions out.
///
/// It reads what the controller supports and uses the legacy or the extended commands, never both: after one kind a
/// controller refuses the other until it is reset. It disables before it sets, because a scanner that died without
/// disabling leaves a controller that refuses new parameters.
public struct ScanBringUp: Sendable {
    public enum Action: Equatable, Sendable {
        case send(Command)
        /// The controller scans as it is wanted.
        case scanning
        /// The controller does not scan, as it is wanted.
        case stopped
        /// The controller answered ``probe()``.
        case probed
        case failed(RecoveryLadder.Fault, reason: String)
        case none
    }

    private enum Step {
        case resetting, readingVersion, readingAddress, readingCommands, readingFeatures, settingEventMask
        case settingLEEventMask, disabling, settingParameters, enabling
        case scanning, stopped, failed
    }

    /// Nobody else drives the controller, so it may be reset and its event masks are ours.
    private let isExclusive: Bool
    /// How it shall scan; nil: not at all.
    public private(set) var parameters: ScanParameters?
    private var step = Step.failed
    /// The command whose answer is waited for.
    public private(set) var inFlight: Opcode?
    /// A command that the controller has no room for yet (Num_HCI_Command_Packets).
    private var held: Command?
    private var credits: UInt8 = 1
    /// What is wanted changed while a command was in flight.
    private var isStale = false
    private var isProbing = false
    /// The legacy set is tried, because somebody else's use of it may be why the extended one was disallowed.
    private var triesLegacyOnce = false
    /// The extended set has been used since the last Reset.
    private var hasUsedExtended = false
    /// Whether it was we who turned the scan on.
    public private(set) var ownsScan = false
    public private(set) var facts = ControllerFacts()
    private var known = KnownControllers()

    public init(_ parameters: ScanParameters?, isExclusive: Bool = false) {
        self.parameters = parameters
        self.isExclusive = isExclusive
    }

    public var isScanning: Bool { step == .scanning }
    /// Whether the controller does what is wanted, be it to scan or to rest.
    public var isSettled: Bool { step == .scanning || step == .stopped }
    public var usesExtendedCommands: Bool { facts.usesExtendedCommands && !triesLegacyOnce }
    private var usesCodedPHY: Bool { facts.usesCodedPHY && !triesLegacyOnce }

    // MARK: What is wanted

    /// Everything from the beginning.
    public mutating func start() -> Action {
        isStale = false
        isProbing = false
        triesLegacyOnce = false
        held = nil
        credits = 1
        facts = ControllerFacts()
        return go(isExclusive ? .resetting : .readingVersion)
    }

    /// Changes how it scans; nil stops it.
    public mutating func use(_ parameters: ScanParameters?) -> Action {
        guard parameters != self.parameters else { return .none }
        self.parameters = parameters
        return rearm()
    }

    /// Sets the scan again as it should be.
    public mutating func rearm() -> Action {
        if isSettled && inFlight == nil { return go(.disabling) }
        isStale = true
        return .none
    }

    /// Asks the controller for something harmless, to see whether it still answers.
    public mutating func probe() -> Action {
        guard isSettled, inFlight == nil else { return .none }
        isProbing = true
        return send(Command(.readLocalVersionInformation))
    }

    /// Remembers whether the controller's claim of extended scanning is wrong; it counts from the next ``start()`` on.
    public mutating func distrustExtended(_ isWrong: Bool) {
        facts.isLegacyOnly = isWrong
        known.remember(facts)
    }

    /// What turns the scan off again.
    public var disable: Command {
        usesExtendedCommands ? .leSetExtendedScanEnable(false) : .leSetScanEnable(false)
    }

    /// Whether another host's command undoes what we want of the controller.
    public mutating func isUndone(by command: Command) -> Bool {
        guard let parameters, isScanning else { return false }
        switch command.opcode {
        case .leSetScanEnable, .leSetExtendedScanEnable:
            let isDisable = command.parameters.first == 0
            if isDisable { ownsScan = false }
            return command != enable
        case .leSetScanParameters, .leSetExtendedScanParameters: return command != setParameters(parameters)
        case .reset: return true
        default: return false
        }
    }

    // MARK: What the controller says

    /// - Parameter credits: how many commands the controller has room for, when it said so.
    public mutating func received(_ event: ControllerEvent?, credits: UInt8? = nil) -> Action {
        if let credits { self.credits = credits }
        // On the raw channel the answers to other programs' commands arrive too.
        switch event {
        case .commandComplete(let opcode, let status, let parameters) where opcode == inFlight && held == nil:
            return answered(opcode, status, parameters)
        case .commandStatus(let opcode, let status) where opcode == inFlight && held == nil && status != .success:
            return answered(opcode, status, [])
        case .commandComplete, .commandStatus, nil:
            return release()
        case .hardwareError(let code):
            let code = String(code, radix: 16)
            return fail(.hardwareError, "the controller reports a hardware error (0x\(code))")
        }
    }

    /// No answer came in time.
    public mutating func timedOut() -> Action {
        guard let opcode = inFlight else { return .none }
        let cause = held == nil ? "does not answer" : "has no room for"
        return fail(.noAnswer, "the controller \(cause) \(opcode)")
    }

    private mutating func answered(_ opcode: Opcode, _ status: Status, _ answer: [UInt8]) -> Action {
        inFlight = nil
        if isProbing {
            isProbing = false
            if isStale { return go(.disabling) }
            return .probed
        }
        let isExtended = opcode == .leSetExtendedScanEnable || opcode == .leSetExtendedScanParameters
        if isExtended {
            if status.isLackOfSupport { return withoutExtended(opcode, status) }
            hasUsedExtended = true
        }
        switch step {
        case .resetting:
            guard status == .success else { return fail(opcode, status) }
            hasUsedExtended = false
            ownsScan = false
            return go(.readingVersion)
        case .readingVersion:
            if status == .success, answer.count >= 5 {
                facts.version = answer[0]
                facts.manufacturer = UInt16(answer[3]) | UInt16(answer[4]) << 8
            }
            return go(.readingAddress)
        case .readingAddress:
            if status == .success, answer.count >= 6 {
                facts.address = answer.prefix(6).reversed().reduce(0) { $0 << 8 | UInt64($1) }
            }
            known.recall(&facts)
            return go(.readingCommands)
        case .readingCommands:
            // Octet 37, bits 5 and 6: LE Set Extended Scan Parameters and Enable (6.27). A controller that cannot tell
            // is an old one.
            facts.claimsExtendedScanning = status == .success && answer.count > 37 && answer[37] & 0x60 == 0x60
            return go(.readingFeatures)
        case .readingFeatures:
            // Bit 11: LE Coded PHY (Vol 6, Part B, 4.6).
            facts.claimsCodedPHY = status == .success && answer.count > 1 && answer[1] & 0x08 != 0
            return go(isExclusive ? .settingEventMask : .disabling)
        // A controller that refuses a mask keeps its own, and then the reports tell.
        case .settingEventMask: return go(.settingLEEventMask)
        case .settingLEEventMask: return go(.disabling)
        case .disabling:
            // It did not scan (disallowed), or it is stuck, and then it will refuse the parameters.
            if status == .success { ownsScan = false }
            isStale = false
            return parameters == nil ? settle(.stopped) : go(.settingParameters)
        case .settingParameters:
            guard status == .success else { return refused(opcode, status) }
            return go(isStale ? .disabling : .enabling)
        case .enabling:
            guard status == .success else { return refused(opcode, status) }
            ownsScan = true
            return isStale ? go(.disabling) : settle(.scanning)
        case .scanning, .stopped, .failed:
            return .none
        }
    }

    private mutating func settle(_ step: Step) -> Action {
        self.step = step
        return step == .scanning ? .scanning : .stopped
    }

    /// The controller cannot do what it claims: less is asked for, and that is remembered.
    private mutating func withoutExtended(_ opcode: Opcode, _ status: Status) -> Action {
        if opcode == .leSetExtendedScanParameters, status != .unknownCommand, usesCodedPHY {
            facts.refusesCodedPHY = true
            known.remember(facts)
            return go(.settingParameters)
        }
        facts.isLegacyOnly = true
        known.remember(facts)
        return go(isExclusive && hasUsedExtended ? .resetting : .disabling)
    }

    private mutating func refused(_ opcode: Opcode, _ status: Status) -> Action {
        guard status == .commandDisallowed, usesExtendedCommands else { return fail(opcode, status) }
        // Another program may have used the legacy commands since the last reset.
        triesLegacyOnce = true
        return go(.disabling)
    }

    // MARK: Commands

    private mutating func go(_ step: Step) -> Action {
        self.step = step
        return send(command(for: step))
    }

    private func command(for step: Step) -> Command {
        switch step {
        case .resetting: Command(.reset)
        case .readingAddress: Command(.readBDADDR)
        case .readingCommands: Command(.readLocalSupportedCommands)
        case .readingFeatures: Command(.leReadLocalSupportedFeatures)
        case .settingEventMask: .setEventMask
        case .settingLEEventMask: .leSetEventMask(extendedReports: facts.usesExtendedCommands)
        case .disabling: disable
        case .settingParameters: parameters.map(setParameters) ?? disable
        case .enabling: enable
        case .readingVersion, .scanning, .stopped, .failed: Command(.readLocalVersionInformation)
        }
    }

    private var enable: Command { usesExtendedCommands ? .leSetExtendedScanEnable(true) : .leSetScanEnable(true) }

    private func setParameters(_ parameters: ScanParameters) -> Command {
        usesExtendedCommands
            ? .leSetExtendedScanParameters(parameters, onCodedPHY: usesCodedPHY) : .leSetScanParameters(parameters)
    }

    private mutating func send(_ command: Command) -> Action {
        inFlight = command.opcode
        // Beside the kernel it is the kernel that queues; Reset may always be sent (Vol 4, Part E, 4.4).
        guard credits > 0 || !isExclusive || command.opcode == .reset else {
            held = command
            return .none
        }
        return .send(command)
    }

    private mutating func release() -> Action {
        guard credits > 0, let command = held else { return .none }
        held = nil
        return .send(command)
    }

    private mutating func fail(_ opcode: Opcode, _ status: Status) -> Action {
        let hint = status == .commandDisallowed ? "; another program (bluetoothd?) may be scanning" : ""
        return fail(.refusal, "\(opcode): \(status)\(hint)")
    }

    private mutating func fail(_ fault: RecoveryLadder.Fault, _ reason: String) -> Action {
        step = .failed
        inFlight = nil
        held = nil
        isProbing = false
        return .failed(fault, reason: reason)
    }
}
