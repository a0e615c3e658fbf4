// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import Simulation
import Testing

/// The model against numbers worked by hand and against the simulation: the 12 cases of `docs/plan.md`.
@Suite struct HitModelTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var number: Int
        var pattern: ScanPattern
        var interval: TimeInterval
        var loss = 0.0
        /// Median, 95 % and 99 % in seconds, worked by hand.
        var hand: [Double]
        var beats = false
        /// Enough that the noise of each quantile stays well below 5 %.
        var beacons = 5000

        var testDescription: String { "case \(number)" }
    }

    private static func pattern(_ window: Int64, _ interval: Int64, burst: (Int64, Int64)? = nil) -> ScanPattern {
        ScanPattern(
            window: .microseconds(window), interval: .microseconds(interval),
            burst: burst.map { ScanPattern.Burst(on: .seconds($0.0), off: .seconds($0.1)) })
    }

    static let cases = [
        Case(
            number: 1, pattern: pattern(100_000, 100_000), interval: .milliseconds(100),
            hand: [0.0517, 0.0970, 0.1011]),
        Case(
            number: 2, pattern: pattern(100_000, 100_000), interval: .milliseconds(1000), loss: 0.3,
            hand: [0.721, 2.678, 3.950]),
        Case(
            number: 3, pattern: pattern(30_000, 30_000), interval: .milliseconds(100), hand: [0.0526, 0.0988, 0.1666]),
        Case(number: 4, pattern: pattern(5000, 10_000), interval: .milliseconds(100), hand: [0.121, 0.507, 0.784]),
        Case(
            number: 5, pattern: pattern(5000, 10_000), interval: .microseconds(318_750), loss: 0.4,
            hand: [0.696, 2.988, 4.589]),
        Case(
            number: 6, pattern: pattern(500_000, 1_500_000), interval: .milliseconds(495),
            hand: [0.749, 1.422, 1.481]),
        Case(
            number: 7, pattern: pattern(250_000, 500_000), interval: .milliseconds(1245), hand: [1.253, 2.375, 2.489]),
        Case(
            number: 8, pattern: pattern(100_000, 100_000, burst: (10, 50)), interval: .milliseconds(1000),
            hand: [21.0, 48.0, 50.4]),
        Case(
            number: 9, pattern: pattern(102_500, 1_023_750), interval: .microseconds(1_022_500),
            hand: [112.3, 238.5, 249.7], beats: true, beacons: 4000),
        Case(
            number: 10, pattern: pattern(128_125, 1_280_000), interval: .milliseconds(1285),
            hand: [66.1, 140.4, 147.0], beats: true, beacons: 4000),
        Case(
            number: 11, pattern: pattern(100_000, 1_000_000), interval: .milliseconds(2000),
            hand: [160.5, 340.9, 356.9], beats: true, beacons: 4000),
        Case(
            number: 12, pattern: pattern(100_000, 100_000, burst: (1, 9)), interval: .milliseconds(5000),
            hand: [1502, 3754, 3954], beats: true, beacons: 4000),
    ]

    private static let chances: [(Case, Double, Double)] = {
        let open = 102.132
        return [
            // All but 2.268 ms of 300 ms: a packet and two spacings before the radio goes back to channel 37.
            (cases[0], 1 - 2.268 / 300, (100 - 0.368) / 100 / 0.105),
            (cases[3], 4.632 / 10, 4.632 / 10 / 0.105),
            (cases[8], open / 1023.75, open / 1023.75 / 1.0275),
            // A burst of 10 s has 100 intervals.
            (cases[7], (10 - 33 * 0.002268) / 60, (10 - 100 * 0.000368) / 60 / 1.005),
        ]
    }()

    private static let rates: [(Case, Double)] = [
        (cases[3], 0.01), (cases[1], 0.002), (cases[8], 0.001), (cases[2], 0.003),
    ]

    private static let shares = [0.5, 0.95, 0.99]

    @Test(arguments: cases) func agreesWithHandAndSimulation(_ example: Case) throws {
        let model = HitModel(example.pattern, .init(interval: example.interval, loss: example.loss))
        let times = model.firstHeard()
        let simulated = Self.simulate(example)
        for (share, hand) in zip(Self.shares, example.hand) {
            let time = try #require(times.quantile(share)).seconds
            #expect(abs(time / hand - 1) < 0.05, "\(share): \(time) by the model, \(hand) by hand")
            let measured = simulated[Int(share * Double(simulated.count))]
            #expect(abs(time / measured - 1) < 0.05, "\(share): \(time) by the model, \(measured) simulated")
        }
        let beatFactor = try #require(model.beatFactor(times))
        #expect((beatFactor >= HitModel.beat) == example.beats, "\(beatFactor)")
        #expect(!model.limits(times).contains(.shortWindow))
    }

    /// When each of many beacons was first heard, in seconds after it came, in order. Each has a world of its own; they
    /// come evenly spread over the scanner's cycle.
    private static func simulate(_ example: Case) -> [Double] {
        let cycle = example.pattern.burst?.period.nanoseconds ?? example.pattern.interval.nanoseconds * 3
        var packet: [UInt8] = []
        var times: [Double] = []
        for number in 0..<example.beacons {
            let share = (Double(number) + 0.5) / Double(example.beacons)
            let arrival = MonotonicTime(nanoseconds: Int64(share * Double(cycle)))
            var world = RadioWorld(
                scenario(example, duration: .seconds(1_000_000), seed: UInt64(number)) {
                    $0.visits = [arrival ..< .distantFuture]
                })
            while let occurrence = world.next(into: &packet) {
                guard occurrence.kind == .packet else { continue }
                times.append((occurrence.time - arrival).seconds)
                break
            }
        }
        #expect(times.count == example.beacons)
        return times.sorted()
    }

    private static func scenario(
        _ example: Case, duration: TimeInterval, seed: UInt64, _ change: (inout Scenario.Beacon) -> Void = { _ in }
    ) -> Scenario {
        let radio = Scenario.Radio(
            window: example.pattern.window, interval: example.pattern.interval,
            burst: example.pattern.burst.map { Scenario.Burst(on: $0.on, off: $0.off) })
        let beacon = Scenario.Beacon.numbered(1, interval: example.interval) {
            $0.loss = example.loss
            change(&$0)
        }
        return Scenario(seed: seed, duration: duration, radios: [radio], beacons: [beacon], noise: 0)
    }

    /// Chance and rate of reports, by hand and by counting in a long simulation.
    @Test(arguments: HitModelTests.chances)
    func chanceIsTheShareOfPhases(_ example: Case, _ chance: Double, _ rate: Double) {
        let model = HitModel(example.pattern, .init(interval: example.interval, loss: example.loss))
        #expect(abs(model.chance - chance) < 0.002 * chance, "\(model.chance) \(chance)")
        #expect(abs(model.reportRate - rate) < 0.002 * rate, "\(model.reportRate) \(rate)")
        let duration = 20_000.0
        let recording = Recording(Self.scenario(example, duration: .seconds(20_000), seed: 5))
        #expect(abs(Double(recording.receptions.count) / duration / rate - 1) < 0.05)
    }

    /// Silences longer than the proposed exit time come as often as was allowed, or up to four times less, because a
    /// number of events is whole.
    @Test(arguments: HitModelTests.rates)
    func exitTimeKeepsTheRateOfFalseExits(_ example: Case, _ rate: Double) throws {
        let model = HitModel(example.pattern, .init(interval: example.interval, loss: example.loss))
        let exitTime = try #require(model.exitTime(falseExits: rate)).seconds
        let duration = (200_000 * (example.interval.seconds + 0.005)).rounded()
        let recording = Recording(Self.scenario(example, duration: .seconds(Int64(duration)), seed: 9))
        let falseExits = Double(recording.gaps.count { $0 > exitTime }) / duration
        #expect(falseExits <= rate * 1.2, "\(falseExits) a second with \(exitTime) s")
        // One event less is not enough.
        let step = example.interval.seconds + 0.010
        let more = Double(recording.gaps.count { $0 > exitTime - 1.05 * step }) / duration
        #expect(more >= rate * 0.8, "\(more) a second with \(exitTime - step) s")
    }

    /// Presence counts listening time, so the pauses of a schedule are no part of an exit time.
    @Test(arguments: [0.0, 0.3]) func exitTimesOfBurstsAreListeningTime(_ loss: Double) throws {
        let example = Case(
            number: 0, pattern: Self.pattern(30_000, 60_000, burst: (3, 7)), interval: .milliseconds(300), loss: loss,
            hand: [])
        let rate = 1.0 / 400
        let exitTime = try #require(
            HitModel(example.pattern, .init(interval: example.interval, loss: loss)).exitTime(falseExits: rate))
        let duration = 60_000.0
        let recording = Recording(Self.scenario(example, duration: .seconds(60_000), seed: 3))
        func listening(_ time: MonotonicTime) -> Double {
            let bursts = (time.seconds / 10).rounded(.down)
            return bursts * 3 + min(time.seconds - bursts * 10, 3)
        }
        let times = recording.receptions.map { listening($0.time) }
        let silences = zip(times, times.dropFirst()).map { $1 - $0 }
        func falseExits(_ limit: Double) -> Double { Double(silences.count { $0 > limit }) / duration }
        #expect(falseExits(exitTime.seconds) <= rate * 1.2)
        #expect(falseExits(exitTime.seconds - 2 * 0.310) >= rate * 0.8)
    }

    @Test func limitsAreNamed() {
        func limits(_ window: Int64, _ interval: Int64, _ beacon: Int64) -> [HitModel.Limit] {
            let model = HitModel(Self.pattern(window, interval), .init(interval: .microseconds(beacon)))
            return model.limits(model.firstHeard())
        }
        #expect(limits(2500, 2500, 100_000) == [.shortWindow])
        #expect(limits(5000, 10_000, 100_000) == [])
        #expect(limits(102_500, 1_023_750, 1_022_500) == [])
        // 765 ms is one and a half of 510 ms to the microsecond: only the advDelay moves the phase.
        #expect(limits(50_000, 510_000, 760_000) == [.clockTolerance])
        // 10.005 s are ten scan intervals and 5 ms; 100 ppm of it are 1 ms, a fifth of that creep.
        #expect(limits(100_000, 1_000_000, 10_000_000) == [.clockTolerance])
        #expect(limits(100_000, 100_000, 10_000_000) == [])
    }

    /// A packet of 368 µs fits into no window of 300 µs.
    @Test func whatIsNeverHeardHasNoTimes() {
        let deaf = HitModel(Self.pattern(300, 10_000), .init(interval: .milliseconds(100)))
        #expect(deaf.chance == 0 && deaf.reportRate == 0)
        #expect(deaf.firstHeard().quantile(0.5) == nil)
        #expect(deaf.beatFactor(deaf.firstHeard()) == nil)
        #expect(deaf.exitTime(falseExits: 1) == nil)
    }

    @Test func patternsKnowTheirDutyAndBursts() {
        let pattern = Self.pattern(30_000, 60_000, burst: (2, 3))
        #expect(abs(pattern.duty - 0.2) < 1e-12)
        let start = MonotonicTime.seconds(7)
        for (time, isOn, until) in [
            (7.0, true, 9.0), (8.999, true, 9), (9, false, 12), (12, true, 14), (6, true, 9),
        ] {
            #expect(pattern.isScanning(at: .seconds(time), since: start) == (isOn, until: .seconds(until)), "\(time)")
        }
        #expect(Self.pattern(30_000, 60_000).isScanning(at: start, since: start) == (true, until: .distantFuture))
    }
}
