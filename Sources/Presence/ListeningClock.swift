// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// A moment on the clock that runs only while somebody listens.
struct ListeningTime: Comparable, Sendable {
    var nanoseconds: Int64

    static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    static func + (time: Self, interval: TimeInterval) -> Self {
        Self(nanoseconds: (MonotonicTime(nanoseconds: time.nanoseconds) + interval).nanoseconds)
    }

    static func - (later: Self, earlier: Self) -> TimeInterval {
        MonotonicTime(nanoseconds: later.nanoseconds) - MonotonicTime(nanoseconds: earlier.nanoseconds)
    }
}

/// A moment on the clock that runs as fast as evidence of absence gathers: with the listening clock while a radio
/// listens without pause, slower while the best one listens in windows.
struct EvidenceTime: Comparable, Sendable {
    var nanoseconds: Int64

    static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    static func + (time: Self, interval: TimeInterval) -> Self {
        Self(nanoseconds: (MonotonicTime(nanoseconds: time.nanoseconds) + interval).nanoseconds)
    }

    static func - (later: Self, earlier: Self) -> TimeInterval {
        MonotonicTime(nanoseconds: later.nanoseconds) - MonotonicTime(nanoseconds: earlier.nanoseconds)
    }
}

/// The monotonic clock without the times in which no radio listened, because silence in those says nothing; and how
/// much the others say.
struct ListeningClock: Sendable {
    private struct Radio {
        let name: Name
        /// What it hears of a beacon in a second, as a share of what a radio without pauses hears; 0 while it does not
        /// listen.
        var chance: Double
        var window = TimeInterval.zero
        var interval = TimeInterval.zero
        var isBlind = false
    }

    private var radios: [Radio] = []
    /// All pauses that are over.
    private var pauses = TimeInterval.zero
    private var pausedSince: MonotonicTime?
    private var changedAt = MonotonicTime(nanoseconds: .min)
    /// Where the evidence clock took on its present speed.
    private var anchor: (listening: ListeningTime, evidence: EvidenceTime)?

    /// What the best radio hears in a second of listening: more than 0, at most 1.
    private(set) var chance = 1.0
    /// Window and interval of the radio that hears best.
    private(set) var best = (window: TimeInterval.zero, interval: TimeInterval.zero)
    /// Since when no radio works; nil while one does, or pauses on purpose.
    private(set) var blindSince: MonotonicTime?

    var isListening: Bool { pausedSince == nil }

    /// The reading at a moment of the monotonic clock.
    ///
    /// Before the last change between listening and not listening it gives the reading of that change: a packet that
    /// is delivered late across a change counts as heard at the change, which lets a beacon stay a moment longer.
    func reading(at time: MonotonicTime) -> ListeningTime {
        let moment = pausedSince ?? max(time, changedAt)
        return ListeningTime(nanoseconds: (moment + TimeInterval(nanoseconds: -pauses.nanoseconds)).nanoseconds)
    }

    /// When the clock reaches a reading, if the radios go on as they do now; nil while nobody listens.
    func time(of reading: ListeningTime) -> MonotonicTime? {
        pausedSince == nil ? MonotonicTime(nanoseconds: reading.nanoseconds) + pauses : nil
    }

    /// The evidence at a reading that is not before the last change of its speed; an earlier one counts as that.
    func evidence(at reading: ListeningTime) -> EvidenceTime {
        guard let anchor else { return EvidenceTime(nanoseconds: reading.nanoseconds) }
        let elapsed = max(0, (reading - anchor.listening).nanoseconds)
        // Exact at full speed; otherwise a double holds 104 days of nanoseconds.
        let gained = chance == 1 ? elapsed : Int64(Double(elapsed) * chance)
        return anchor.evidence + TimeInterval(nanoseconds: gained)
    }

    /// The reading at which there is so much evidence, if the radios go on as they do.
    func reading(of evidence: EvidenceTime) -> ListeningTime {
        guard let anchor else { return ListeningTime(nanoseconds: evidence.nanoseconds) }
        let missing = (evidence - anchor.evidence).nanoseconds
        // Years are enough, and fit.
        let wait = chance == 1 ? missing : Int64(min((Double(missing) / chance).rounded(.up), 4e18))
        return anchor.listening + TimeInterval(nanoseconds: wait)
    }

    /// A radio that has not said what it does listens without pause. Returns what ``set(_:_:at:)`` does.
    mutating func hear(_ radio: Name, at time: MonotonicTime) -> Bool {
        radios.contains { $0.name == radio } ? false : set(Radio(name: radio, chance: 1), at: time)
    }

    /// Returns whether evidence gathers at another speed from now on.
    mutating func set(_ radio: Name, _ activity: RadioActivity, at time: MonotonicTime) -> Bool {
        switch activity {
        case .scanning(let window, let interval):
            set(
                Radio(
                    name: radio, chance: ScanBeat.chance(window: window, interval: interval), window: window,
                    interval: interval),
                at: time)
        case .paused: set(Radio(name: radio, chance: 0), at: time)
        case .blind: set(Radio(name: radio, chance: 0, isBlind: true), at: time)
        }
    }

    private mutating func set(_ radio: Radio, at time: MonotonicTime) -> Bool {
        if let index = radios.firstIndex(where: { $0.name == radio.name }) {
            radios[index] = radio
        } else {
            radios.append(radio)
        }
        blindSince = radios.allSatisfy(\.isBlind) ? blindSince ?? time : nil
        var bestRadio = radios[0]
        for radio in radios where radio.chance > bestRadio.chance { bestRadio = radio }
        if bestRadio.chance > 0, let since = pausedSince {
            pauses = TimeInterval(
                nanoseconds: (MonotonicTime(nanoseconds: pauses.nanoseconds) + (time - since)).nanoseconds)
            pausedSince = nil
            changedAt = time
        } else if bestRadio.chance == 0, pausedSince == nil {
            pausedSince = time
        }
        guard bestRadio.chance > 0 else { return false }
        best = (bestRadio.window, bestRadio.interval)
        guard bestRadio.chance != chance else { return false }
        let reading = reading(at: time)
        anchor = (reading, evidence(at: reading))
        chance = bestRadio.chance
        return true
    }
}
