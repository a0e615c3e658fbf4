// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Decides what is done about a controller that fails or falls silent: a pure state machine on a clock that is handed in.
///
/// The rungs: ask something harmless (probe), set the scan again (restart), reset or power-cycle, report and go on
/// trying with longer pauses. Silence alone proves nothing: it is judged by what the room was like before, and a room
/// that was always quiet is never reset. Every rung has a budget, because recovery that goes round in circles is itself
/// a common cause of outages.
public struct RecoveryLadder: Sendable {
    public enum Fault: Equatable, Sendable {
        /// A command was not answered in time.
        case noAnswer
        /// A command was refused.
        case refusal
        case hardwareError
    }

    public enum Action: Equatable, Sendable {
        case none
        /// Ask the controller something; then ``probeAnswered(at:)`` or ``failed(_:at:)``.
        case probe
        /// Set the scan again.
        case restart
        /// Bring the controller up from the beginning.
        case bringUp
        /// Reset it, or cut its power, then bring it up; or ``resetWasImpossible(at:)``.
        case reset
        /// The same, and use the legacy commands from now on: what it says of extended scanning may be wrong.
        case resetToLegacy
        /// The same, back to the extended commands: the legacy ones hear nothing either.
        case resetToExtended
    }

    /// Silence is judged no sooner than this; a room with one beacon at its slowest common interval, 10 s, passes.
    public static let minimumSilence = TimeInterval.seconds(30)
    /// And no later: a radio that is dead should be noticed within a minute and a half.
    public static let maximumSilence = TimeInterval.seconds(90)
    /// In a busy room the controller is asked after this much silence whether it still answers. That is harmless, and a
    /// controller that hangs is found before anybody is taken to have left.
    public static let earlyProbe = TimeInterval.seconds(5)
    /// Elsewhere it is asked after so much silence, and again and again: a hang is then known, with the 2 s of the answer,
    /// before an exit time of 20 s is over.
    public static let usualProbe = TimeInterval.seconds(10)
    /// Silence is this many times the longest gap of the last minutes.
    private static let gapFactor: Int64 = 20
    /// Gaps are remembered for one to two of these.
    private static let gapMemory = TimeInterval.seconds(300)
    /// In a busy room this much more silence after a restart leads to a reset.
    private static let silenceAfterRestart = TimeInterval.seconds(15)
    /// Restarts because of silence in an hour.
    public static let restartBudget = 6
    /// Resets in an hour.
    public static let resetBudget = 4
    /// Of these, so many that are power cycles; if another one follows within the hour they have not helped, and the bus is
    /// asked.
    public static let powerCycleBudget = 2
    private static let hour = TimeInterval.seconds(3600)
    /// The longest pause between two tries.
    public static let longestPause = TimeInterval.seconds(600)
    /// After so long without a fault the faults before are forgotten.
    private static let healthyTime = TimeInterval.seconds(600)
    /// A room is busy with more than this many reports within ``rateWindow``: more than one a second.
    private static let busyCount = 10
    private static let rateWindow = TimeInterval.seconds(10)
    /// How long before the silence the room must have been busy.
    private static let busyMemory = TimeInterval.seconds(60)

    private enum Phase {
        /// Not scanning: nobody wants it, or it is not possible.
        case idle
        case listening
        case probing
        /// Restarted after silence in a busy room.
        case restarted
    }

    private var phase = Phase.idle
    /// When it scans, the moment since when nothing was heard; else the length of the silence before it stopped.
    private var silentSince = MonotonicTime.zero
    private var silenceBefore = TimeInterval.zero
    private var lastHeard: MonotonicTime?
    private var longestGap = TimeInterval.zero
    private var longestGapBefore = TimeInterval.zero
    private var gapsSince = MonotonicTime.zero
    private var rateSince = MonotonicTime.zero
    private var rateCount = 0
    private var busyAt: MonotonicTime?
    private var restarts: [MonotonicTime] = []
    private var resets: [MonotonicTime] = []
    /// Pause factor of restarts in a quiet room: each that changes nothing doubles it.
    private var patience: Int64 = 1
    private var hasProbedEarly = false
    private var probedAt: MonotonicTime?
    /// The budget for restarts is used up until then.
    private var noRestartBefore = MonotonicTime.zero
    private var strikes = 0
    private var scanningSince: MonotonicTime?
    private var planned: (action: Action, due: MonotonicTime)?
    private var nextCheck = MonotonicTime.distantFuture
    private enum Trial { case notYet, running, over }
    private var trial = Trial.notYet

    /// Everything that could be tried was tried, and the budget for more is used up.
    public private(set) var isExhausted = false

    public init() {}

    /// Whether the reset that was just asked for is one that should go deeper than a power cycle.
    public var needsBusReset: Bool { resets.count > Self.powerCycleBudget }

    /// When ``timerFired(at:)`` should be called. It does not move with each report.
    public var nextDeadline: MonotonicTime { min(planned?.due ?? .distantFuture, nextCheck) }

    // MARK: What happens

    /// The controller scans.
    ///
    /// - Parameter isContinuation: the same scan goes on with other parameters or after a pause, so the silence before
    ///   still counts.
    public mutating func scanning(at time: MonotonicTime, isContinuation: Bool = false) {
        planned = nil
        scanningSince = scanningSince ?? time
        if phase == .idle {
            silentSince = isContinuation ? time + TimeInterval(nanoseconds: -silenceBefore.nanoseconds) : time
            phase = .listening
        } else if !isContinuation {
            silentSince = time
        }
        if phase == .probing { phase = .listening }
        // The pause itself was no gap of the room.
        lastHeard = nil
        nextCheck = phase == .restarted ? time + Self.silenceAfterRestart : nextProbe
    }

    /// The scan was stopped because nobody wants it.
    public mutating func paused(at time: MonotonicTime) {
        planned = nil
        if phase != .idle { silenceBefore = time - silentSince }
        phase = .idle
        nextCheck = .distantFuture
    }

    /// An advertising report came.
    public mutating func heard(at time: MonotonicTime) {
        if let lastHeard { note(gap: time - lastHeard, at: time) }
        lastHeard = time
        silentSince = time
        if phase != .listening || hasProbedEarly || patience != 1 || isExhausted || trial != .over { settle(at: time) }
        rateCount += 1
        let isBusy = rateCount > Self.busyCount
        if isBusy {
            busyAt = time
            if phase == .listening { nextCheck = min(nextCheck, nextProbe) }
        }
        if isBusy || time - rateSince >= Self.rateWindow {
            rateSince = time
            rateCount = 0
        }
    }

    /// The controller is asked already, by somebody who needs a sign of life now.
    public mutating func asked() {
        guard phase == .listening else { return }
        phase = .probing
        nextCheck = .distantFuture
    }

    /// The controller answered the probe, so it lives.
    public mutating func probeAnswered(at time: MonotonicTime, usesExtendedCommands: Bool) -> Action {
        guard phase == .probing else { return .none }
        phase = .listening
        probedAt = time
        guard time >= judgement else {
            nextCheck = nextProbe
            return .none
        }
        if trial == .running || trial == .notYet && usesExtendedCommands, mayReset(at: time) {
            let action = trial == .running ? Action.resetToExtended : .resetToLegacy
            trial = trial == .running ? .over : .running
            return spendReset(action, at: time)
        }
        Self.forget(&restarts, before: time)
        guard restarts.count < Self.restartBudget else {
            noRestartBefore = restarts[0] + Self.hour
            nextCheck = nextProbe
            return .none
        }
        restarts.append(time)
        phase = wasBusy ? .restarted : .listening
        patience = min(patience * 2, 64)
        return .restart
    }

    /// Bring-up failed, a command was not answered, or the controller reports an error.
    public mutating func failed(_ fault: Fault, at time: MonotonicTime) -> Action {
        if let scanningSince, time - scanningSince >= Self.healthyTime { strikes = 0 }
        scanningSince = nil
        let wasProbing = phase == .probing
        phase = .idle
        silenceBefore = .zero
        nextCheck = .distantFuture
        strikes = min(strikes + 1, 1000)
        let wantsReset = fault != .hardwareError && (wasProbing || strikes >= 2 && strikes.isMultiple(of: 2))
        // A refusal may be over in a second; a controller that does not answer or has begun anew is asked at once.
        let pause = strikes > 2 ? Self.pause(strikes - 2) : fault == .refusal ? .seconds(1) : .zero
        return plan(wantsReset ? .reset : .bringUp, after: pause, at: time)
    }

    /// The reset that was asked for is not possible or not allowed here.
    public mutating func resetWasImpossible(at time: MonotonicTime) -> Action {
        plan(.bringUp, after: Self.pause(max(strikes, 3)), at: time)
    }

    /// The reset that goes with a change of commands is not possible here, so it is not tried.
    public mutating func trialWasImpossible() {
        trial = .over
        _ = resets.popLast()
    }

    /// The adapter is gone, and with it what was going on.
    public mutating func vanished() {
        phase = .idle
        silenceBefore = .zero
        scanningSince = nil
        planned = nil
        nextCheck = .distantFuture
    }

    /// ``nextDeadline`` has passed.
    public mutating func timerFired(at time: MonotonicTime) -> Action {
        if let planned, planned.due <= time {
            self.planned = nil
            return take(planned.action, at: time)
        }
        guard nextCheck <= time else { return .none }
        switch phase {
        case .idle, .probing:
            nextCheck = .distantFuture
            return .none
        case .listening:
            let limit = nextProbe
            guard limit <= time else {
                nextCheck = limit
                return .none
            }
            hasProbedEarly = true
            phase = .probing
            nextCheck = .distantFuture
            return .probe
        case .restarted:
            phase = .listening
            nextCheck = nextProbe
            return mayReset(at: time) ? spendReset(.reset, at: time) : .none
        }
    }

    // MARK: Judgement

    private var wasBusy: Bool {
        guard let busyAt else { return false }
        return silentSince - busyAt < Self.busyMemory
    }

    /// How much silence is suspicious.
    private var silence: TimeInterval {
        let gap = max(longestGap, longestGapBefore)
        let usual = min(
            max(gap.nanoseconds * Self.gapFactor, Self.minimumSilence.nanoseconds), Self.maximumSilence.nanoseconds)
        return TimeInterval(nanoseconds: min(usual * patience, Self.longestPause.nanoseconds))
    }

    /// When silence is judged, if it goes on.
    private var judgement: MonotonicTime { max(silentSince + silence, noRestartBefore) }

    /// When the controller is asked next.
    private var nextProbe: MonotonicTime {
        let since = max(probedAt ?? silentSince, silentSince)
        return min(judgement, since + (wasBusy && !hasProbedEarly ? Self.earlyProbe : Self.usualProbe))
    }

    private mutating func note(gap: TimeInterval, at time: MonotonicTime) {
        if time - gapsSince >= Self.gapMemory {
            longestGapBefore = longestGap
            longestGap = .zero
            gapsSince = time
        }
        // Past the longest silence it says nothing more, and cannot overflow.
        longestGap = max(longestGap, min(gap, Self.maximumSilence))
    }

    /// Something is heard, so whatever was suspected is over.
    private mutating func settle(at time: MonotonicTime) {
        guard phase != .idle else { return }
        phase = .listening
        patience = 1
        hasProbedEarly = false
        isExhausted = false
        trial = .over
        nextCheck = min(nextCheck, nextProbe)
    }

    private mutating func plan(_ action: Action, after pause: TimeInterval, at time: MonotonicTime) -> Action {
        if pause == .zero { return take(action, at: time) }
        planned = (action, time + pause)
        return .none
    }

    private mutating func take(_ action: Action, at time: MonotonicTime) -> Action {
        guard action == .reset else { return action }
        if mayReset(at: time) { return spendReset(.reset, at: time) }
        isExhausted = true
        return .bringUp
    }

    private mutating func mayReset(at time: MonotonicTime) -> Bool {
        Self.forget(&resets, before: time)
        return resets.count < Self.resetBudget
    }

    private mutating func spendReset(_ action: Action, at time: MonotonicTime) -> Action {
        resets.append(time)
        phase = .idle
        silenceBefore = .zero
        nextCheck = .distantFuture
        return action
    }

    private static func forget(_ times: inout [MonotonicTime], before now: MonotonicTime) {
        times.removeAll { now - $0 >= hour }
    }

    private static func pause(_ exponent: Int) -> TimeInterval {
        min(.seconds(1 << Int64(min(exponent, 12))), longestPause)
    }
}
