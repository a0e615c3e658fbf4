// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import Testing

/// An engine with a log of what came out of it. Times are in milliseconds.
struct PresenceProbe: ~Copyable {
    var engine: PresenceEngine
    /// Everything but `proximity`.
    private(set) var events: [Event] = []
    private(set) var proximities: [Event] = []

    init(_ settings: PresenceSettings = enteringAtOnce(), beacons: [BeaconRule] = [], regions: [RegionRule] = []) {
        engine = PresenceEngine(settings: settings, beacons: beacons, regions: regions)
    }

    mutating func hear(
        _ number: UInt8, at time: Int64, rssi: Int8? = -70, power: Int8? = -59, by adapter: UInt16 = 1,
        address: UInt64 = 0xC1_0000_0000_01
    ) {
        let sighting = Sighting(
            time: .milliseconds(time), identity: Self.identity(number),
            address: .init(value: address, kind: .randomDevice), rssi: rssi, measuredPower: power,
            adapter: Name(rawValue: adapter))
        note(engine.take(.sighting(sighting)))
    }

    mutating func radio(_ adapter: UInt16, _ activity: RadioActivity, at time: Int64) {
        note(engine.take(.radio(Name(rawValue: adapter), activity, time * 1_000_000)))
    }

    mutating func tick(_ time: Int64) { note(engine.take(.tick(time * 1_000_000))) }

    mutating func reconfigure(
        _ settings: PresenceSettings = enteringAtOnce(), beacons: [BeaconRule] = [], regions: [RegionRule] = [],
        at time: Int64
    ) {
        var emitted: [Event] = []
        engine.reconfigure(settings: settings, beacons: beacons, regions: regions, at: .milliseconds(time)) {
            emitted.append(copy $0)
        }
        note(emitted)
    }

    private mutating func note(_ new: [Event]) {
        for event in new { if event.kind == .proximity { proximities.append(event) } else { events.append(event) } }
    }

    func insight(_ number: UInt8) -> BeaconInsight? { engine.insight(of: Self.identity(number)) }

    static func identity(_ number: UInt8) -> BeaconIdentity { presenceIdentity(0, [7, number / 10, number]) }

    /// `enter 1 at 0`, without sightings.
    var transitions: [String] {
        events.filter(\.isTransition).map { event in
            let subject = event.identity.map { "\($0[2])" } ?? "region \(event.name.rawValue)"
            let reason = event.kind == .exit || event.kind == .regionExit ? " \(event.exitReason.word)" : ""
            return "\(event.kind.word) \(subject) at \(event.time.nanoseconds / 1_000_000)\(reason)"
        }
    }

    func events(_ kind: Event.Kind) -> [Event] { events.filter { $0.kind == kind } }
}

extension MonotonicTime {
    static func milliseconds(_ milliseconds: Int64) -> Self { .zero + .milliseconds(milliseconds) }
}

extension RadioActivity {
    static var listening: Self { .scanning(window: .milliseconds(100), interval: .milliseconds(100)) }
}

@Suite("Presence: enter and exit")
struct PresenceRulesTests {
    // MARK: Enter

    @Test("The first sighting is an enter with its signal, unless more are asked for")
    func entersAtOnce() {
        var probe = PresenceProbe()
        probe.hear(1, at: 5, rssi: -61)
        #expect(probe.transitions == ["enter 1 at 5"])
        #expect(probe.events[0].signal == Signal(last: -61, filtered: -61, minimum: -61, maximum: -61, count: 1))
        #expect(!probe.events[0].isConfigured)
        #expect(probe.engine.presentCount == 1)
    }

    @Test("Enough sightings without a long silence between them are an enter")
    func entersAfterSeveral() {
        var settings = enteringAtOnce()
        settings.enterCount = 3
        settings.enterGap = .seconds(10)
        var probe = PresenceProbe(settings)
        probe.hear(1, at: 0)
        probe.hear(1, at: 9999)
        #expect(probe.events.isEmpty)
        #expect(probe.engine.trackedCount == 1)
        probe.hear(1, at: 19_998)
        #expect(probe.transitions == ["enter 1 at 19998"])
        #expect(probe.events[0].signal.count == 3)
    }

    @Test("Stray packets are no enter, and are forgotten")
    func strayPackets() {
        var settings = enteringAtOnce()
        settings.enterCount = 2
        settings.enterGap = .seconds(10)
        var probe = PresenceProbe(settings)
        for hour in 0..<24 { probe.hear(1, at: Int64(hour) * 3_600_000) }
        probe.hear(2, at: 24 * 3_600_000)
        probe.hear(2, at: 24 * 3_600_000 + 10_000)
        #expect(probe.events.isEmpty)
        probe.tick(25 * 3_600_000)
        #expect(probe.engine.trackedCount == 0)
        #expect(probe.engine.nextDeadline == .distantFuture)
    }

    @Test("A candidate's silence does not count while nobody listens")
    func candidateAcrossPause() {
        var settings = enteringAtOnce()
        settings.enterCount = 2
        settings.enterGap = .seconds(10)
        var probe = PresenceProbe(settings)
        probe.radio(1, .listening, at: 0)
        probe.hear(1, at: 5000)
        probe.radio(1, .paused, at: 10_000)
        probe.radio(1, .listening, at: 60_000)
        probe.hear(1, at: 64_000)
        #expect(probe.transitions == ["enter 1 at 64000"])
    }

    // MARK: Exit

    @Test("The exit comes from the timer, at the moment of the deadline, whenever the engine is asked")
    func exitIsExact() {
        var probe = PresenceProbe()
        probe.hear(1, at: 1000, by: 7, address: 0xAB)
        #expect(probe.engine.nextDeadline == .milliseconds(21_000))
        probe.tick(20_999)
        #expect(probe.events.count == 1)
        probe.tick(3_600_000)
        #expect(probe.transitions == ["enter 1 at 1000", "exit 1 at 21000 timeout"])
        let exit = probe.events[1]
        #expect(exit.lastSeen == .milliseconds(1000))
        #expect(exit.exitTime == .seconds(20))
        #expect(exit.adapter == Name(rawValue: 7) && exit.address.value == 0xAB)
        #expect(probe.engine.presentCount == 0 && probe.engine.trackedCount == 0)
    }

    @Test("Another beacon's sighting also lets the time pass; a sighting at the deadline is a return")
    func exitBeforeSighting() {
        var probe = PresenceProbe()
        probe.hear(1, at: 0)
        probe.hear(2, at: 1000)
        probe.hear(1, at: 20_000)
        probe.hear(3, at: 30_000)
        #expect(
            probe.transitions == [
                "enter 1 at 0", "enter 2 at 1000", "exit 1 at 20000 timeout", "enter 1 at 20000",
                "exit 2 at 21000 timeout", "enter 3 at 30000",
            ])
    }

    @Test("A stale deadline is not an exit")
    func staleDeadline() {
        var probe = PresenceProbe()
        for second in 0...100 { probe.hear(1, at: Int64(second) * 1000) }
        #expect(probe.transitions == ["enter 1 at 0"])
        probe.tick(1_000_000)
        #expect(probe.transitions.last == "exit 1 at 120000 timeout")
    }

    @Test("Under a burst of 10 of 60 s, silence counts only in the bursts")
    func burst() {
        var probe = PresenceProbe()
        for minute in 0..<5 {
            probe.radio(1, .listening, at: Int64(minute) * 60_000)
            if minute == 0 { probe.hear(1, at: 4000) }
            probe.radio(1, .paused, at: Int64(minute) * 60_000 + 10_000)
            #expect(probe.engine.nextDeadline == .distantFuture)
        }
        // 6 s of the first burst, 10 s of the second, 4 s of the third.
        #expect(probe.transitions == ["enter 1 at 4000", "exit 1 at 124000 timeout"])
    }

    @Test("While no radio works, nobody leaves; and who stayed neither leaves nor enters")
    func blindness() {
        var probe = PresenceProbe()
        probe.radio(1, .listening, at: 0)
        for second in 0...30 { probe.hear(1, at: Int64(second) * 1000) }
        probe.hear(2, at: 30_000)
        probe.radio(1, .blind, at: 30_500)
        probe.tick(600_000)
        #expect(probe.engine.nextDeadline == .distantFuture)
        probe.radio(1, .listening, at: 630_500)
        // After a blindness longer than blind_hold the silence begins anew.
        #expect(probe.engine.nextDeadline <= .milliseconds(650_500))
        for second in 631...700 { probe.hear(1, at: Int64(second) * 1000) }
        #expect(probe.transitions == ["enter 1 at 0", "enter 2 at 30000", "exit 2 at 650500 timeout"])
    }

    @Test("A deadline at the very moment of the pause still counts")
    func deadlineAtPause() {
        var probe = PresenceProbe()
        probe.hear(1, at: 0)
        probe.radio(1, .paused, at: 20_000)
        #expect(probe.transitions.last == "exit 1 at 20000 timeout")
    }

    @Test("One radio that listens is enough, and one that never said anything listens")
    func severalRadios() {
        var probe = PresenceProbe()
        probe.radio(1, .listening, at: 0)
        probe.radio(2, .listening, at: 0)
        probe.hear(1, at: 0)
        probe.radio(1, .blind, at: 5000)
        probe.radio(2, .paused, at: 10_000)  // ten seconds of silence so far
        probe.radio(1, .listening, at: 50_000)
        probe.tick(100_000)
        #expect(probe.transitions.last == "exit 1 at 60000 timeout")

        probe.hear(2, at: 100_000, by: 3)
        probe.radio(1, .blind, at: 101_000)
        probe.tick(200_000)
        #expect(probe.transitions.last == "exit 2 at 120000 timeout")
    }

    @Test("A window of nothing is not listening")
    func emptyWindow() {
        var probe = PresenceProbe()
        probe.radio(1, .scanning(window: .zero, interval: .milliseconds(100)), at: 0)
        probe.hear(1, at: 0)
        probe.tick(100_000)
        #expect(probe.transitions == ["enter 1 at 0"])
    }

    @Test("A beacon's own rule replaces the common one")
    func ownRule() {
        let rule = BeaconRule(
            identity: PresenceProbe.identity(1), alias: Name(rawValue: 9), enterCount: 2, exitTime: .seconds(5))
        var probe = PresenceProbe(beacons: [rule])
        for number: UInt8 in [1, 2] { probe.hear(number, at: 0) }
        for number: UInt8 in [1, 2] { probe.hear(number, at: 1000) }
        probe.tick(100_000)
        #expect(
            probe.transitions == [
                "enter 2 at 0", "enter 1 at 1000", "exit 1 at 6000 timeout", "exit 2 at 21000 timeout",
            ])
        for event in probe.events {
            #expect(event.isConfigured == (event.identity == rule.identity))
            #expect(event.name == (event.identity == rule.identity ? Name(rawValue: 9) : .none))
        }
    }

    // MARK: Late sightings

    @Test("A late sighting does not move the beacon's last moment back")
    func lateSighting() {
        var probe = PresenceProbe()
        probe.hear(1, at: 10_000, rssi: -50, by: 1, address: 1)
        probe.hear(1, at: 9900, rssi: -70, by: 2, address: 2)
        probe.hear(1, at: 11_000, rssi: -60, by: 1, address: 1)
        probe.hear(1, at: 9999, rssi: -10)  // more than a second older
        probe.tick(100_000)
        #expect(probe.transitions == ["enter 1 at 10000", "exit 1 at 31000 timeout"])
        #expect(
            probe.events(.sighting).map(\.signal) == [
                Signal(last: -60, filtered: -60, minimum: -70, maximum: -60, count: 2)
            ])
        #expect(probe.events(.exit)[0].signal == Signal(last: -60, filtered: -60))
        #expect(probe.engine.lateCount == 1)
    }

    @Test("A sighting that is late by itself still prolongs the stay")
    func lateButNewest() {
        var probe = PresenceProbe()
        probe.hear(1, at: 0)
        probe.tick(19_000)
        probe.hear(1, at: 15_000)
        probe.tick(100_000)
        #expect(probe.transitions == ["enter 1 at 0", "exit 1 at 35000 timeout"])
        #expect(probe.events(.sighting).map(\.time) == [.milliseconds(19_000)])
    }

    @Test("A sighting whose exit would already be over is no enter")
    func lateStranger() {
        var probe = PresenceProbe()
        probe.tick(50_000)
        probe.hear(1, at: 30_000)
        #expect(probe.events.isEmpty && probe.engine.trackedCount == 0)
        #expect(probe.engine.lateCount == 1)
        probe.hear(2, at: 30_001)
        probe.tick(60_000)
        #expect(probe.transitions == ["enter 2 at 50000", "exit 2 at 50001 timeout"])
    }

    @Test("Times at both ends of the clock do not trap")
    func extremeTimes() {
        var probe = PresenceProbe()
        let input = { (time: Int64) in
            PresenceInput.sighting(
                Sighting(
                    time: .init(nanoseconds: time), identity: PresenceProbe.identity(1), address: .anonymous, rssi: -70,
                    measuredPower: -59, adapter: .none))
        }
        var kinds: [Event.Kind] = []
        for time in [Int64.min, -1, 0, .max - 1, .max, .min] { kinds += probe.engine.take(input(time)).map(\.kind) }
        probe.radio(1, .blind, at: 0)
        probe.radio(1, .listening, at: 0)
        #expect(kinds.prefix(3) == [.enter, .exit, .enter])
    }

    // MARK: Table

    @Test("When the table is full, strangers give way: those that never entered first, the longest unheard first")
    func eviction() {
        var settings = enteringAtOnce()
        settings.maximumBeacons = 4
        settings.enterCount = 2
        let rule = BeaconRule(identity: PresenceProbe.identity(9), enterCount: 1)
        var probe = PresenceProbe(settings, beacons: [rule])
        for number: UInt8 in [1, 1, 2, 2, 3, 9] { probe.hear(number, at: 0) }
        probe.hear(1, at: 100)  // now 2 is the stranger that was heard the longest ago
        probe.hear(4, at: 200)  // in place of 3
        #expect(probe.engine.evictedCount == 1 && probe.engine.trackedCount == 4)
        #expect(probe.transitions == ["enter 1 at 0", "enter 2 at 0", "enter 9 at 0"])
        probe.hear(4, at: 300)
        probe.hear(5, at: 400)  // in place of 2
        probe.hear(5, at: 500)
        probe.hear(6, at: 600)  // in place of 1
        #expect(
            probe.transitions.dropFirst(3) == [
                "enter 4 at 300", "exit 2 at 400 evicted", "enter 5 at 500", "exit 1 at 600 evicted",
            ])
        #expect(probe.engine.trackedCount == 4)
        probe.tick(100_000)
        #expect(probe.engine.trackedCount == 0)
    }

    @Test("What the configuration knows keeps its place; what has a rule of its own always gets one")
    func configuredKeepPlaces() {
        var settings = enteringAtOnce()
        settings.maximumBeacons = 2
        let region = RegionRule(
            name: Name(rawValue: 50), patterns: [IdentityPattern(identity: PresenceProbe.identity(10), prefix: 2)])
        var probe = PresenceProbe(
            settings, beacons: [BeaconRule(identity: PresenceProbe.identity(1))], regions: [region])
        for number: UInt8 in [10, 11, 12, 2] { probe.hear(number, at: 0) }
        #expect(probe.engine.refusedCount == 2)
        probe.hear(1, at: 0)
        #expect(probe.transitions == ["enter 10 at 0", "region_enter region 50 at 0", "enter 11 at 0", "enter 1 at 0"])
        #expect(probe.engine.trackedCount == 3)
    }

    @Test("A flood of identities leaves the table bounded and the configured beacon alone")
    func flood() {
        var settings = enteringAtOnce()
        settings.maximumBeacons = 100
        var probe = PresenceProbe(settings, beacons: [BeaconRule(identity: PresenceProbe.identity(1))])
        var exits = 0
        for number in 0..<20_000 {
            let time = Int64(number)
            if number.isMultiple(of: 1000) { probe.hear(1, at: time) }
            let stranger = presenceIdentity(1, [UInt8(number >> 8 & 255), UInt8(number & 255), 1])
            let sighting = Sighting(
                time: .milliseconds(time), identity: stranger, address: .anonymous, rssi: -80, measuredPower: nil,
                adapter: .none)
            exits += probe.engine.take(.sighting(sighting)).count { $0.kind == .exit }
            if probe.engine.trackedCount > 100 { Issue.record("\(probe.engine.trackedCount) beacons are tracked") }
        }
        #expect(exits == 20_000 - 99)
        #expect(probe.transitions == ["enter 1 at 0"])
    }
}
