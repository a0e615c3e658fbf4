// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import TestSupport
import Testing

/// Exit times that are learned from the silences of beacons.
@Suite("Presence: learned exit times")
struct PresenceLearningTests {
    private func settings(_ rate: String = "1/day") throws -> PresenceSettings {
        var settings = PresenceSettings()
        settings.enterCount = 1
        settings.falseExits = try #require(FalseExitRate(rate))
        settings.reportInterval = .seconds(3600)
        return settings
    }

    /// What is heard of a beacon that advertises evenly with advDelay and is lost at random.
    private struct Advertiser {
        let interval: Int64
        let loss: Double
        var time: Int64
        var random: SeededGenerator

        init(interval: Int64, loss: Double, seed: UInt64) {
            self.interval = interval
            self.loss = loss
            random = SeededGenerator(seed: seed)
            time = Int64(random.below(Int(interval)))
        }

        mutating func next() -> Int64 {
            repeat {
                time += interval + Int64(random.below(11))
            } while Double(random.below(1_000_000)) < loss * 1e6
            return time
        }
    }

    /// Lets beacons be heard for some time, in the order of time, and returns the engine.
    private func hear(
        _ beacons: inout [Advertiser], until end: Int64, _ probe: inout PresenceProbe
    ) {
        var next = beacons.indices.map { beacons[$0].next() }
        while true {
            let soonest = next.indices.min { next[$0] < next[$1] } ?? 0
            if next[soonest] > end { break }
            probe.hear(UInt8(soonest), at: next[soonest])
            next[soonest] = beacons[soonest].next()
        }
    }

    @Test(
        "The interval is learned, whatever is lost",
        arguments: [100, 318, 760, 1022, 2000, 5000, 10_000] as [Int64], [0, 0.3, 0.6])
    func interval(milliseconds: Int64, loss: Double) throws {
        var probe = PresenceProbe(try settings())
        var beacons = [Advertiser(interval: milliseconds, loss: loss, seed: UInt64(milliseconds))]
        hear(&beacons, until: milliseconds * 400, &probe)
        let found = probe.insight(0)
        let insight = try #require(found)
        let learned = try #require(insight.advertisingInterval).seconds * 1000
        #expect(abs(learned - Double(milliseconds + 5)) < 5 + 0.02 * Double(milliseconds), "\(learned) ms")
        let lost = try #require(insight.loss)
        #expect(abs(lost - loss) < 0.2, "lost \(lost)")
        #expect(insight.gapCount > 100)
    }

    @Test(
        "A new profile of a beacon is noticed", arguments: [(1000, 100), (100, 1000), (5000, 300)] as [(Int64, Int64)])
    func changedInterval(from: Int64, to: Int64) throws {
        var probe = PresenceProbe(try settings())
        var before = [Advertiser(interval: from, loss: 0.1, seed: 1)]
        hear(&before, until: from * 100, &probe)
        var after = [Advertiser(interval: to, loss: 0.1, seed: 2)]
        after[0].time += from * 100
        hear(&after, until: from * 100 + to * 200, &probe)
        let found = probe.insight(0)?.advertisingInterval
        let learned = try #require(found)
        #expect(abs(learned.seconds * 1000 - Double(to)) < 10 + 0.05 * Double(to), "\(learned)")
    }

    @Test(
        "As many false exits as were allowed, within chance",
        arguments: [("10/hour", 0.2), ("10/hour", 0.6), ("1/hour", 0.4)])
    func rate(asked: String, loss: Double) throws {
        let seed: UInt64 = 11
        var probe = PresenceProbe(try settings(asked))
        var beacons = (0..<8).map { Advertiser(interval: 1000, loss: loss, seed: seed + UInt64($0)) }
        let hours = 4
        hear(&beacons, until: Int64(hours) * 3_600_000, &probe)
        let exits = probe.events(.exit).count
        let allowed = try #require(FalseExitRate(asked)).perSecond * 3600 * Double(hours * beacons.count)
        #expect(Double(exits) < 1.5 * allowed + 6, "seed \(seed): \(exits) of \(allowed)")
        #expect(Double(exits) > allowed / 10, "seed \(seed): \(exits) of \(allowed)")
        for exit in probe.events(.exit) {
            #expect(exit.exitLimit != .fixed)
            let (asked, expected) = try #require(exit.falseExits)
            #expect(Double(asked) == Double(Float(allowed / 3600 / Double(hours * beacons.count))))
            #expect(expected > 0)
        }
    }

    @Test("A bound that is harder to keep makes a longer exit time")
    func order() throws {
        var times: [Double] = []
        for rate in ["1/day", "1/week", "1/month"] {
            var probe = PresenceProbe(try settings(rate))
            var beacons = [Advertiser(interval: 1000, loss: 0.3, seed: 4)]
            hear(&beacons, until: 3_600_000, &probe)
            let found = probe.insight(0)
            let insight = try #require(found)
            times.append(insight.exitTime.seconds)
            #expect(insight.limit == .data || insight.limit == .prior, "\(rate): \(insight.limit)")
        }
        #expect(times == times.sorted() && Set(times).count == times.count, "\(times)")
        #expect(times[0] > 3 && times[2] < 120, "\(times)")
    }

    @Test("A return soon after an exit makes the next exit time longer; one after a long absence does not")
    func feedback() throws {
        var probe = PresenceProbe(try settings())
        var beacons = [Advertiser(interval: 1000, loss: 0, seed: 3)]
        hear(&beacons, until: 600_000, &probe)
        func exitTime() throws -> Double {
            let found = probe.insight(0)
            return try #require(found).exitTime.seconds
        }
        let before = try exitTime()
        probe.hear(0, at: 600_000 + Int64(before * 1500))
        #expect(probe.events(.exit).count == 1)
        let after = try exitTime()
        #expect(after > before * 1.2, "\(before) and \(after)")
        probe.hear(0, at: 3_600_000)
        #expect(probe.events(.exit).count == 2)
        #expect(try exitTime() == after)
    }

    @Test("A radio that listens in windows makes a silence that much longer", arguments: [(50, 100), (30, 300)])
    func windows(window: Int64, interval: Int64) throws {
        var probe = PresenceProbe(try settings())
        probe.radio(1, .scanning(window: .milliseconds(100), interval: .milliseconds(100)), at: 0)
        var beacons = [Advertiser(interval: 130, loss: 0.2, seed: 3)]
        hear(&beacons, until: 600_000, &probe)
        let found = probe.insight(0)
        let insight = try #require(found)
        probe.radio(1, .scanning(window: .milliseconds(window), interval: .milliseconds(interval)), at: 600_000)
        probe.tick(3_600_000)
        let exit = try #require(probe.events(.exit).first)
        let silence = (exit.time - (exit.lastSeen ?? .zero)).seconds
        let least = insight.exitTime.seconds * Double(interval) / Double(window)
        #expect(silence >= least * 0.95, "\(silence) s with an exit time of \(insight.exitTime.seconds)")
        #expect(exit.exitTime >= insight.exitTime)
    }

    /// A beacon that is never lost, heard through windows in which its packets fall or do not.
    @Test(
        "Windows that beat with the interval make no beacon leave",
        arguments: [(300, 30, 300), (5000, 59, 195), (760, 27, 272)] as [(Int64, Int64, Int64)])
    func beats(advertising: Int64, window: Int64, interval: Int64) throws {
        let seed: UInt64 = 21
        var probe = PresenceProbe(try settings())
        probe.radio(1, .scanning(window: .milliseconds(window), interval: .milliseconds(interval)), at: 0)
        var beacon = Advertiser(interval: advertising, loss: 0, seed: seed)
        while beacon.time < 2 * 3_600_000 {
            let time = beacon.next()
            if time % interval < window { probe.hear(1, at: time) }
        }
        #expect(probe.events(.enter).count == 1, "seed \(seed)")
        #expect(probe.events(.exit).isEmpty, "seed \(seed)")
    }

    @Test("However many false exits are allowed, one event that is lost is no exit, and that is the floor")
    func floor() throws {
        var probe = PresenceProbe(try settings("10/hour"))
        var beacons = [Advertiser(interval: 1000, loss: 0, seed: 8)]
        hear(&beacons, until: 3_600_000, &probe)
        let found = probe.insight(0)
        let insight = try #require(found)
        #expect(insight.exitTime.seconds > 2.4 && insight.exitTime.seconds < 3)
        #expect(insight.limit == .floor)
    }

    @Test("Where all long silences have one length, the exit time is longer than those, or the floor")
    func cluster() throws {
        let seed: UInt64 = 17
        var random = SeededGenerator(seed: seed)
        var probe = PresenceProbe(try settings("1/hour"))
        var beacons = (0..<4).map { Advertiser(interval: 1000, loss: 0, seed: seed + UInt64($0)) }
        for hour: Int64 in 1...8 {
            for quarter: Int64 in 1...4 {
                hear(&beacons, until: (hour - 1) * 3_600_000 + quarter * 900_000 - 60_000, &probe)
                for index in beacons.indices { beacons[index].time += 29_000 + Int64(random.below(20)) }
            }
        }
        let half: Int64 = 4 * 3_600_000_000_000
        let late = probe.events(.exit).count { $0.time.nanoseconds > half }
        #expect(late <= 3, "seed \(seed): \(late) in the last four hours")
        let found = probe.insight(0)
        let insight = try #require(found)
        #expect(insight.exitTime.seconds > 30 && insight.exitTime.seconds < 46, "\(insight.exitTime)")
        #expect(insight.limit == .floor)
    }

    @Test("A beacon's bound goes before that of its region, and that before the common one")
    func nearest() throws {
        let region = RegionRule(
            name: Name(rawValue: 1), patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: 0)],
            exitTime: .seconds(9))
        let rules = [
            BeaconRule(identity: PresenceProbe.identity(1), exitTime: .seconds(7)),
            BeaconRule(identity: PresenceProbe.identity(2), falseExits: FalseExitRate("1/hour")),
        ]
        var probe = PresenceProbe(try settings(), beacons: rules, regions: [region])
        for number: UInt8 in 1...3 { probe.hear(number, at: 0) }
        func insight(_ number: UInt8) throws -> BeaconInsight {
            let found = probe.insight(number)
            return try #require(found)
        }
        #expect(try insight(1).exitTime == .seconds(7))
        #expect(try insight(1).limit == .fixed)
        #expect(try insight(2).falseExitsAsked == 1.0 / 3600)
        #expect(try insight(3).exitTime == .seconds(9))
    }

    @Test("Rates are read as people write them, and nothing else is")
    func rates() {
        #expect(FalseExitRate("1/day") == .oncePerDay)
        #expect(FalseExitRate("10/hour")?.perSecond == 10.0 / 3600)
        #expect(FalseExitRate("0.5/month")?.perSecond == 0.5 / 2_592_000)
        for text in ["", "1", "1/", "/day", "1/year", "-1/day", "0/day", "inf/day", "nan/day", "1/day/2", "1 /day"] {
            #expect(FalseExitRate(text) == nil, "\(text)")
        }
    }
}
