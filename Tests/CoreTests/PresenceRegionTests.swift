// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import Testing

@Suite("Presence: regions and reload")
struct PresenceRegionTests {
    private func rule(_ number: UInt8, alias: UInt16 = 0, exitTime: TimeInterval? = nil) -> BeaconRule {
        BeaconRule(identity: PresenceProbe.identity(number), alias: Name(rawValue: alias), exitTime: exitTime)
    }

    /// Beacons 10 to 19 share two octets, and so on.
    private func region(_ name: UInt16, _ patterns: (number: UInt8, prefix: UInt8)...) -> RegionRule {
        RegionRule(
            name: Name(rawValue: name),
            patterns: patterns.map { IdentityPattern(identity: PresenceProbe.identity($0.number), prefix: $0.prefix) })
    }

    // MARK: Regions

    @Test("A region is entered by its first beacon and left with its last")
    func firstAndLast() {
        var probe = PresenceProbe(regions: [region(1, (10, 2))])
        probe.hear(10, at: 0)
        probe.hear(11, at: 5000)
        probe.hear(20, at: 5000)
        probe.tick(22_000)
        var counts: [UInt32] = []
        probe.engine.forEachRegion { counts.append($1) }
        #expect(counts == [1])
        probe.tick(60_000)
        #expect(
            probe.transitions == [
                "enter 10 at 0", "region_enter region 1 at 0", "enter 11 at 5000", "enter 20 at 5000",
                "exit 10 at 20000 timeout", "exit 11 at 25000 timeout", "region_exit region 1 at 25000 timeout",
                "exit 20 at 25000 timeout",
            ])
        #expect(probe.events(.regionEnter).map(\.insideCount) == [1])
        #expect(probe.events(.regionExit).map(\.insideCount) == [0])
        #expect(probe.events.filter { $0.identity != nil }.allSatisfy { $0.isConfigured == ($0.identity?[2] != 20) })
    }

    @Test("Regions may overlap, patterns of one region too: a beacon counts once in each")
    func overlap() {
        var probe = PresenceProbe(
            regions: [
                region(1, (10, 3), (10, 1), (10, 3), (11, 2)), region(2, (10, 3), (25, 3)), region(3, (40, 0)),
                region(4, (30, 2)), region(5),
            ])
        for number: UInt8 in [10, 11, 25] { probe.hear(number, at: 0) }
        var counts: [UInt16: UInt32] = [:]
        probe.engine.forEachRegion { counts[$0.rawValue] = $1 }
        #expect(counts == [1: 3, 2: 2, 3: 3, 4: 0, 5: 0])
        probe.tick(60_000)
        #expect(probe.events(.regionEnter).map(\.name.rawValue).sorted() == [1, 2, 3])
        #expect(probe.events(.regionExit).map(\.name.rawValue).sorted() == [1, 2, 3])
    }

    @Test("A pattern is of one format, and longer than an identity it matches nothing")
    func formats() {
        let foreign = RegionRule(
            name: Name(rawValue: 1), patterns: [IdentityPattern(identity: presenceIdentity(1, [7]), prefix: 1)])
        var probe = PresenceProbe(regions: [foreign, region(2, (1, 4))])
        probe.hear(1, at: 0)
        #expect(probe.transitions == ["enter 1 at 0"])
        #expect(!probe.events[0].isConfigured)
    }

    // MARK: Reload

    @Test("A reload without a change says nothing")
    func sameConfiguration() {
        let rules = [rule(1)]
        let regions = [region(1, (1, 3))]
        var probe = PresenceProbe(beacons: rules, regions: regions)
        probe.hear(1, at: 0, rssi: -70)
        probe.hear(2, at: 0)
        probe.hear(1, at: 500, rssi: -60)
        probe.reconfigure(beacons: rules, regions: regions, at: 600)
        probe.hear(1, at: 1000, rssi: -50)
        probe.tick(60_000)
        #expect(
            probe.transitions == [
                "enter 1 at 0", "region_enter region 1 at 0", "enter 2 at 0", "exit 2 at 20000 timeout",
                "exit 1 at 21000 timeout", "region_exit region 1 at 21000 timeout",
            ])
        #expect(
            probe.events(.sighting)[0].signal == Signal(last: -50, filtered: -60, minimum: -60, maximum: -50, count: 2))
    }

    @Test("Who is no longer configured leaves, still under the old name, and may come back as a stranger")
    func removed() {
        var probe = PresenceProbe(beacons: [rule(1, alias: 7), rule(2, alias: 8)], regions: [region(1, (1, 3))])
        for number: UInt8 in [1, 2] { probe.hear(number, at: 0) }
        probe.reconfigure(beacons: [rule(2, alias: 9)], at: 1000)
        #expect(
            probe.transitions.suffix(2) == ["exit 1 at 1000 removed", "region_exit region 1 at 1000 removed"])
        let exit = probe.events(.exit)[0]
        #expect(exit.isConfigured && exit.name.rawValue == 7 && exit.lastSeen == .zero)
        probe.hear(1, at: 2000)
        probe.hear(2, at: 2000)
        #expect(probe.transitions.last == "enter 1 at 2000")
        #expect(probe.events(.enter).last?.isConfigured == false)
        #expect(probe.events(.sighting).map(\.name.rawValue) == [9])
    }

    @Test("A stranger that becomes configured enters anew")
    func strangerBecomesConfigured() {
        var probe = PresenceProbe()
        probe.hear(1, at: 0)
        probe.reconfigure(beacons: [rule(1)], at: 1000)
        probe.hear(1, at: 2000)
        #expect(probe.transitions == ["enter 1 at 0", "exit 1 at 1000 removed", "enter 1 at 2000"])
        #expect(probe.events.map(\.isConfigured) == [false, false, true])
    }

    @Test("Regions are told apart by name, and only changes of state are told")
    func regionsReloaded() {
        let beacons = [rule(1), rule(2), rule(3)]
        var probe = PresenceProbe(
            beacons: beacons, regions: [region(1, (1, 3)), region(2, (2, 3)), region(3, (3, 3)), region(4, (1, 3))])
        for number: UInt8 in [1, 2] { probe.hear(number, at: 0) }
        probe.reconfigure(
            beacons: beacons, regions: [region(5, (1, 3)), region(3, (2, 3)), region(2, (3, 3)), region(1, (2, 3))],
            at: 1000)
        #expect(
            probe.transitions.dropFirst(5) == [
                "region_exit region 2 at 1000 removed", "region_exit region 4 at 1000 removed",
                "region_enter region 5 at 1000", "region_enter region 3 at 1000",
            ])
        #expect(probe.events(.regionExit).allSatisfy { $0.insideCount == 0 })
    }

    @Test("New exit times hold at once, for longer and for shorter")
    func newExitTimes() {
        var probe = PresenceProbe(beacons: [rule(1), rule(2)])
        for number: UInt8 in [1, 2] { probe.hear(number, at: 0) }
        probe.reconfigure(beacons: [rule(1, exitTime: .seconds(5)), rule(2, exitTime: .seconds(40))], at: 10_000)
        #expect(probe.transitions.last == "exit 1 at 10000 timeout")
        #expect(probe.events(.exit)[0].exitTime == .seconds(5))
        probe.tick(100_000)
        #expect(probe.transitions.last == "exit 2 at 40000 timeout")
    }

    @Test("A shorter exit time while nobody listens waits until somebody does")
    func shorterWhileBlind() {
        var probe = PresenceProbe(beacons: [rule(1)])
        probe.hear(1, at: 0)
        probe.radio(1, .blind, at: 10_000)
        probe.reconfigure(beacons: [rule(1, exitTime: .seconds(5))], at: 12_000)
        probe.tick(50_000)
        #expect(probe.transitions == ["enter 1 at 0"])
        probe.radio(1, .listening, at: 60_000)
        probe.tick(60_000)
        #expect(probe.transitions.last == "exit 1 at 60000 timeout")
    }

    @Test("A smaller table evicts strangers at once, and a larger one has room")
    func tableResized() {
        var settings = enteringAtOnce()
        settings.maximumBeacons = 3
        var probe = PresenceProbe(beacons: [rule(1)])
        for number: UInt8 in 1...6 { probe.hear(number, at: Int64(number)) }
        probe.reconfigure(settings, beacons: [rule(1)], at: 100)
        #expect(probe.engine.trackedCount == 3)
        #expect(
            probe.transitions.suffix(3) == ["exit 2 at 100 evicted", "exit 3 at 100 evicted", "exit 4 at 100 evicted"])
        settings.maximumBeacons = 50
        probe.reconfigure(settings, beacons: [rule(1)], at: 200)
        for number: UInt8 in 10...40 { probe.hear(number, at: 300) }
        #expect(probe.engine.trackedCount == 34 && probe.engine.evictedCount == 3)
    }

    @Test("Another length of the average begins it anew")
    func averageResized() {
        var settings = enteringAtOnce()
        var probe = PresenceProbe(settings, beacons: [rule(1)])
        for time in 0..<9 { probe.hear(1, at: Int64(time), rssi: -90) }
        settings.averageOver = 2
        probe.reconfigure(settings, beacons: [rule(1)], at: 100)
        for (index, rssi) in [-50, -60, -70].enumerated() { probe.hear(1, at: 1000 + Int64(index), rssi: Int8(rssi)) }
        probe.hear(1, at: 2500, rssi: -80)
        #expect(probe.events(.sighting).map(\.signal.filtered) == [-50, -75])
    }

    private func changed(_ probe: inout PresenceProbe) -> [String] {
        var told: [String] = []
        probe.engine.takeChangedRegions { event in
            told.append("\(event.kind.word) \(event.insideCount) at \(event.time.nanoseconds / 1_000_000)")
        }
        return told
    }

    @Test("A count that no transition tells is told once, with its newest value")
    func counts() {
        let room = RegionRule(
            name: Name(rawValue: 1), patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: 1)])
        var probe = PresenceProbe(regions: [room])
        probe.radio(1, .listening, at: 0)
        probe.hear(1, at: 1000)
        #expect(changed(&probe).isEmpty)
        probe.hear(2, at: 2000)
        probe.hear(3, at: 3000)
        #expect(probe.events(.regionEnter).count == 1)
        #expect(changed(&probe) == ["region_known 3 at 3000"])
        #expect(changed(&probe).isEmpty)
        // The first two leave, the third is heard: one at a time, and then the last one with a transition.
        probe.hear(3, at: 20_000)
        probe.tick(21_000)
        #expect(changed(&probe) == ["region_known 2 at 21000"])
        probe.tick(22_000)
        probe.tick(40_000)
        #expect(probe.events(.regionExit).map(\.insideCount) == [0])
        #expect(changed(&probe).isEmpty)
    }

    @Test("The count of an unknown region stays that of an unknown one, and a reload tells another count")
    func countsOfUnknown() {
        func room(_ prefix: UInt8) -> RegionRule {
            RegionRule(
                name: Name(rawValue: 1),
                patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: prefix)])
        }
        let rules = [BeaconRule(identity: PresenceProbe.identity(2), exitTime: .seconds(60))]
        var probe = PresenceProbe(beacons: rules, regions: [room(3)])
        probe.radio(1, .listening, at: 0)
        probe.hear(1, at: 1000)
        probe.hear(2, at: 1000)
        probe.reconfigure(beacons: rules, regions: [room(1)], at: 2000)
        #expect(changed(&probe) == ["region_known 2 at 2000"])
        probe.radio(1, .blind, at: 3000)
        probe.radio(1, .listening, at: 200_000)
        #expect(probe.events(.regionUnknown).map(\.insideCount) == [2])
        probe.tick(230_000)
        #expect(changed(&probe) == ["region_unknown 1 at 220000"])
        // What was not told before a reload is told after it.
        probe.hear(2, at: 231_000)
        probe.hear(1, at: 231_000)
        probe.reconfigure(beacons: rules, regions: [room(1)], at: 232_000)
        #expect(changed(&probe) == ["region_known 2 at 232000"])
    }

    @Test("The state can be asked for at any time")
    func state() {
        var probe = PresenceProbe(beacons: [rule(1, alias: 7)])
        probe.hear(1, at: 1000, rssi: -70)
        probe.hear(1, at: 1500, rssi: -60)
        probe.hear(2, at: 2000)
        probe.hear(3, at: 3000)
        probe.tick(22_500)
        var states: [Event] = []
        probe.engine.forEachPresent { states.append(copy $0) }
        #expect(states.map { $0.identity?[2] } == [3])
        probe.hear(1, at: 30_000)
        states = []
        probe.engine.forEachPresent { states.append(copy $0) }
        #expect(states.map { $0.identity?[2] } == [1])
        #expect(states[0].time == .milliseconds(30_000) && states[0].lastSeen == .milliseconds(30_000))
        #expect(states[0].name.rawValue == 7 && states[0].isConfigured)
    }
}
