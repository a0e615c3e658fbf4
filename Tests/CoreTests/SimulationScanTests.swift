// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Simulation
import Testing

/// When a radio hears a beacon: advertising events, channels, windows and intervals.
@Suite struct SimulationScanTests {
    /// Each advertising event has one PDU on each channel, and the radio stays on one channel for a whole scan
    /// interval. So within an interval it hears each event once, and the time between two is the advertising interval
    /// and one advDelay, exactly. Only at the change of channel an event may be heard twice or not at all.
    @Test(arguments: [1, 2, 3] as [UInt64]) func eachEventIsHeardOnceInAWindow(_ seed: UInt64) {
        let window = TimeInterval.seconds(10)
        let recording = Recording(
            Scenario(
                seed: seed, duration: .seconds(1000), radios: [.init(window: window, interval: window)],
                beacons: [.numbered(1)], noise: 0))
        var delays: [Double] = []
        for (one, next) in zip(recording.receptions, recording.receptions.dropFirst())
        where one.time.nanoseconds / window.nanoseconds == next.time.nanoseconds / window.nanoseconds {
            delays.append((next.time - one.time).seconds - 0.1)
        }
        #expect(delays.count > 9000)
        #expect(delays.allSatisfy { $0 >= 0 && $0 < 0.010 })
        // Uniform from 0 to 10 ms: mean 5 ms, standard deviation 10 ms/√12. Four standard errors.
        #expect(abs(mean(delays) - 0.005) < 4 * 0.010 / 12.0.squareRoot() / Double(delays.count).squareRoot())
        // Uniform, not just with that mean: a tenth of them in the first millisecond.
        let share = Double(delays.count { $0 < 0.001 }) / Double(delays.count)
        #expect(abs(share - 0.1) < 4 * (0.1 * 0.9 / Double(delays.count)).squareRoot())
        let tally = recording.world.tally(ofRadio: 0)
        #expect(tally.heard == recording.receptions.count)
        #expect(tally.collided == 0 && tally.faint == 0 && tally.lost == 0)
        // Two of three PDUs are on other channels.
        #expect(abs(Double(tally.heard) / Double(recording.world.transmissionCount) - 1.0 / 3) < 0.001)
    }

    /// The PDUs of an event follow each other by 0.4 to 1.5 ms. A radio that changes its channel every 2.5 ms sees
    /// them: whatever is nearer than the advertising interval is of one event, and spaced by one or two such steps, or
    /// the same PDU's successor on the channel after next.
    @Test func eventsHaveThreePDUsInAFewMilliseconds() {
        let recording = Recording(
            Scenario(
                duration: .seconds(2000), radios: [.init(window: .microseconds(2500), interval: .microseconds(2500))],
                beacons: [.numbered(1), .numbered(2, interval: .milliseconds(270))], noise: 0))
        for minor in [1, 2] {
            let times = recording.receptions.filter { $0.minor == minor }.map(\.time)
            let near = zip(times, times.dropFirst()).map { ($1 - $0).seconds }.filter { $0 < 0.05 }
            #expect(near.count > 100)
            #expect(near.allSatisfy { $0 >= 0.0004 && $0 <= 2 * 0.0015 })
            // A beacon keeps its spacing, so there are exactly the step and twice the step.
            let steps = Set(near.map { Int(($0 * 1e9).rounded()) })
            #expect(steps.count <= 2)
        }
    }

    /// An interval that does not beat with the scan interval meets all phases alike, so the share of events that are
    /// heard is that of the window, less the air time of a PDU, which has to lie in it whole.
    @Test(arguments: [11, 12, 13] as [UInt64]) func dutyHearsTheShareOfTheWindow(_ seed: UInt64) {
        let recording = Recording(
            Scenario(
                seed: seed, duration: .seconds(10_000),
                radios: [.init(window: .milliseconds(100), interval: .milliseconds(1000))],
                beacons: [.numbered(1, interval: .microseconds(152_500))], noise: 0))
        let events = Double(recording.world.transmissionCount) / 3
        let expected = (0.1 - 0.000368) / 1
        let share = Double(recording.receptions.count) / events
        // Five standard deviations of a binomial share; phases that follow each other evenly vary less.
        #expect(abs(share - expected) < 5 * (expected * (1 - expected) / events).squareRoot())
    }

    /// 1,022.5 ms and 5 ms of mean advDelay against 1,024 ms: the phase creeps by 3.5 ms an event, so it takes 29
    /// events to cross the window of 102.4 ms and 263 to come around. The share of time says a tenth, and so it is in
    /// the mean; but the beacon is heard for half a minute and then not for four.
    @Test(arguments: [1, 2, 3] as [UInt64]) func intervalsThatBeatAreSilentForMinutes(_ seed: UInt64) {
        func gaps(_ interval: TimeInterval) -> [Double] {
            Recording(
                Scenario(
                    seed: seed, duration: .seconds(10_000),
                    radios: [.init(window: .microseconds(102_400), interval: .milliseconds(1024))],
                    beacons: [.numbered(1, interval: interval)], noise: 0)
            ).gaps
        }
        let beating = gaps(.microseconds(1_022_500))
        let longest = beating.max() ?? 0
        #expect(longest > 200 && longest < 400)
        // Ten thousand seconds are about 33 rounds of 300 s.
        let silences = beating.count { $0 > 60 }
        #expect((25...40).contains(silences))
        let heardInARow = beating.count { $0 < 2 }
        #expect(heardInARow > silences * 15)

        // Nearly the same interval, but 0.77 of the scan interval: no silence of a minute.
        #expect((gaps(.microseconds(789_000)).max() ?? .infinity) < 60)
    }

    @Test func blindRadiosSayNothing() {
        let recording = Recording(
            Scenario(
                duration: .seconds(60),
                radios: [
                    .init(blind: [.seconds(10) ..< .seconds(20), .seconds(18) ..< .seconds(25)]),
                    .init(name: "sim1"),
                ], beacons: [.numbered(1)], noise: 0))
        let scanning = RadioActivity.scanning(window: .milliseconds(100), interval: .milliseconds(100))
        #expect(
            recording.activities == [
                .init(time: .zero, radio: 0, kind: .activity(scanning)),
                .init(time: .zero, radio: 1, kind: .activity(scanning)),
                .init(time: .seconds(10), radio: 0, kind: .activity(.blind)),
                .init(time: .seconds(25), radio: 0, kind: .activity(scanning)),
            ])
        func count(_ radio: Int, _ period: Range<MonotonicTime>) -> Int {
            recording.receptions.count { $0.radio == radio && period.contains($0.time) }
        }
        #expect(count(0, .seconds(10) ..< .seconds(25)) == 0)
        #expect(count(0, .zero ..< .seconds(10)) > 80)
        #expect(count(0, .seconds(25) ..< .seconds(60)) > 280)
        #expect(count(1, .seconds(10) ..< .seconds(25)) > 120)
    }

    @Test func burstsPauseAndBlindnessGoesFirst() {
        let recording = Recording(
            Scenario(
                duration: .seconds(65),
                radios: [
                    .init(
                        window: .milliseconds(30), interval: .milliseconds(40), blind: [.seconds(28) ..< .seconds(33)],
                        burst: .init(on: .seconds(10), off: .seconds(20)))
                ], beacons: [.numbered(1)], noise: 0))
        let scanning = RadioActivity.scanning(window: .milliseconds(30), interval: .milliseconds(40))
        #expect(
            recording.activities == [
                .init(time: .zero, radio: 0, kind: .activity(scanning)),
                .init(time: .seconds(10), radio: 0, kind: .activity(.paused)),
                .init(time: .seconds(28), radio: 0, kind: .activity(.blind)),
                .init(time: .seconds(33), radio: 0, kind: .activity(scanning)),
                .init(time: .seconds(40), radio: 0, kind: .activity(.paused)),
                .init(time: .seconds(60), radio: 0, kind: .activity(scanning)),
            ])
        let listening = [
            MonotonicTime.zero ..< .seconds(10), .seconds(33) ..< .seconds(40), .seconds(60) ..< .seconds(65),
        ]
        #expect(recording.receptions.count > 100)
        #expect(recording.receptions.allSatisfy { reception in listening.contains { $0.contains(reception.time) } })
    }

    /// A burst begins a new scan, and its end cuts a window short. A packet of 368 µs has to fit in what remains: here
    /// the first 2.5 ms of a cycle, and from 5 ms on until the burst ends at 7 ms.
    @Test func burstsCutWindows() {
        let recording = Recording(
            Scenario(
                duration: .seconds(2000),
                radios: [
                    .init(
                        window: .microseconds(2500), interval: .milliseconds(5),
                        burst: .init(on: .milliseconds(7), off: .microseconds(4300)))
                ], beacons: [.numbered(1)], noise: 0))
        let phases = recording.receptions.map { $0.time.nanoseconds % 11_300_000 }
        #expect(phases.count { (368_000...2_500_000).contains($0) } > 1000)
        #expect(phases.count { (5_368_000...7_000_000).contains($0) } > 1000)
        #expect(phases.allSatisfy { (368_000...2_500_000).contains($0) || (5_368_000...7_000_000).contains($0) })
    }
}
