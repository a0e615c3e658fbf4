// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import Presence
import TestSupport
import Testing

@Suite("Presence: reports, filter and distance")
struct PresenceSignalTests {
    // MARK: Reports

    @Test("At most one report per interval, with all that was heard since the last one; the enter is the first")
    func reports() {
        var probe = PresenceProbe()
        let strengths: [Int8] = [-70, -60, -80, -65, -75]
        for (index, rssi) in strengths.enumerated() { probe.hear(1, at: Int64(index) * 300, rssi: rssi) }
        probe.hear(1, at: 2199, rssi: -50)
        probe.hear(1, at: 2200, rssi: -51)
        #expect(probe.events.map(\.time) == [.milliseconds(0), .milliseconds(1200), .milliseconds(2200)])
        #expect(probe.events.map(\.kind) == [.enter, .sighting, .sighting])
        #expect(probe.events[1].signal == Signal(last: -75, filtered: -70, minimum: -80, maximum: -60, count: 4))
        #expect(probe.events[2].signal == Signal(last: -51, filtered: -64.2, minimum: -51, maximum: -50, count: 2))
    }

    @Test("What two radios hear of one advertisement counts as two strengths of it, and a late one as what it is")
    func duplicates() {
        var probe = PresenceProbe()
        probe.hear(1, at: 0, rssi: -60)
        for time in stride(from: Int64(1000), through: 3000, by: 1000) {
            probe.hear(1, at: time, rssi: -60, by: 1)
            probe.hear(1, at: time + 2, rssi: -64, by: 2)
        }
        #expect(probe.events(.enter).count == 1)
        #expect(probe.insight(1)?.signal.filtered == -62.4, "of -64, -60, -64, -60, -64")
        // Within a second it belongs to the signal; an older one says nothing any more.
        probe.hear(1, at: 2500, rssi: -80, by: 2)
        #expect(probe.insight(1)?.signal.filtered == -65.6)
        probe.hear(1, at: 2001, rssi: -100, by: 2)
        #expect(probe.insight(1)?.signal.filtered == -65.6)
        #expect(probe.engine.lateCount == 1)
        #expect(probe.proximities.isEmpty, "one wild value of five moves nobody to another zone")
    }

    @Test("A distance comes with what the spread of its strengths makes of it")
    func uncertainty() throws {
        var settings = enteringAtOnce()
        settings.reportInterval = .zero
        var probe = PresenceProbe(settings)
        for (index, rssi) in [Int8(-60), -64, -62, -66, -58].enumerated() {
            probe.hear(1, at: Int64(index) * 1000, rssi: rssi, power: -59)
        }
        let last = try #require(probe.events(.sighting).last)
        // s = sqrt(10) dB of five strengths, so sqrt(2) dB of their mean; an exponent of 2.
        let expected = Double(last.accuracy) * log(10) / 20 * 2.0.squareRoot()
        #expect(abs(Double(last.accuracyUncertainty) - expected) < 1e-4)
        #expect(abs(last.accuracyUncertainty - 0.23) < 0.01)
        #expect(probe.events(.enter).first?.accuracyUncertainty == -1, "one strength has no spread")
        var steady = PresenceProbe(settings)
        for time in 0..<3 { steady.hear(1, at: Int64(time) * 1000, rssi: -70) }
        #expect(steady.events(.sighting).last?.accuracyUncertainty == 0)
    }

    @Test("What was heard after the last report comes with the exit")
    func remainder() {
        var probe = PresenceProbe()
        probe.hear(1, at: 0, rssi: -70)
        probe.hear(1, at: 500, rssi: -90)
        probe.tick(60_000)
        #expect(probe.events.last?.signal == Signal(last: -90, filtered: -80, minimum: -90, maximum: -90, count: 1))
    }

    @Test("An interval of nothing reports every sighting; intervals of two beacons are apart")
    func intervals() {
        var settings = enteringAtOnce()
        settings.reportInterval = .zero
        var probe = PresenceProbe(settings)
        for time in 0..<10 { probe.hear(1, at: Int64(time)) }
        #expect(probe.events(.sighting).count == 9)

        var two = PresenceProbe()
        for time in stride(from: Int64(0), through: 10_000, by: 100) {
            two.hear(1, at: time)
            two.hear(2, at: time + 50)
        }
        #expect(two.events(.sighting).count == 20)
    }

    @Test("No two reports of a beacon are closer than the interval, and no sighting is lost", arguments: UInt64(1)...10)
    func reportProperty(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var probe = PresenceProbe()
        var time: Int64 = 0
        var heard: UInt32 = 0
        for _ in 0..<2000 {
            time += Int64(random.below(1500))
            probe.hear(1, at: time)
            heard += 1
        }
        probe.tick(time + 20_000)
        let reports = probe.events.filter { $0.kind != .exit }
        for (earlier, later) in zip(reports, reports.dropFirst()) {
            #expect(later.time - earlier.time >= .seconds(1), "seed \(seed)")
        }
        #expect(probe.events.reduce(0) { $0 + $1.signal.count } == heard, "seed \(seed)")
    }

    // MARK: Filter

    @Test("The filtered strength is the mean of the last values", arguments: [1, 2, 5, 16])
    func movingAverage(length: Int) {
        var settings = enteringAtOnce()
        settings.averageOver = length
        settings.reportInterval = .zero
        var probe = PresenceProbe(settings)
        var random = SeededGenerator(seed: 5)
        var strengths: [Int] = []
        for time in 0..<100 {
            strengths.append(-30 - random.below(98))
            probe.hear(1, at: Int64(time), rssi: Int8(strengths[time]))
            let recent = strengths.suffix(length)
            #expect(probe.events.last?.signal.filtered == Float(recent.reduce(0, +)) / Float(recent.count))
        }
    }

    @Test("The filtered strength is the strongest of the last values, if so chosen", arguments: [1, 5, 16])
    func maximum(length: Int) {
        var settings = enteringAtOnce()
        settings.averageOver = length
        settings.filter = .maximum
        settings.reportInterval = .zero
        var probe = PresenceProbe(settings)
        var random = SeededGenerator(seed: 6)
        var strengths: [Int8] = []
        for time in 0..<100 {
            strengths.append(Int8(-30 - random.below(98)))
            probe.hear(1, at: Int64(time), rssi: strengths[time])
            #expect(probe.events.last?.signal.filtered == strengths.suffix(length).max().map(Float.init))
        }
    }

    @Test("A length outside of the range is taken to its end", arguments: [(-3, 1), (0, 1), (99, 16)])
    func lengthInRange(length: Int, actual: Int) {
        var settings = enteringAtOnce()
        settings.averageOver = length
        settings.reportInterval = .zero
        var probe = PresenceProbe(settings)
        for time in 0..<40 { probe.hear(1, at: Int64(time), rssi: Int8(-40 - time)) }
        let recent = (0..<40).suffix(actual).map { Float(-40 - $0) }
        #expect(probe.events.last?.signal.filtered == recent.reduce(0, +) / Float(actual))
    }

    /// Of five samples one weighs a fifth, and it is forgotten with the fifth after it.
    @Test(
        "One wild sample moves the mean by its share, and not for longer than the filter is",
        arguments: [-20, -100] as [Int8])
    func outlier(wild: Int8) {
        var settings = enteringAtOnce()
        settings.reportInterval = .zero
        var probe = PresenceProbe(settings)
        for index in 0..<11 { probe.hear(1, at: Int64(index) * 1000, rssi: index == 5 ? wild : -60) }
        let disturbed = Float(-60 * 4 + Int(wild)) / 5
        let expected = (0..<11).map { (5..<10).contains($0) ? disturbed : -60 }
        #expect(probe.events.map(\.signal.filtered) == expected)
    }

    @Test("A missing strength is evidence, not a value")
    func missingStrength() {
        var probe = PresenceProbe()
        probe.hear(1, at: 0, rssi: nil)
        #expect(probe.events[0].signal == Signal(last: nil, filtered: nil, minimum: nil, maximum: nil, count: 1))
        #expect(probe.events[0].proximity == .unknown && probe.events[0].accuracy == -1)
        probe.hear(1, at: 19_000, rssi: -60)
        probe.hear(1, at: 38_000, rssi: nil)
        #expect(probe.events[2].signal == Signal(last: nil, filtered: -60, minimum: nil, maximum: nil, count: 1))
        #expect(probe.transitions == ["enter 1 at 0"])
    }

    // MARK: Distance

    private func estimate(
        rssi: Int8?, power: Int8?, rule: Int8? = nil, exponent: Double? = nil
    ) -> (accuracy: Float, proximity: Proximity, power: Int8?) {
        let beacon = BeaconRule(identity: PresenceProbe.identity(1), measuredPower: rule, pathLossExponent: exponent)
        var probe = PresenceProbe(beacons: [beacon])
        probe.hear(1, at: 0, rssi: rssi, power: power)
        return (probe.events[0].accuracy, probe.events[0].proximity, probe.events[0].measuredPower)
    }

    @Test(
        "Proximity by the estimated distance",
        arguments: [
            (-40, .immediate), (-52, .immediate), (-53, .near), (-54, .near), (-59, .near), (-68, .near),
            (-69, .far), (-90, .far),
        ] as [(Int8, Proximity)])
    func proximity(rssi: Int8, expected: Proximity) {
        #expect(estimate(rssi: rssi, power: -59).proximity == expected)
    }

    @Test("At the measured power it is one metre; ten times as far at ten times the exponent below")
    func metres() {
        #expect(estimate(rssi: -59, power: -59).accuracy == 1)
        #expect(abs(estimate(rssi: -79, power: -59).accuracy - 10) < 1e-5)
        #expect(abs(estimate(rssi: -89, power: -59, exponent: 3).accuracy - 10) < 1e-5)
        #expect(estimate(rssi: -89, power: -59, exponent: 0).accuracy == estimate(rssi: -89, power: -59).accuracy)
        #expect(estimate(rssi: -89, power: -59, exponent: .nan).accuracy == estimate(rssi: -89, power: -59).accuracy)
    }

    @Test("The estimate agrees with the C library's power function, and is never absurd")
    func agreesWithLibrary() {
        for rssi in Int8.min...20 {
            for power: Int8 in [-100, -77, -59, -20] {
                for exponent in [1, 1.7, 2, 4, 10] {
                    let expected = min(pow(10, (Double(power) - Double(rssi)) / (10 * exponent)), 1000)
                    let accuracy = Double(estimate(rssi: rssi, power: power, exponent: exponent).accuracy)
                    #expect(abs(accuracy - expected) <= expected * 1e-6, "\(rssi) \(power) \(exponent)")
                }
            }
        }
    }

    @Test("Calibrated power first, then the frame's if it can be true, then the common one; none is none")
    func measuredPower() {
        #expect(estimate(rssi: -70, power: -65).power == -65)
        #expect(estimate(rssi: -70, power: -65, rule: -55).power == -55)
        #expect(estimate(rssi: -70, power: nil, rule: -55).power == -55)
        for implausible: Int8 in [-128, -101, -19, -3, 0, 127] {
            #expect(estimate(rssi: -70, power: implausible).power == -59)
        }
        #expect(estimate(rssi: -70, power: -100).power == -100)
        #expect(estimate(rssi: -70, power: -20).power == -20)
        let none = estimate(rssi: -70, power: nil)
        #expect(none.power == nil && none.accuracy == -1 && none.proximity == .unknown)
    }

    @Test("A frame without a claim does not take an earlier claim back")
    func claimStays() {
        var probe = PresenceProbe()
        probe.hear(1, at: 0, power: -65)
        probe.hear(1, at: 2000, power: nil)
        #expect(probe.events[1].measuredPower == -65)
    }
}
