// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Glibc
public import HCI
import LinuxIO

/// Drives one controller for as long as the program runs: opens it, brings it to scanning, hands out what it sends, sets
/// right what goes wrong, and finds it again when it was gone.
public final class AdapterScanner {
    /// What the owner is told.
    public enum Change: Equatable, Sendable {
        /// The health of the adapter, and the reason when it is not well.
        case state(Event.AdapterState, reason: String?)
        /// It scans with these parameters from now on; nil: it rests, because nobody wants it.
        case activity(ScanParameters?)
    }

    /// Time for a controller to answer a command. A healthy one takes some milliseconds; the kernel itself gives up
    /// after 2 s.
    public static let timeLimit = TimeInterval.seconds(2)
    /// Time for a connection to be made.
    private static let connectLimit = TimeInterval.seconds(5)
    /// Packets that are read at a time, so that a flood cannot keep the loop from its timers.
    private static let packetsPerTurn = 64
    /// Between the theft of the scan and the answer: another host sends several commands in a row.
    private static let rearmDelay = TimeInterval.milliseconds(200)
    /// Two programs that each set the scan as they want it must not keep the controller busy.
    private static let rearmInterval = TimeInterval.seconds(1)
    /// Between two looks at the kernel's flags: a raw socket stays open and silent when its adapter is switched off.
    private static let lookInterval = TimeInterval.seconds(2)
    /// A suspension is longer; the two clocks by which it is measured are not read at the same moment.
    private static let shortestSuspension = TimeInterval.seconds(1)
    /// Between two looks at a power cycle that goes on.
    private static let powerInterval = TimeInterval.milliseconds(100)
    /// Pause before a controller that is gone is looked for again; doubled up to ``longestAbsence``.
    private static let shortestAbsence = TimeInterval.seconds(1)
    private static let longestAbsence = TimeInterval.seconds(60)
    /// The same for an adapter that is not there or blocked by its switch: to look costs one ioctl or a few small files, and
    /// when it is back it should scan within 5 s.
    private static let longestLook = TimeInterval.seconds(4)

    private enum Phase {
        case closed, connecting, open, cycling
    }

    private let port: any ControllerPort
    private let slot: DescriptorSlot
    private var channel: PacketChannel?
    private var phase = Phase.closed
    private var bringUp: ScanBringUp
    private var ladder = RecoveryLadder()
    private var buffer = [UInt8](repeating: 0, count: PacketChannel.packetCapacity)

    private var answerDue = MonotonicTime.distantFuture
    private var phaseDue = MonotonicTime.distantFuture
    private var lookDue = MonotonicTime.distantFuture
    private var rearmDue = MonotonicTime.distantFuture
    private var lastRearm: MonotonicTime?
    private var absence = shortestAbsence
    /// The same scan goes on with other parameters.
    private var isContinuation = false
    private var told: (state: Event.AdapterState, reason: String?)?
    private var toldActivity: ScanParameters??
    private var openError: PortError?
    private var wasSwitchedOn = false
    private var suspendedBefore = TimeInterval.zero
    private var droppedBefore: UInt64 = 0
    private var unknownBefore: UInt64 = 0

    /// When the controller was last heard of, by a packet of any kind.
    public private(set) var lastSign = MonotonicTime(nanoseconds: .min / 2)
    public private(set) var counts = Counts()
    /// Advertising packets of the scan that the last turn read; 0 when it stopped before it had read all.
    public private(set) var packetsOfTurn = 0

    /// Opens the controller, or begins to.
    ///
    /// - Throws: when it cannot be opened and waiting will not help; else it is tried again from ``start(at:_:)`` on.
    public init(_ port: any ControllerPort, parameters: ScanParameters?) throws(PortError) {
        self.port = port
        do { slot = try DescriptorSlot() } catch { throw PortError(.unusable, error.description) }
        bringUp = ScanBringUp(parameters, isExclusive: port.isExclusive)
        do { channel = try port.open() } catch {
            if error.isHopeless { throw error }
            openError = error
        }
    }

    /// The same for the life of the scanner, whatever becomes of the controller.
    public var descriptor: Int32 { slot.number }
    public var isScanning: Bool { phase == .open && bringUp.isScanning }
    public var facts: ControllerFacts { bringUp.facts }

    /// When ``advance(to:packet:_:)`` wants to be called.
    public var deadline: MonotonicTime {
        min(min(answerDue, phaseDue), min(min(lookDue, rearmDue), ladder.nextDeadline))
    }

    public func start(at now: MonotonicTime, _ change: (Change) -> Void) {
        tell(.starting, nil, change)
        do throws(PortError) {
            if let openError { throw openError }
            try adopt(at: now, change)
        } catch { absent(error, at: now, change) }
        openError = nil
    }

    /// Reads what came and does what is due.
    public func advance(
        to now: MonotonicTime, packet: (Span<UInt8>, MonotonicTime) -> Void, _ change: (Change) -> Void
    ) {
        packetsOfTurn = 0
        if phase == .open { receive(at: now, packet: packet, change) }
        if phaseDue <= now || phase == .connecting { advancePhase(at: now, change) }
        guard phase == .open else { return }
        if lookDue <= now { look(at: now, change) }
        if answerDue <= now { perform(bringUp.timedOut(), at: now, change) }
        if rearmDue <= now {
            rearmDue = .distantFuture
            lastRearm = now
            isContinuation = true
            perform(bringUp.rearm(), at: now, change)
        }
        if ladder.nextDeadline <= now { perform(ladder.timerFired(at: now), at: now, change) }
    }

    /// Scans in another way from now on, or not at all. Reports that the controller has delivered are not lost, and the
    /// moments in which the parameters change are no blindness.
    public func use(_ parameters: ScanParameters?, at now: MonotonicTime, _ change: (Change) -> Void) {
        isContinuation = isContinuation || bringUp.isSettled
        let action = bringUp.use(parameters)
        guard phase == .open else { return }
        perform(action, at: now, change)
    }

    /// Asks the controller for an answer, unless one is awaited already.
    public func askForSign(at now: MonotonicTime, _ change: (Change) -> Void) {
        guard phase == .open, bringUp.isSettled, bringUp.inFlight == nil else { return }
        ladder.asked()
        perform(bringUp.probe(), at: now, change)
    }

    /// Turns the scan off, if it was this scanner that turned it on.
    public func stop() {
        guard phase == .open, bringUp.ownsScan else { return }
        // Nobody is left to hear of a failure, and the adapter may be gone already.
        try? channel?.send(bringUp.disable.packet)
    }
}

// MARK: What the controller sends

extension AdapterScanner {
    private func receive(
        at now: MonotonicTime, packet: (Span<UInt8>, MonotonicTime) -> Void, _ change: (Change) -> Void
    ) {
        var count = 0
        for _ in 0..<Self.packetsPerTurn {
            guard phase == .open else { return }
            let received: PacketChannel.Received
            do { received = try channel?.receive(into: &buffer) ?? .nothing } catch {
                return gone(error, at: now, change)
            }
            switch received {
            case .nothing:
                packetsOfTurn = bringUp.isScanning ? count : 0
                return
            case .closed:
                return close(.absent, "\(port.name): the controller closed the connection", at: now, change)
            case .outOfStep:
                // The answer to a Reset that is under way ends it.
                guard bringUp.inFlight != .reset else { return }
                return perform(bringUp.start(), at: now, change)
            case .packet(let length, let age):
                lastSign = max(lastSign, now + TimeInterval(nanoseconds: -age.nanoseconds))
                if length > 1, buffer[0] == PacketType.event.rawValue, buffer[1] == EventCode.leMeta.rawValue {
                    count += 1
                }
                take(buffer.span.extracting(0..<length), now, age, packet, change)
            }
        }
    }

    private func take(
        _ octets: Span<UInt8>, _ now: MonotonicTime, _ age: TimeInterval,
        _ packet: (Span<UInt8>, MonotonicTime) -> Void, _ change: (Change) -> Void
    ) {
        if octets.count > 3, octets[0] == PacketType.event.rawValue, octets[1] == EventCode.leMeta.rawValue {
            let subevent = LESubevent(rawValue: octets[3])
            if subevent == .advertisingReport || subevent == .extendedAdvertisingReport, bringUp.isScanning {
                ladder.heard(at: now)
            }
            packet(octets, now + TimeInterval(nanoseconds: -age.nanoseconds))
        } else if octets.count > 1, octets[0] == PacketType.event.rawValue {
            let action = bringUp.received(ControllerEvent(octets), credits: ControllerEvent.credits(octets))
            perform(action, at: now, change)
        } else if let command = Command(packet: octets) {
            guard bringUp.isUndone(by: command) else { return }
            counts.stolenScans += 1
            let earliest = lastRearm.map { $0 + Self.rearmInterval } ?? now
            rearmDue = min(rearmDue, max(now + Self.rearmDelay, earliest))
        }
    }

    /// Whether the adapter is still switched on, and what the socket dropped.
    private func look(at now: MonotonicTime, _ change: (Change) -> Void) {
        lookDue = now + Self.lookInterval
        readCounts()
        if port.isUp == false { return close(.blind, "\(port.name): \(port.switchedOff)", at: now, change) }
        let suspended = port.suspendedTime
        guard suspended.nanoseconds - suspendedBefore.nanoseconds >= Self.shortestSuspension.nanoseconds else { return }
        suspendedBefore = suspended
        counts.suspensions += 1
        // The kernel stops scans for it, and some controllers lose what they were told.
        tell(.blind, "\(port.name): the machine was suspended", change)
        rearmDue = .distantFuture
        isContinuation = false
        ladder.vanished()
        perform(bringUp.start(), at: now, change)
    }

    private func readCounts() {
        guard let dropped = channel?.droppedCount, let unknown = channel?.unknownPacketCount else { return }
        counts.droppedPackets += dropped &- min(dropped, droppedBefore)
        counts.unknownPackets += unknown &- min(unknown, unknownBefore)
        droppedBefore = dropped
        unknownBefore = unknown
    }
}

// MARK: What is done

extension AdapterScanner {
    private func perform(_ action: ScanBringUp.Action, at now: MonotonicTime, _ change: (Change) -> Void) {
        switch action {
        case .send(let command):
            answerDue = now + Self.timeLimit
            do { try channel?.send(command.packet) } catch { gone(error, at: now, change) }
        case .scanning:
            settled()
            ladder.scanning(at: now, isContinuation: isContinuation)
            isContinuation = false
            tell(activity: bringUp.parameters, change)
            tell(.scanning, nil, change)
        case .stopped:
            settled()
            ladder.paused(at: now)
            tell(activity: nil, change)
            // To rest is no change of health; but it may be the end of an illness.
            if told?.state != .scanning { tell(.starting, nil, change) }
        case .probed:
            answerDue = .distantFuture
            perform(
                ladder.probeAnswered(at: now, usesExtendedCommands: bringUp.usesExtendedCommands), at: now, change)
        case .failed(let fault, let reason):
            answerDue = .distantFuture
            rearmDue = .distantFuture
            isContinuation = false
            let next = ladder.failed(fault, at: now)
            let hint = ladder.isExhausted ? "; nothing has helped, it may have to lose its power (unplug it)" : ""
            tell(ladder.isExhausted ? .failed : .blind, "\(port.name): \(reason)\(hint)", change)
            perform(next, at: now, change)
        case .none:
            // A command that waits for room is waited for like an answer.
            if bringUp.inFlight != nil, answerDue == .distantFuture { answerDue = now + Self.timeLimit }
        }
    }

    private func settled() {
        answerDue = .distantFuture
        absence = Self.shortestAbsence
    }

    private func perform(_ action: RecoveryLadder.Action, at now: MonotonicTime, _ change: (Change) -> Void) {
        switch action {
        case .none: break
        case .probe: perform(bringUp.probe(), at: now, change)
        case .restart:
            counts.restarts += 1
            isContinuation = false
            perform(bringUp.rearm(), at: now, change)
        case .bringUp:
            isContinuation = false
            perform(bringUp.start(), at: now, change)
        case .reset:
            if !reset(at: now, change) {
                let reason = "\(port.name): the controller needs a power cycle, for which the program has no means here"
                tell(ladder.isExhausted ? .failed : .blind, reason, change)
                perform(ladder.resetWasImpossible(at: now), at: now, change)
            }
        case .resetToLegacy, .resetToExtended:
            let toLegacy = action == .resetToLegacy
            bringUp.distrustExtended(toLegacy)
            if port.isExclusive {
                counts.resets += 1
                perform(bringUp.start(), at: now, change)
            } else if !reset(at: now, change) {
                // Without a power cycle the controller would refuse the other commands.
                bringUp.distrustExtended(!toLegacy)
                ladder.trialWasImpossible()
                perform(bringUp.rearm(), at: now, change)
            }
        }
    }

    /// The strongest way there is to begin anew: a shared adapter is switched off and on by the kernel, another is
    /// opened again, after which bring-up begins with Reset.
    private func reset(at now: MonotonicTime, _ change: (Change) -> Void) -> Bool {
        guard port.isExclusive || port.begin(ladder.needsBusReset ? .busReset : .downAndUp) else { return false }
        counts.resets += 1
        close(
            .blind, told?.state == .scanning ? "\(port.name): the controller is reset" : told?.reason, at: now, change)
        phase = port.isExclusive ? .closed : .cycling
        phaseDue = port.isExclusive ? now : now + Self.powerInterval
        return true
    }

    // MARK: There and gone

    private func advancePhase(at now: MonotonicTime, _ change: (Change) -> Void) {
        do throws(PortError) {
            switch phase {
            case .open: break
            case .closed: try open(at: now, change)
            case .connecting: try connect(at: now, change)
            case .cycling:
                switch port.powerCycleOutcome {
                case nil: phaseDue = now + Self.powerInterval
                case .success: try open(at: now, change)
                case .failure(let error):
                    wasSwitchedOn = false
                    throw PortError(.unusable, "\(port.name): cannot be switched on: \(error)\(error.powerCure)")
                }
            }
        } catch { absent(error, at: now, change) }
    }

    private func open(at now: MonotonicTime, _ change: (Change) -> Void) throws(PortError) {
        channel = try port.open()
        try adopt(at: now, change)
    }

    /// Waits for the channel that was just opened.
    private func adopt(at now: MonotonicTime, _ change: (Change) -> Void) throws(PortError) {
        guard let descriptor = channel?.descriptor else { return }
        do { try slot.insert(descriptor, writing: channel?.kind == .stream) } catch {
            throw PortError(.unusable, "\(port.name): \(error)")
        }
        droppedBefore = 0
        unknownBefore = 0
        phase = .connecting
        phaseDue = now + Self.connectLimit
        try connect(at: now, change)
    }

    private func connect(at now: MonotonicTime, _ change: (Change) -> Void) throws(PortError) {
        do {
            if try channel?.isReady() != true {
                guard phaseDue <= now else { return }
                throw SystemError("connect", "", code: ETIMEDOUT)
            }
            if let descriptor = channel?.descriptor { try slot.insert(descriptor) }
        } catch { throw PortError(.unusable, "\(port.name): \(error)") }
        if port.isUp == false {
            if let radioSwitch = port.radioSwitch, radioSwitch != .open {
                throw PortError(.blocked, "\(port.name): \(port.switchedOff)")
            }
            // Not a second time at once: what switched it off may do so again.
            if wasSwitchedOn || !port.begin(.up) {
                wasSwitchedOn = false
                throw PortError(.unusable, "\(port.name): \(port.switchedOff)")
            }
            wasSwitchedOn = true
            channel = nil
            phase = .cycling
            phaseDue = now + Self.powerInterval
            return
        }
        wasSwitchedOn = false
        phase = .open
        phaseDue = .distantFuture
        lookDue = now + Self.lookInterval
        suspendedBefore = port.suspendedTime
        perform(bringUp.start(), at: now, change)
    }

    private func gone(_ error: SystemError, at now: MonotonicTime, _ change: (Change) -> Void) {
        let isSwitchedOff = error.code == ENETDOWN || error.code == ERFKILL || error.code == EHOSTDOWN
        close(
            isSwitchedOff ? .blind : .absent,
            "\(port.name): \(error); the adapter is \(isSwitchedOff ? "switched off" : "gone")", at: now, change)
    }

    private func absent(_ error: PortError, at now: MonotonicTime, _ change: (Change) -> Void) {
        close(error.cause == .missing ? .absent : .blind, error.description, at: now, change)
        absence = min(
            TimeInterval(nanoseconds: absence.nanoseconds * 2),
            error.cause == .missing || error.cause == .blocked ? Self.longestLook : Self.longestAbsence)
    }

    /// Lets go of the channel and tries again later.
    private func close(
        _ state: Event.AdapterState, _ reason: String?, at now: MonotonicTime, _ change: (Change) -> Void
    ) {
        readCounts()
        channel = nil
        phase = .closed
        phaseDue = now + absence
        answerDue = .distantFuture
        lookDue = .distantFuture
        rearmDue = .distantFuture
        isContinuation = false
        ladder.vanished()
        tell(state, reason, change)
    }

    // MARK: What the owner is told

    private func tell(_ state: Event.AdapterState, _ reason: String?, _ change: (Change) -> Void) {
        if state != .scanning, state != .starting { toldActivity = nil }
        if let told, told == (state, reason) { return }
        told = (state, reason)
        change(.state(state, reason: reason))
    }

    private func tell(activity: ScanParameters?, _ change: (Change) -> Void) {
        if let toldActivity, toldActivity == activity { return }
        toldActivity = .some(activity)
        change(.activity(activity))
    }
}
