// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import TestSupport
import Testing

@Suite("Presence: present only while near")
struct PresenceGateTests {
    private func settings(_ gate: SignalGate?) -> PresenceSettings {
        var settings = enteringAtOnce()
        settings.averageOver = 1
        settings.exitTime = .seconds(60)
        settings.gate = gate
        return settings
    }

    private func turns(_ probe: borrowing PresenceProbe) -> [String] {
        probe.events.compactMap { event in
            switch event.kind {
            case .enter: "enter \(event.time.nanoseconds / 1_000_000)"
            case .exit: "\(event.exitReason.word) \(event.time.nanoseconds / 1_000_000)"
            default: nil
            }
        }
    }

    @Test(
        "A strength that was kept to for the dwell lets it enter, one below the other bound for its dwell lets it leave"
    )
    func strengths() {
        let gate = SignalGate(.strength, enter: -70, exit: -80, enterDwell: .seconds(2), exitDwell: .seconds(3))
        var probe = PresenceProbe(settings(gate))
        let heard: [(Int64, Int8)] = [
            (0, -75), (1000, -70), (2000, -71), (3000, -70), (4000, -60), (5000, -65),  // enters
            (6000, -81), (7000, -80), (8000, -81), (9000, -90), (10_000, -90), (11_000, -85),  // leaves
            (12_000, -75), (13_000, -70), (15_000, -70),  // enters again
        ]
        for (time, rssi) in heard { probe.hear(1, at: time, rssi: rssi) }
        probe.tick(74_999)
        #expect(turns(probe) == ["enter 5000", "far 11000", "enter 15000"])
        probe.tick(75_000)
        #expect(turns(probe).last == "timeout 75000", "silence lets it leave as ever")
    }

    @Test("Distances do the same by the power at 1 m; where that is not known nobody enters")
    func distances() {
        let gate = SignalGate(.distance, enter: 2, exit: 4, exitDwell: .zero)
        var probe = PresenceProbe(settings(gate))
        // With −59 dBm at 1 m and an exponent of 2: 10 m, 1.78 m, 3.55 m, 4.47 m.
        for (index, rssi) in [Int8(-79), -64, -70, -72].enumerated() {
            probe.hear(1, at: Int64(index) * 1000, rssi: rssi)
        }
        #expect(turns(probe) == ["enter 1000", "far 3000"])
    }

    @Test("A radio that is blind keeps nobody waiting, and hurries nobody")
    func blindness() {
        let gate = SignalGate(.strength, enter: -70, exit: -80, exitDwell: .seconds(5))
        var probe = PresenceProbe(settings(gate))
        let scanning = RadioActivity.scanning(window: .milliseconds(100), interval: .milliseconds(100))
        probe.radio(1, scanning, at: 0)
        probe.hear(1, at: 0, rssi: -60)
        probe.hear(1, at: 1000, rssi: -90)
        probe.radio(1, .blind, at: 2000)
        probe.radio(1, scanning, at: 32_000)
        probe.hear(1, at: 33_000, rssi: -90)
        #expect(turns(probe) == ["enter 0"], "two seconds of listening")
        probe.hear(1, at: 36_000, rssi: -90)
        #expect(turns(probe) == ["enter 0", "far 36000"])
    }

    @Test("A sighting that another radio delivers late ends no dwell")
    func lateness() {
        let gate = SignalGate(.strength, enter: -70, exit: -80, enterDwell: .seconds(10), exitDwell: .seconds(10))
        var probe = PresenceProbe(settings(gate))
        probe.hear(1, at: 10_000, rssi: -60)
        probe.hear(1, at: 9800, rssi: -60, by: 2)
        probe.hear(1, at: 9100, rssi: -60, by: 2)
        #expect(turns(probe) == [])
        probe.hear(1, at: 20_000, rssi: -60)
        #expect(turns(probe) == ["enter 20000"])
        probe.hear(1, at: 21_000, rssi: -90)
        probe.hear(1, at: 20_500, rssi: -90, by: 2)
        #expect(turns(probe) == ["enter 20000"])
    }

    @Test("Other bounds count from the reload on")
    func reload() {
        let near = SignalGate(.strength, enter: -70, exit: nil, enterDwell: .seconds(10))
        let far = SignalGate(.strength, enter: -90, exit: nil, enterDwell: .seconds(10))
        var probe = PresenceProbe(settings(near))
        probe.hear(1, at: 0, rssi: -60)
        probe.reconfigure(settings(far), at: 9000)
        probe.hear(1, at: 10_000, rssi: -85)
        #expect(turns(probe) == [])
        probe.hear(1, at: 20_000, rssi: -85)
        #expect(turns(probe) == ["enter 20000"])
    }

    @Test("A region is left with its last beacon, and what is nearest to the beacon counts")
    func rules() {
        let near = SignalGate(.strength, enter: -60, exit: -60, exitDwell: .zero)
        let common = SignalGate(.strength, enter: -90, exit: nil)
        let region = RegionRule(
            name: Name(rawValue: 7), patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: 3)],
            gate: near)
        let own = BeaconRule(identity: PresenceProbe.identity(2), gate: near)
        var probe = PresenceProbe(settings(common), beacons: [own], regions: [region])
        for minor in UInt8(1)...3 { probe.hear(minor, at: 0, rssi: -70) }
        #expect(probe.events(.enter).count == 1, "only the third may be so far away")
        for minor in UInt8(1)...3 { probe.hear(minor, at: 1000, rssi: -60) }
        #expect(probe.events(.enter).count == 3)
        #expect(probe.events(.regionEnter).count == 1)
        for minor in UInt8(1)...3 { probe.hear(minor, at: 2000, rssi: -61) }
        #expect(probe.events(.exit).count == 2)
        #expect(probe.events(.regionExit).map(\.exitReason) == [.far])
    }

    @Test("It is as one would reckon from all that was heard", arguments: UInt64(1)...20)
    func property(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let dwells = (enter: Int64(random.below(40)) * 100, exit: Int64(random.below(60)) * 100)
        let gate = SignalGate(
            .strength, enter: -70, exit: -78, enterDwell: .milliseconds(dwells.enter),
            exitDwell: .milliseconds(dwells.exit))
        var probe = PresenceProbe(settings(gate))
        var (time, rssi, isInside) = (Int64(0), -70, false)
        var since: Int64?
        var expected: [String] = []
        for _ in 0..<2000 {
            time += Int64(1 + random.below(20)) * 100
            rssi = min(max(rssi + Int(random.below(15)) - 7, -95), -55)
            probe.hear(1, at: time, rssi: Int8(rssi))
            since = (isInside ? rssi < -78 : rssi >= -70) ? since ?? time : nil
            guard let begin = since, time - begin >= (isInside ? dwells.exit : dwells.enter) else { continue }
            expected.append("\(isInside ? "far" : "enter") \(time)")
            isInside.toggle()
            since = nil
        }
        #expect(turns(probe) == expected, "seed \(seed)")
        #expect(expected.count > 10)
    }
}
