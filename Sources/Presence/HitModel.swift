// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// How well a radio hears a beacon: the chance that an advertising event is heard, and the times until it is.
///
/// Advertising and scanning are both periodic, so whether an event is heard depends on whether the one before was. The
/// model follows the phase of the events within the cycle of the scanner: each event moves it by the advertising
/// interval and spreads it by advDelay, and what falls into a window is heard. `docs/plan.md` explains it, compares it
/// with the simulation, and says where it does not hold.
public struct HitModel: Sendable {
    /// A beacon as far as its timing goes.
    public struct Beacon: Sendable {
        /// advInterval, at least 20 ms (Core 5.4, Vol 6, Part B, 4.4.2.2).
        public var interval: TimeInterval
        /// The share of packets that are lost for another reason than the time, 0 to less than 1.
        public var loss: Double
        /// How long a packet is on the air. An iBeacon with flags has 16 + 30 octets of 8 µs each on LE 1M.
        public var airTime: TimeInterval

        public init(
            interval: TimeInterval, loss: Double = 0, airTime: TimeInterval = TimeInterval(nanoseconds: 368_000)
        ) {
            self.interval = interval
            self.loss = loss
            self.airTime = airTime
        }

        /// From one event to the next in the mean: advDelay adds 5 ms.
        var meanStep: TimeInterval {
            TimeInterval(nanoseconds: interval.nanoseconds + HitModel.longestDelay.nanoseconds / 2)
        }
        /// From one event to the next at most.
        var longestStep: TimeInterval {
            TimeInterval(nanoseconds: interval.nanoseconds + HitModel.longestDelay.nanoseconds)
        }
    }

    /// Why the numbers may not be those of a real beacon and radio.
    public enum Limit: String, Sendable, CaseIterable {
        /// The window is not much longer than an advertising event, so that the spacing of its packets matters, which
        /// each beacon has as it likes; in addition radios need some time to tune.
        case shortWindow = "short_window"
        /// The phase creeps so slowly that the tolerance of the clocks decides how fast.
        case clockTolerance = "clock_tolerance"
    }

    /// advDelay is uniform from 0 to this (Core 5.4, Vol 6, Part B, 4.4.2.2.1).
    static let longestDelay = TimeInterval.milliseconds(10)
    /// From one packet of an event to the next: five sorts of beacon, evenly from the 0.4 to 1.5 ms that chips take.
    static let spacings = [510_000, 730_000, 950_000, 1_170_000, 1_390_000].map { TimeInterval(nanoseconds: $0) }
    /// Below this the spacing of the packets, up to 3 ms in all, is no small part of the window.
    private static let longestShortWindow = TimeInterval.milliseconds(5)
    /// A crystal of the beacon and one of the radio, 50 ppm each (Core 5.4, Vol 6, Part B, 4.2.1: active clock
    /// accuracy).
    private static let clockTolerance = 1e-4

    public let pattern: ScanPattern
    public let beacon: Beacon
    /// The share of advertising events that are heard in the long run, 0 to 1.
    public let chance: Double
    /// Packets that are heard of each event in the mean: near the change of a channel it may be two of one event.
    public let packetsPerEvent: Double

    private let chain: PhaseChain

    /// - Precondition: pattern and beacon are as their declarations say.
    public init(_ pattern: ScanPattern, _ beacon: Beacon) {
        let phases = HearingPhases(pattern, beacon)
        self.pattern = pattern
        self.beacon = beacon
        chance = phases.chance
        packetsPerEvent = phases.packets
        chain = PhaseChain(phases, step: beacon.interval, spread: Self.longestDelay)
    }

    /// Reports a second in the long run.
    public var reportRate: Double { packetsPerEvent / beacon.meanStep.seconds }

    /// The time from the moment at which the beacon comes, at any phase of itself and of the scanner, until it is
    /// heard.
    ///
    /// - Parameter share: the distribution is followed until at most this share has not been heard.
    public func firstHeard(until share: Double = 0.01) -> HearingTimes {
        let lead = TimeInterval(
            nanoseconds: Self.spacings[Self.spacings.count / 2].nanoseconds + beacon.airTime.nanoseconds)
        return HearingTimes(
            unheard: chain.unheard(from: .anywhere, until: share), lead: lead, spread: beacon.interval,
            step: beacon.meanStep)
    }

    /// The time until 99 of 100 are heard, relative to that of a radio with the same pauses that would hear as many
    /// events without any order: about 1 when the intervals do not beat, more when the beacon hides between the windows,
    /// infinite when it hides for longer than it was followed; nil when that radio would take too long as well.
    ///
    /// - Parameter times: what ``firstHeard(until:)`` gave.
    public func beatFactor(_ times: HearingTimes) -> Double? {
        let unbroken = HearingPhases(ScanPattern(window: pattern.window, interval: pattern.interval), beacon).chance
        guard unbroken > 0 else { return nil }
        var unheard: [Double] = []
        while (unheard.last ?? 1) > 0.01, unheard.count < PhaseChain.maximumEvents {
            unheard.append((unheard.last ?? 1) * (1 - unbroken))
        }
        let even = HearingTimes(unheard: unheard, lead: .zero, spread: beacon.interval, step: beacon.meanStep)
        guard var expected = even.quantile(0.99)?.seconds else { return nil }
        if let burst = pattern.burst { expected += (expected / burst.on.seconds).rounded(.up) * burst.off.seconds }
        if let time = times.quantile(0.99) { return time.seconds / expected }
        return expected < Double(times.unheard.count) * beacon.meanStep.seconds ? .infinity : nil
    }

    /// The exit time that a silence of a present beacon exceeds at most `rate` times a second, in listening time as
    /// presence counts it; nil when it is too long to be told.
    ///
    /// It knows only what follows from the radio's schedule and an even loss. Real beacons pause for reasons of their
    /// own, so it is a lower bound of what to configure. Whatever the rate, at most one silence in a hundred is longer:
    /// for a beacon that is hardly ever heard the rate alone would allow to lose it after each time.
    ///
    /// - Parameter rate: false exits of one beacon a second, more than 0.
    public func exitTime(falseExits rate: Double) -> TimeInterval? {
        guard chance > 0, rate > 0 else { return nil }
        // Of all silences between two events that are heard.
        let share = min(0.01, rate * beacon.meanStep.seconds / chance)
        guard let burst = pattern.burst else {
            guard let count = chain.unheard(from: .heard, until: share).firstIndex(where: { $0 <= share }) else {
                return nil
            }
            return TimeInterval(nanoseconds: beacon.longestStep.nanoseconds * Int64(count + 1))
        }
        let silences = silences(burst, until: share / 10)
        var longer = silences.rest
        guard longer <= share else { return nil }
        for (events, part) in silences.parts.enumerated().reversed() {
            longer += part
            if longer > share { return TimeInterval(nanoseconds: beacon.longestStep.nanoseconds * Int64(events + 1)) }
        }
        return beacon.longestStep
    }

    /// The share of silences by their listening time, in steps of the advertising interval, and the share that was not
    /// followed to its end.
    ///
    /// Where a silence began follows from where it ends, how many events it has, and the mean of an event.
    private func silences(_ burst: ScanPattern.Burst, until share: Double) -> (parts: [Double], rest: Double) {
        var parts: [Double] = []
        var rest = 1.0
        let period = burst.period.seconds
        let cell = chain.cell.seconds
        func listening(_ time: Double) -> Double {
            let bursts = (time / period).rounded(.down)
            return bursts * burst.on.seconds + min(time - bursts * period, burst.on.seconds)
        }
        chain.follow(from: .heard, until: share) { event, phases, unheard in
            rest = unheard
            let length = Double(event + 1) * beacon.meanStep.seconds
            for index in phases.indices where chain.missed[index] < 1 {
                let end = (Double(index) + 0.5) * cell
                let time = max(0, listening(end) - listening(end - length))
                let step = Int(time / beacon.meanStep.seconds)
                while parts.count <= step { parts.append(0) }
                parts[step] += phases[index] * (1 - chain.missed[index])
            }
        }
        return (parts, rest)
    }

    /// The chance that after an event that is heard neither the next one nor any of the following is, event by event.
    ///
    /// - Parameters:
    ///   - share: it is followed until it is no more than this.
    ///   - work: or until so many cells of the scanner's cycle were looked at, in millions a few milliseconds each.
    func unheard(until share: Double, work: Int) -> [Double] {
        chain.unheard(from: .heard, until: share, work: work)
    }

    /// - Parameter times: what ``firstHeard(until:)`` gave.
    public func limits(_ times: HearingTimes) -> [Limit] {
        var limits: [Limit] = []
        if pattern.window < Self.longestShortWindow { limits.append(.shortWindow) }
        if creepIsUncertain, beatFactor(times).map({ $0 > Self.beat }) ?? true { limits.append(.clockTolerance) }
        return limits
    }

    /// A ``beatFactor(_:)`` from which on intervals are said to beat.
    public static let beat = 2.0

    /// Whether the clocks change the creep of the phase by more than a twentieth. The phase creeps when a few events,
    /// fewer than windows fit into an interval, take nearly a whole number of scan intervals.
    private var creepIsUncertain: Bool {
        let interval = Double(pattern.interval.nanoseconds)
        let limit = min(64, Int(interval / Double(pattern.window.nanoseconds)))
        guard limit >= 2 else { return false }
        return (1...limit).contains { count in
            let time = Double(count) * Double(beacon.meanStep.nanoseconds)
            let creep = (time - interval * (time / interval).rounded()).magnitude
            return creep < Double(pattern.window.nanoseconds) && time * Self.clockTolerance > creep / 20
        }
    }
}

/// A distribution of the time until an event is heard.
public struct HearingTimes: Sendable {
    /// The chance that neither event *n* nor any before it is heard, from event 0 on.
    public let unheard: [Double]
    /// From the beginning of an event until it was heard.
    let lead: TimeInterval
    /// Event 0 comes within this, evenly.
    let spread: TimeInterval
    /// From event to event. The sum of many advDelays is close to its mean.
    let step: TimeInterval

    /// The time within which a share of all have been heard; nil when the distribution was not followed that far.
    public func quantile(_ share: Double) -> TimeInterval? {
        guard let event = unheard.firstIndex(where: { 1 - $0 >= share }) else { return nil }
        let before = event == 0 ? 0 : 1 - unheard[event - 1]
        let within = 1 - unheard[event] - before
        let part = within > 0 ? (share - before) / within : 1
        return TimeInterval(
            nanoseconds: lead.nanoseconds + Int64(event) * step.nanoseconds
                + Int64(part * Double(spread.nanoseconds)))
    }
}
