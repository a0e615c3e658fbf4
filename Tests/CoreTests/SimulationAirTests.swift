// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Testing

@testable import Simulation

/// Strength, loss and collisions.
@Suite struct SimulationAirTests {
    @Test(arguments: [(1.0, 2.0), (4.0, 2.0), (10.0, 2.0), (5.0, 3.0), (0.5, 2.5)])
    func meanStrengthFollowsThePathLoss(_ distance: Double, _ exponent: Double) {
        let noise = 3.0
        let recording = Recording(
            Scenario(
                seed: 5, duration: .seconds(1000), radios: [.unmoving], beacons: [.numbered(1, distance: distance)],
                pathLossExponent: exponent, noise: noise))
        let strengths = recording.receptions.map { Double($0.rssi) }
        let expected = -59 - 10 * exponent * logarithmOf10[distance, default: .nan]
        // Rounding to whole dB adds a variance of 1/12.
        let deviation = (noise * noise + 1.0 / 12).squareRoot()
        #expect(strengths.count > 9000)
        #expect(abs(mean(strengths) - expected) < 4 * deviation / Double(strengths.count).squareRoot())
        let variance = mean(strengths.map { ($0 - expected) * ($0 - expected) })
        // The variance of a normal sample varies by √(2/n) of itself.
        #expect(abs(variance / (deviation * deviation) - 1) < 4 * (2 / Double(strengths.count)).squareRoot())
    }

    /// From a table, not from the function that is tested.
    private let logarithmOf10: [Double: Double] = [1: 0, 4: 0.60206, 10: 1, 5: 0.69897, 0.5: -0.30103]

    @Test func logarithm() {
        #expect(naturalLogarithm(1) == 0)
        #expect(abs(naturalLogarithm(2.718281828459045) - 1) < 1e-15)
        #expect(abs(commonLogarithm(1000) - 3) < 1e-14)
        #expect(abs(commonLogarithm(1.5) - 0.17609125905568124) < 1e-15)
        #expect(abs(commonLogarithm(1e-300) + 300) < 1e-12)
    }

    @Test func whatIsTooFaintIsNotHeard() {
        // −59 − 20 log 100 = −99 dBm, and at 50 m −93 dBm.
        let recording = Recording(
            Scenario(
                duration: .seconds(60), radios: [.unmoving],
                beacons: [.numbered(1, distance: 100), .numbered(2, distance: 50)], noise: 0))
        #expect(!recording.receptions.contains { $0.minor == 1 })
        #expect(recording.receptions.count { $0.minor == 2 } > 500)
        #expect(recording.world.tally(ofRadio: 0).faint > 500)
    }

    /// With noise a beacon on the edge of the sensitivity is heard half of the time.
    @Test func sensitivityIsAnEdgeInNoise() {
        var radio = Scenario.Radio.unmoving
        radio.sensitivity = -79
        let recording = Recording(
            Scenario(duration: .seconds(1000), radios: [radio], beacons: [.numbered(1, distance: 10)], noise: 4))
        let count = Double(recording.world.transmissionCount / 3)
        #expect(abs(recording.share() - 0.5) < 4 * (0.25 / count).squareRoot())
        #expect(recording.receptions.allSatisfy { $0.rssi >= -79 })
    }

    @Test func lossIsAShare() {
        let recording = Recording(
            Scenario(
                duration: .seconds(1000), radios: [.unmoving], beacons: [.numbered(1) { $0.loss = 0.3 }], noise: 0))
        let count = Double(recording.world.transmissionCount / 3)
        #expect(abs(recording.share() - 0.7) < 4 * (0.3 * 0.7 / count).squareRoot())
    }

    @Test func wallsWeakenWhatIsBehindThem() {
        let recording = Recording(
            Scenario(
                duration: .seconds(60), radios: [.unmoving],
                beacons: [.numbered(1, distance: 1), .numbered(2, distance: 10)], noise: 0,
                walls: [
                    .init(distance: 5, attenuation: 7),
                    .init(attenuation: 4, period: .seconds(20) ..< .seconds(40)),
                ]))
        for reception in recording.receptions {
            // The wall counts from the start of a PDU, of which the reception is the end.
            let isClosed = (20.0004..<40.0003).contains(reception.time.seconds)
            let expected = (reception.minor == 1 ? -59 : -79 - 7) - (isClosed ? 4 : 0)
            #expect(reception.rssi == expected, "at \(reception.time.seconds) s")
        }
        #expect(recording.receptions.count > 1000)
    }

    @Test func beaconsMoveStraightBetweenTheirWaypoints() {
        let recording = Recording(
            Scenario(
                duration: .seconds(40), radios: [.unmoving],
                beacons: [
                    .numbered(1) {
                        $0.path = [
                            .init(time: .seconds(10), distance: 10), .init(time: .seconds(20), distance: 1),
                            .init(time: .seconds(30), distance: 100),
                        ]
                    }
                ], noise: 0))
        func rssi(at time: Double) -> Int? {
            recording.receptions.last { $0.time.seconds <= time }?.rssi
        }
        #expect(rssi(at: 9) == -79)
        // Half way, 5.5 m: −59 − 14.8.
        #expect(rssi(at: 15) == -74)
        // The last one before 20 s is at most 110 ms and so 0.1 m away.
        #expect(rssi(at: 20).map { (-60)...(-59) ~= $0 } == true)
        // 50.5 m: −59 − 34.1.
        #expect(rssi(at: 25) == -93)
        // 100 m: −99 dBm, too faint.
        #expect(!recording.receptions.contains { $0.time > .seconds(31) })
    }

    /// Pure ALOHA: a PDU of length τ survives when no other starts within τ before or after its own start. One other
    /// beacon of mean interval T does so with probability 2τ/T; with equal strengths none captures. A radio that
    /// changes its channel all the time sees the same, also of what began before it came to the channel.
    @Test(arguments: [
        (10, Scenario.Radio.unmoving), (50, .unmoving), (200, .unmoving),
        (200, .init(window: .microseconds(2500), interval: .microseconds(2500))),
    ])
    func collisionsFollowTheDensity(_ count: Int, _ radio: Scenario.Radio) {
        let recording = Recording(
            Scenario(
                seed: 9, duration: .seconds(count == 200 ? 60 : 300), radios: [radio],
                beacons: (0..<count).map { .numbered($0) }, noise: 0))
        var expected = 1.0
        for _ in 1..<count { expected *= 1 - 2 * 0.000368 / 0.105 }
        // The binomial deviation is at most 0.0015; but collisions of a pair come in runs, because its phase drifts
        // only by some milliseconds an event.
        #expect(abs(recording.share() - expected) < 0.008, "\(recording.share()) against \(expected)")
    }

    /// A beacon 7 dB above a crowd loses what overlaps; 9 dB above, nothing, and the crowd still loses against it.
    @Test(arguments: [(7, false), (9, true)]) func theStrongerOneIsCapturedByAMargin(_ above: Int8, isCaptured: Bool) {
        let recording = Recording(
            Scenario(
                duration: .seconds(60), radios: [.unmoving],
                beacons: [.numbered(0) { $0.measuredPower += above }] + (1...100).map { .numbered($0) }, noise: 0))
        let events = Double(recording.world.transmissionCount) / 3 / 101
        let heard = Double(recording.receptions.count { $0.minor == 0 })
        #expect(isCaptured ? heard >= events - 2 : heard < events * 0.7)
        #expect(recording.world.tally(ofRadio: 0).collided > 10_000)
    }

    /// Every PDU is accounted for, on every radio, whatever the radio does.
    @Test func everyPDUIsAccountedFor() {
        let recording = Recording(
            Scenario(
                duration: .seconds(100),
                radios: [
                    .init(window: .milliseconds(30), interval: .milliseconds(50), blind: [.seconds(5) ..< .seconds(9)]),
                    .init(window: .milliseconds(10), interval: .milliseconds(10), sensitivity: -70),
                ],
                beacons: (0..<60).map { .numbered($0, distance: Double($0)) { $0.loss = 0.1 } }, noise: 6))
        for radio in 0...1 {
            let tally = recording.world.tally(ofRadio: radio)
            let sum = tally.heard + tally.missed + tally.faint + tally.collided + tally.lost
            // A PDU that had not ended when the world did is not decided.
            #expect((0...3).contains(recording.world.transmissionCount - sum))
            #expect(min(tally.heard, tally.missed, tally.faint, tally.collided, tally.lost) > 100)
            #expect(tally.heard == recording.receptions.count { $0.radio == radio })
        }
    }

    /// What a PDU is compared with is what is on the air beside it, not what has been: 500 beacons at 105 ms put
    /// 500 × 0.368/105 ≈ 1.8 PDUs at a time on each channel. With so much noise some capture the others, which are
    /// then still there to be seen.
    @Test func onlyNeighboursInTimeAreKept() {
        var world = RadioWorld(
            Scenario(
                duration: .seconds(20), radios: [.unmoving], beacons: (0..<500).map { .numbered($0) }, noise: 20))
        var packet: [UInt8] = []
        var most = 0
        while world.next(into: &packet) != nil { most = max(most, world.receivers[0].onAir.count) }
        #expect(world.transmissionCount > 250_000)
        #expect((3...25).contains(most), "\(most)")
    }

    @Test func reportsComeInTheOrderOfTime() {
        var world = RadioWorld(
            Scenario(
                duration: .seconds(60), radios: [.init(), .init(blind: [.seconds(3) ..< .seconds(4)])],
                beacons: (0..<40).map { number in
                    .init(
                        advertisement: .payload([UInt8](repeating: 0, count: number % 32)),
                        interval: .milliseconds(50))
                }))
        var packet: [UInt8] = []
        var last = MonotonicTime.zero
        var count = 0
        while let occurrence = world.next(into: &packet) {
            #expect(occurrence.time >= last)
            last = occurrence.time
            count += 1
        }
        #expect(count > 10_000)
        #expect(last < .seconds(60))
        #expect(world.next(into: &packet) == nil, "an ended world stays ended")
    }
}
