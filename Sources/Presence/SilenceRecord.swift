// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What was learned of the timing of one beacon, in a fixed size.
struct SilenceRecord: Sendable {
    /// How the exit time follows from what was learned.
    struct Bounds: Sendable, Equatable {
        /// False exits a second.
        var rate: Double
        var floor: TimeInterval
        var ceiling: TimeInterval
    }

    /// The exit time of a beacon of which no interval is known: one of 10 s that lost five packets has it.
    static let beginning = TimeInterval.seconds(60)
    /// Silences in evidence time, by ``SilenceBins``.
    var counts = [24 of UInt16](repeating: 0)
    /// Of ``counts``, at most ``capacity``.
    var total: UInt16 = 0
    // Here they fill a word; see `shortest`.
    private var tooShortCount: UInt8 = 0
    private var leastMultiple: UInt8 = .max
    var gapCount: UInt32 = 0
    /// Seconds from one advertisement to the next; 0 until it is known.
    var interval: Float = 0
    /// The mean silence in seconds of evidence.
    var meanSilence: Float = 0
    /// The mean silence on the monotonic clock: what the radios do makes it longer.
    var meanDuration: Float = 0
    /// How many intervals a silence lasts in the mean.
    var meanMultiple: Float = 1
    /// How a wrong interval is noticed: the shortest of the silences that were too short for it, their number, and the
    /// least multiple of it among the last silences.
    private var shortest: Float = .infinity
    /// As that of the pool, for this beacon alone.
    var margin: Float = 0
    private(set) var exitTime = SilenceRecord.beginning
    /// False exits a second that the exit time is expected to make.
    private(set) var expectedRate: Float = 0
    private(set) var limit = Event.ExitLimit.prior
    /// Whether it is the least that is allowed, so that a lower margin would not make it shorter.
    private var isShortest = false
    private var multipleCount: UInt8 = 0
    /// Silences since the radios took up another schedule, up to 255.
    private var scheduleCount: UInt8 = 0

    /// The exit time follows from at least so many silences.
    static let leastCount: UInt32 = 4
    /// Half is forgotten at this many: a beacon that changed is believed after some thousand silences.
    static let capacity: UInt16 = 16_384
    /// The first silences lead to a new exit time at each fourth, later ones at each 32nd.
    private static let isNew: UInt32 = 64
    /// The next exit time after a false exit is at most a quarter longer.
    private static let longestStep: Float = 0.25
    /// Seconds in which the false exits that are allowed raise the margin by no more than one step.
    private static let calmTime: Float = 10_800
    static let margins: ClosedRange<Float> = 0...3
    /// Means go over so many silences.
    private static let meanLength: UInt32 = 256
    /// As many intervals of silence count for the mean.
    private static let longestMultiple: Float = 64
    /// No silence is shorter than the least advertising interval, 20 ms; what is came from the same event, by another
    /// channel or another radio.
    static let sameEvent = TimeInterval.milliseconds(15)
    /// Who was watched for so many times as long as it would be hidden is not.
    private static let manyTimes = 4.0
    /// Radios of one machine deliver the same event within this.
    static let sameEventOfRadios = TimeInterval.milliseconds(100)

    /// What a silence is at least, in seconds of evidence. A radio that listens in windows hears too few neighbours to
    /// know the interval, but then its silences tell.
    var usualSilence: Double { Double(min(interval, meanSilence)) }

    /// The share of advertisements that are not heard, beside those for which the radio had no window; nil until known.
    func loss(chance: Double) -> Double? {
        guard gapCount >= 8 else { return nil }
        return min(max(1 - 1 / (Double(meanMultiple) * chance), 0), 1)
    }

    /// All silences together, in seconds of evidence.
    private var allSilences: Double {
        let centers = SilenceBins.centers
        let lengths = centers.span
        var sum = 0.0
        let counts = counts.span
        for bin in lengths.indices { sum += Double(counts[bin]) * lengths[bin] }
        return sum
    }

    /// Seconds from one advertising event to the next.
    ///
    /// Windows that hear only every third event let the interval seem three times as long, but then more is heard than
    /// such a beacon could send. It may also be one that beats with the windows and has not been hidden yet.
    ///
    /// - Parameter hidden: how long one of the interval that was learned is hidden, in seconds of evidence.
    func step(hidden: Double) -> Double {
        let evidence = allSilences
        guard evidence > Self.manyTimes * hidden, total > 0 else { return Double(interval) }
        return Double(interval) / max((Double(interval) * Double(total) / evidence).rounded(), 1)
    }

    var advertisingInterval: TimeInterval? {
        interval > 0 && gapCount >= Self.leastCount ? TimeInterval(nanoseconds: Int64(Double(interval) * 1e9)) : nil
    }

    /// Takes a silence that ended, and says whether the exit time should be determined anew.
    ///
    /// - Parameters:
    ///   - evidence: its length in evidence time.
    ///   - time: its length on the monotonic clock.
    ///   - isUnbroken: whether somebody listened all the time.
    ///   - chance: what the best radio hears in a second.
    ///   - rate: false exits a second that are allowed; nil with a fixed exit time.
    mutating func learn(
        evidence: TimeInterval, time: TimeInterval, isUnbroken: Bool, chance: Double, allowed rate: Double?,
        pool: inout SilencePool
    ) -> Bool {
        gapCount = gapCount == .max ? gapCount : gapCount + 1
        let oldPool = SilencePool.index(usualSilence)
        let length = Float(evidence.seconds)
        let share = 1 / Float(min(gapCount, Self.meanLength))
        meanSilence += (length - meanSilence) * share
        meanDuration += (Float(time.seconds) - meanDuration) * share
        scheduleCount = max(scheduleCount, scheduleCount &+ 1)
        if isUnbroken { learnInterval(Float(time.seconds), chance) }
        let bin = SilenceBins.index(evidence.seconds)
        let newPool = SilencePool.index(usualSilence)
        count(bin)
        pool.add(bin, to: newPool)
        // At the floor nothing would come of a lower margin, but the next false exits.
        if let rate, !isShortest {
            let allowed = rate * time.seconds
            margin = max(margin - Self.step(rate) * Float(allowed), Self.margins.lowerBound)
            pool.noFalseExit(expected: allowed, at: rate)
        }
        return oldPool != newPool || gapCount % (gapCount <= Self.isNew ? 4 : 32) == 0
    }

    /// - Parameter rate: false exits a second that are allowed.
    mutating func falseExit(allowed rate: Double, _ pool: inout SilencePool) {
        margin = min(margin + Self.step(rate), Self.margins.upperBound)
        pool.falseExit(at: rate)
    }

    /// What one false exit raises the margin by: by a quarter where at most eight a day are allowed, and by as much as a
    /// quarter for those of three hours where more are. A time that moves to and fro makes more of them than one that
    /// stays in the middle.
    private static func step(_ rate: Double) -> Float { longestStep / max(Float(rate) * calmTime, 1) }

    private mutating func count(_ bin: Int) {
        counts[bin] += 1
        total += 1
        guard total >= Self.capacity else { return }
        total = 0
        for bin in 0..<SilenceBins.count {
            counts[bin] /= 2
            total += counts[bin]
        }
    }

    /// Silences are multiples of the interval, each event up to 10 ms late, so that the shortest ones show it. A silence
    /// between two events of which the second was heard late may be shorter once, but not again and again.
    private mutating func learnInterval(_ gap: Float, _ chance: Double) {
        guard interval > 0 else { return interval = gap }
        let ratio = gap / interval
        meanMultiple += (min(max(ratio, 1), Self.longestMultiple) - meanMultiple) / 32
        if ratio < 0.75 {
            tooShortCount += 1
            shortest = min(shortest, gap)
            if tooShortCount >= 3 { begin(shortest) }
            return
        }
        let multiple = ratio.rounded()
        let tolerance: Float = 0.012 + 0.02 * interval
        // A long silence tells it more exactly, while there is no doubt which multiple it is. Short ones seem shorter than
        // they are, because those that creep slowly stay in a window for longer.
        if abs(gap - multiple * interval) < min(tolerance * max(multiple / 2, 1), max(tolerance, 0.2 * interval)) {
            interval += (gap / multiple - interval) / (gapCount < 16 ? 4 : 16)
        }
        leastMultiple = min(leastMultiple, UInt8(min(multiple, 255)))
        multipleCount += 1
        guard multipleCount >= 32 else { return }
        // A radio that listens half of the time or less hears hardly ever two in a row.
        if leastMultiple > 1, chance > 0.5 {
            begin(interval * Float(leastMultiple))
        } else {
            begin(interval)
        }
    }

    private mutating func begin(_ interval: Float) {
        if interval != self.interval { meanMultiple = 1 }
        self.interval = interval
        shortest = .infinity
        tooShortCount = 0
        leastMultiple = .max
        multipleCount = 0
    }

    /// The radios take up another schedule, with which the beacon has had no silences yet.
    mutating func scheduleChanged() { scheduleCount = 0 }

    /// Determines the exit time from everything that is known now.
    ///
    /// - Parameter hidden: how long the schedule of the radios may hide the beacon, in seconds of evidence.
    mutating func determineExitTime(_ bounds: Bounds, pool: SilencePool, hidden: Double) {
        guard gapCount >= Self.leastCount else {
            exitTime = min(max(Self.beginning, bounds.floor), bounds.ceiling)
            limit = exitTime == bounds.floor ? .floor : exitTime == bounds.ceiling ? .ceiling : .prior
            isShortest = limit == .floor
            return
        }
        let index = SilencePool.index(usualSilence)
        let model = SilenceModel(
            counts, pool: pool[index], poolTotal: pool.total(index), usualSilence: usualSilence)
        // Of the time between two silences nobody may have listened for a part.
        let stretch = max(1, Double(meanDuration / max(meanSilence, 1e-3)))
        let asked = bounds.rate * model.mean * stretch
        let share = min(asked, Self.largestShare)
        // Twice as long after a change, and less so with each silence.
        let caution = 2 - Double(scheduleCount) / Double(UInt8.max)
        let factor = Exponential.exp(Double(margin) + pool.margin) * caution
        var seconds = model.quantile(share) * factor
        limit = asked > share ? .floor : model.isOwn ? .data : .prior
        if seconds < hidden * caution {
            seconds = hidden * caution
            limit = asked > share ? .floor : .prior
        }
        let floor = max(Self.fewestIntervals * usualSilence, bounds.floor.seconds)
        if seconds <= floor {
            seconds = floor
            limit = .floor
        } else if seconds >= bounds.ceiling.seconds {
            seconds = bounds.ceiling.seconds
            limit = .ceiling
        }
        exitTime = TimeInterval(nanoseconds: Int64(seconds * 1e9))
        let expected = model.share(longerThan: seconds / factor)
        expectedRate = Float(expected / (model.mean * stretch))
        isShortest = limit == .floor
        if expected < asked / 10, limit != .ceiling { limit = .floor }
    }

    /// At most one silence in a hundred is longer than the exit time, however many exits are allowed.
    static let largestShare = 0.01
    /// The exit time is at least so many usual silences: after one event that is lost, the next one may come late.
    private static let fewestIntervals = 2.5
}
