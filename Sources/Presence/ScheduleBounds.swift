// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// How long the windows of a radio hide a beacon that is here, as ``HitModel`` says.
///
/// The model takes milliseconds, so it is asked once for a class of beacons and not for each of them. What counts of an
/// advertising interval is where in the scan interval it brings the next event: a thousand intervals share some hundred
/// classes.
struct ScheduleBounds: Sendable {
    /// For each class, the events after one that is heard until no more than a share of the silences goes on.
    private struct Curve: Sendable {
        /// The share of events that are heard.
        var chance = 0.0
        /// For the shares 10^-0.5, 10^-1, and so on.
        var events = [17 of Float](repeating: .infinity)
    }

    /// What is known of one schedule.
    private struct Schedule: Sendable {
        let window: TimeInterval
        let interval: TimeInterval
        /// By phase and loss; nil until somebody asked.
        var curves: [Curve?]
    }

    private var schedules: [Schedule] = []
    /// No curve is made before this, so that a crowd does not stop everything for seconds.
    private var nextCurve = MonotonicTime(nanoseconds: .min)

    /// A radio has a few profiles that it goes back and forth between.
    private static let scheduleCount = 4
    private static let pauseBetweenCurves = TimeInterval.milliseconds(100)
    /// Phases are told apart by a millisecond, as well as intervals are learned, while there are no more than this many.
    private static let phaseCount = 512
    /// Losses of 0, 1/4, 1/2 and 3/4.
    private static let lossCount = 4
    /// Learned intervals are off by this many seconds or less.
    private static let intervalError = 0.0016
    /// For classes that are not points and learned intervals that are not exact.
    private static let slack = 1.15
    /// With more events to a beat the windows hide little.
    private static let longestBeat = 3
    /// The mean of advDelay is part of an interval that was learned.
    private static let meanDelay = 0.005
    /// Cells times events: some ten milliseconds. What comes later goes on as it went on last.
    private static let work = 8_000_000
    private static let halfDecade = 1.151_292_546_497_023
    /// The schedule may use as much of the rate as false exits come in this many seconds, a hundredth of one a day. When
    /// they should be rare, they are left to silences that have other reasons, and the longer time costs little: what a
    /// schedule hides falls off fast.
    private static let budgetTime = 900.0

    /// Listening time in seconds that a silence of a beacon exceeds at most `rate` times a second; nil when the windows
    /// hide nothing, or when nothing is known of the class and it is too early to find out.
    ///
    /// - Parameters:
    ///   - step: seconds from one advertising event to the next in the mean, more than 0.
    ///   - loss: the share of packets that are lost for another reason than the schedule.
    mutating func exitTime(
        window: TimeInterval, interval: TimeInterval, step: Double, loss: Double, falseExits rate: Double,
        at now: MonotonicTime
    ) -> Double? {
        guard window > .zero, window < interval, step > 0 else { return nil }
        let schedule = place(window, interval)
        let cycle = interval.seconds
        let phases = schedules[schedule].curves.count / Self.lossCount
        let turns = step / cycle
        let phase = min(Int((turns - turns.rounded(.down)) * Double(phases)), phases - 1)
        let lossClass = min(max(Int(loss * Double(Self.lossCount)), 0), Self.lossCount - 1)
        let index = phase * Self.lossCount + lossClass
        if schedules[schedule].curves[index] == nil {
            guard now >= nextCurve else { return nil }
            nextCurve = now + Self.pauseBetweenCurves
            let offset = Self.nearestBeat((Double(phase) + 0.5) / Double(phases) * cycle, cycle: cycle)
            schedules[schedule].curves[index] = Self.curve(
                window, interval, offset: offset, loss: Double(lossClass) / Double(Self.lossCount))
        }
        guard let curve = schedules[schedule].curves[index], curve.chance > 0 else { return nil }
        let budget = rate * min(1, rate * Self.budgetTime)
        let share = min(budget * step / curve.chance, SilenceRecord.largestShare)
        // Between two of them the number grows with the logarithm, as it does in the long run.
        let position = max(0, -Exponential.log(share) / Self.halfDecade - 1)
        let first = min(Int(position), curve.events.count - 2)
        let part = min(position - Double(first), 1)
        let events = (1 - part) * Double(curve.events[first]) + part * Double(curve.events[first + 1])
        return events * step * Self.slack
    }

    private mutating func place(_ window: TimeInterval, _ interval: TimeInterval) -> Int {
        if let place = schedules.firstIndex(where: { $0.window == window && $0.interval == interval }) { return place }
        if schedules.count == Self.scheduleCount { schedules.removeFirst() }
        let phases = min(max(Int(interval.seconds * 1000), 1), Self.phaseCount)
        schedules.append(
            Schedule(
                window: window, interval: interval, curves: Array(repeating: nil, count: phases * Self.lossCount)))
        return schedules.count - 1
    }

    /// An offset, or the beat that is so near that the learned interval cannot tell them apart: there a beacon is hidden
    /// the longest.
    private static func nearestBeat(_ offset: Double, cycle: Double) -> Double {
        for events in 1...longestBeat {
            let beat = (offset / cycle * Double(events)).rounded() * cycle / Double(events)
            if (offset - beat).magnitude < intervalError { return beat }
        }
        return offset
    }

    /// - Parameter offset: what is left of the step from event to event after whole scan intervals, in seconds.
    private static func curve(
        _ window: TimeInterval, _ interval: TimeInterval, offset: Double, loss: Double
    ) -> Curve {
        var advertising = TimeInterval(nanoseconds: Int64((offset - meanDelay) * 1e9))
        while advertising < .milliseconds(20) {
            advertising = TimeInterval(nanoseconds: advertising.nanoseconds + interval.nanoseconds)
        }
        let model = HitModel(ScanPattern(window: window, interval: interval), .init(interval: advertising, loss: loss))
        var curve = Curve(chance: model.chance)
        let unheard = model.unheard(until: 1e-9, work: work)
        guard let rest = unheard.last, rest < 1 else { return curve }
        let last = unheard.count - 1
        let tail = max(last / 4, min(last, 1))
        // By which the logarithm of the share falls with each event at the end.
        let fall = tail > 0 && rest > 0 ? Exponential.log(unheard[last - tail] / rest) / Double(tail) : .infinity
        var event = 0
        var share = 1.0
        for index in curve.events.indices {
            share *= 0.316_227_766_016_837_94
            while event < last, unheard[event] > share { event += 1 }
            let missing = unheard[event] > share ? Exponential.log(unheard[event] / share) / fall : 0
            curve.events[index] = Float(Double(event + 1) + missing)
        }
        return curve
    }
}
