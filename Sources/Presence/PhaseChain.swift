// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// For each phase of the scanner's cycle, the chance that an advertising event that begins there is heard.
struct HearingPhases: Sendable {
    /// Cells of equal length, each with its mean.
    private(set) var heard: [Double]
    /// The length of a cell in nanoseconds.
    let cell: Double
    /// The mean of all phases.
    private(set) var chance = 0.0
    /// Packets heard of an event, the mean of all phases.
    private(set) var packets = 0.0

    /// Cells are at least this long: advDelay is 20 times longer and blurs whatever is finer.
    private static let shortestCell = 500_000.0
    /// And at most this long, a quarter of advDelay, so that the steps of the chain keep their shape.
    private static let longestCell = 2_500_000.0
    /// Between these limits there are at most this many.
    private static let usualCells = 40_000.0
    /// The cycle is longer than an advDelay with its edges, so that no step goes around it.
    private static let shortestCycle: Int64 = 40_000_000

    private struct Window {
        var start: Int64
        var end: Int64
        var channel: Int64
    }

    init(_ pattern: ScanPattern, _ beacon: HitModel.Beacon) {
        let (windows, cycle) = Self.windows(pattern)
        let length = max(Self.shortestCell, min(Self.longestCell, Double(cycle) / Self.usualCells))
        let count = max(1, Int((Double(cycle) / length).rounded(.up)))
        cell = Double(cycle) / Double(count)
        heard = Array(repeating: 0, count: count)
        for spacing in HitModel.spacings { add(windows, spacing, beacon) }
        chance = heard.reduce(0, +) / Double(count)
        packets /= Double(cycle)
    }

    /// The windows of a cycle that repeats.
    private static func windows(_ pattern: ScanPattern) -> (windows: [Window], cycle: Int64) {
        let interval = pattern.interval.nanoseconds
        let cycle: Int64
        let end: Int64
        if let burst = pattern.burst {
            cycle = burst.period.nanoseconds
            end = burst.on.nanoseconds
        } else {
            cycle = 3 * interval * (shortestCycle / (3 * interval) + 1)
            end = cycle
        }
        let windows = stride(from: 0, to: end, by: Int64.Stride(interval)).enumerated().map { index, start in
            Window(start: start, end: min(start + pattern.window.nanoseconds, end), channel: Int64(index % 3))
        }
        return (windows, cycle)
    }

    /// Adds beacons of one spacing. A packet is heard when it lies in a window of its channel as a whole.
    private mutating func add(_ windows: [Window], _ spacing: TimeInterval, _ beacon: HitModel.Beacon) {
        let weight = 1 / Double(HitModel.spacings.count)
        var edges: [(phase: Int64, change: Int)] = []
        for window in windows {
            let offset = window.channel * spacing.nanoseconds
            let first = window.start - offset
            let last = window.end - beacon.airTime.nanoseconds - offset
            guard first < last else { continue }
            edges.append((first, 1))
            edges.append((last, -1))
        }
        edges.sort { $0.phase < $1.phase }
        var count = 0
        for (edge, next) in zip(edges, edges.dropFirst()) {
            count += edge.change
            guard count > 0, next.phase > edge.phase else { continue }
            var lost = 1.0
            for _ in 0..<count { lost *= beacon.loss }
            fill(Double(edge.phase)..<Double(next.phase), (1 - lost) * weight)
            packets += Double(next.phase - edge.phase) * Double(count) * (1 - beacon.loss) * weight
        }
    }

    /// Adds a value to the cells of a range, to those at its ends in part.
    private mutating func fill(_ range: Range<Double>, _ value: Double) {
        var index = Int(range.lowerBound / cell)
        while index < heard.count, Double(index) * cell < range.upperBound {
            let start = max(range.lowerBound, Double(index) * cell)
            let end = min(range.upperBound, Double(index + 1) * cell)
            heard[index] += value * (end - start) / cell
            index += 1
        }
    }
}

/// The phases of events that were not heard, from event to event: a Markov chain over the cells of the cycle.
struct PhaseChain: Sendable {
    enum Beginning {
        /// At any phase, as a beacon that comes.
        case anywhere
        /// At the phases at which events are heard; that one is not counted.
        case heard
    }

    /// No distribution is followed further: about three days of a beacon with an interval of a second.
    static let maximumEvents = 250_000
    /// Nor further than this many cells times events, some seconds of a small computer.
    private static let maximumWork = 1_000_000_000

    /// For each cell of the cycle, the chance that an event that begins there is not heard.
    let missed: [Double]
    let cell: TimeInterval
    private let chance: Double
    /// The step in cells: at least `shift`, spread evenly over `width`.
    private let shift: Double
    private let width: Double

    init(_ phases: HearingPhases, step: TimeInterval, spread: TimeInterval) {
        missed = phases.heard.map { 1 - $0 }
        cell = TimeInterval(nanoseconds: Int64(phases.cell))
        chance = phases.chance
        let count = Double(missed.count)
        shift = (Double(step.nanoseconds) / phases.cell).truncatingRemainder(dividingBy: count)
        width = Double(spread.nanoseconds) / phases.cell
    }

    /// The chance that neither an event nor any before it was heard, event by event, until it is at most `share`.
    func unheard(from beginning: Beginning, until share: Double, work: Int = maximumWork) -> [Double] {
        var result: [Double] = []
        follow(from: beginning, until: share, work: work) { _, _, rest in result.append(rest) }
        return result
    }

    /// Goes from event to event until at most `share` has not been heard.
    ///
    /// - Parameter body: takes the number of the event, from 0 on, for each cell the chance that it begins there and
    ///   none before it was heard, and the chance that it was not heard either.
    func follow(
        from beginning: Beginning, until share: Double, work: Int = maximumWork,
        _ body: (Int, [Double], _ rest: Double) -> Void
    ) {
        let count = missed.count
        guard chance > 0 else { return }
        var phases: [Double]
        switch beginning {
        case .anywhere: phases = Array(repeating: 1 / Double(count), count: count)
        case .heard:
            // Heard or not, all phases are equally likely in the long run.
            phases = move(missed.map { (1 - $0) / (chance * Double(count)) })
        }
        for event in 0..<min(Self.maximumEvents, max(work / count, 1)) {
            var rest = 0.0
            for index in phases.indices { rest += phases[index] * missed[index] }
            body(event, phases, rest)
            if rest <= share { return }
            for index in phases.indices { phases[index] *= missed[index] }
            phases = move(phases)
        }
    }

    /// One event on. What is in a cell is spread evenly over it, moved, spread over ``width``, and gathered into cells:
    /// each cell gives the same to all that it reaches, and less to the two at each end.
    private func move(_ phases: [Double]) -> [Double] {
        let count = phases.count
        let first = shift.rounded(.down)
        let last = (shift + width).rounded(.down)
        let low = shift - first
        let high = shift + width - last
        let weights = (
            first: (1 - low) * (1 - low) / 2, second: 1 - low * low / 2,
            beforeLast: 1 - (1 - high) * (1 - high) / 2, last: high * high / 2
        )
        // From the cell that is reached with the longest step to the one with the shortest, the sources of a target.
        let taps = Int(last - first) + 2
        let extended = phases + (0..<taps).map { phases[$0 % count] }
        var moved = [Double](repeating: 0, count: count)
        var inner = extended[2..<taps - 2].reduce(0, +)
        var target = (Int(last) + 1) % count
        for source in 0..<count {
            moved[target] =
                (inner + weights.last * extended[source] + weights.beforeLast * extended[source + 1]
                    + weights.second * extended[source + taps - 2] + weights.first * extended[source + taps - 1])
                / width
            inner += extended[source + taps - 2] - extended[source + 2]
            target = target + 1 == count ? 0 : target + 1
        }
        return moved
    }
}
