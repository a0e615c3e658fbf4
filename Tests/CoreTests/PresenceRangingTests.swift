// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import TestSupport
import Testing

@Suite("Presence: ranging, proximity and clones")
struct PresenceRangingTests {
    private func region(_ name: UInt16, prefix: UInt8 = 0, isRanged: Bool = true) -> RegionRule {
        RegionRule(
            name: Name(rawValue: name),
            patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: prefix)],
            isRanged: isRanged)
    }

    // MARK: Ranging

    @Test("Once in an interval the beacons inside are listed, nearest first, unknown distances last")
    func order() {
        var probe = PresenceProbe(regions: [region(1)])
        probe.hear(1, at: 100, rssi: -80)
        probe.hear(2, at: 200, rssi: nil)
        probe.hear(3, at: 300, rssi: -50)
        probe.hear(4, at: 400, rssi: -65)
        probe.hear(4, at: 500, rssi: -63)
        probe.tick(999)
        #expect(probe.events(.ranging).isEmpty)
        #expect(probe.engine.nextDeadline == .milliseconds(1000))
        probe.tick(1000)
        let list = probe.events(.ranging)
        #expect(list.map { $0.identity?[2] } == [3, 4, 1, 2])
        #expect(list.map(\.rank) == [1, 2, 3, 4] && list.allSatisfy { $0.insideCount == 4 })
        #expect(list.allSatisfy { $0.region == Name(rawValue: 1) && $0.time == .milliseconds(1000) })
        #expect(list[1].signal == Signal(last: -63, filtered: -64, minimum: -65, maximum: -63, count: 2))
        #expect(list[3].proximity == .unknown && list[3].accuracy < 0)
    }

    @Test("The next list counts anew, and where nobody was heard there is none")
    func intervals() {
        var probe = PresenceProbe(regions: [region(1)])
        probe.hear(1, at: 100)
        probe.hear(2, at: 1500)
        probe.tick(10_000)
        let list = probe.events(.ranging)
        #expect(list.map { $0.time.nanoseconds / 1_000_000 } == [1000, 2000, 2000])
        #expect(list.map(\.signal.count) == [1, 0, 1] || list.map(\.signal.count) == [1, 1, 0])
    }

    @Test("Only regions that range are listed, each with its own beacons")
    func regions() {
        var probe = PresenceProbe(regions: [region(1, prefix: 3), region(2), region(3, isRanged: false)])
        for number: UInt8 in 1...3 { probe.hear(number, at: 100) }
        probe.tick(1000)
        #expect(probe.events(.ranging).map(\.region.rawValue) == [1, 2, 2, 2])
        #expect(probe.events(.ranging).map(\.rank) == [1, 1, 2, 3])
    }

    @Test("Extra ticks change no list", arguments: UInt64(1)...6)
    func deterministic(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var plain = PresenceProbe(regions: [region(1), region(2, prefix: 3)])
        var ticked = PresenceProbe(regions: [region(1), region(2, prefix: 3)])
        var time: Int64 = 0
        for _ in 0..<400 {
            let step = Int64(random.below(random.below(10) == 0 ? 30_000 : 900))
            ticked.tick(time + step / 3)
            ticked.tick(time + step / 2)
            time += step
            let number = UInt8(random.below(5))
            let rssi = random.below(5) == 0 ? nil : Int8(-40 - random.below(50))
            plain.hear(number, at: time, rssi: rssi)
            ticked.hear(number, at: time, rssi: rssi)
        }
        #expect(plain.events.map(presenceLine) == ticked.events.map(presenceLine), "seed \(seed)")
        #expect(plain.events(.ranging).count > 50, "seed \(seed)")
    }

    // MARK: Proximity

    @Test("A change of the proximity is told once, and a beacon at the limit does not go to and fro")
    func hysteresis() {
        var settings = enteringAtOnce()
        settings.averageOver = 1
        settings.reportInterval = .seconds(3600)
        var probe = PresenceProbe(settings)
        // 3 m is at -68.5 dBm.
        let strengths: [Int8] = [-60, -68, -69, -68, -69, -70, -71, -69, -68, -67, -66, -40]
        for (index, rssi) in strengths.enumerated() { probe.hear(1, at: Int64(index) * 1000, rssi: rssi) }
        #expect(probe.events.first?.proximity == .near)
        #expect(probe.proximities.map(\.proximity) == [.far, .near, .immediate])
        #expect(probe.proximities.map { $0.time.nanoseconds / 1_000_000_000 } == [6, 10, 11])
    }

    // MARK: Clones

    @Test("Two devices that take turns with one identity are noticed once, and their strengths are not mixed")
    func clone() {
        var probe = PresenceProbe()
        for turn in 0..<20 {
            probe.hear(1, at: Int64(turn) * 1000, rssi: turn % 2 == 0 ? -50 : -90, address: turn % 2 == 0 ? 1 : 2)
        }
        let clones = probe.events(.clone)
        #expect(clones.count == 1)
        #expect(Set([clones.first?.address.value, clones.first?.otherAddress.value]) == [1, 2])
        let last = probe.events(.sighting).last
        #expect(last?.signal.filtered == -50 || last?.signal.filtered == -90)
        #expect(probe.transitions.filter { $0.hasPrefix("exit") }.isEmpty)
    }

    @Test("A rolling address is no clone, nor a packet that came late across its change")
    func rolling() {
        var probe = PresenceProbe()
        for turn in 0..<100 { probe.hear(1, at: Int64(turn) * 1000, address: UInt64(turn / 10)) }
        probe.hear(1, at: 99_500, address: 8)
        for turn in 100..<120 { probe.hear(1, at: Int64(turn) * 1000, address: 9) }
        #expect(probe.events(.clone).isEmpty)
    }

    @Test("When one of two devices is gone, the beacon is the other one")
    func survivor() {
        var probe = PresenceProbe()
        for turn in 0..<20 {
            probe.hear(1, at: Int64(turn) * 1000, rssi: turn % 2 == 0 ? -50 : -90, address: turn % 2 == 0 ? 1 : 2)
        }
        for address: UInt64 in [1, 2] {
            for turn in 0..<60 {
                probe.hear(
                    1, at: Int64(address) * 100_000 + Int64(turn) * 1000, rssi: address == 1 ? -50 : -90,
                    address: address)
            }
            let signal = probe.events(.sighting).last?.signal
            #expect(signal?.filtered == (address == 1 ? -50 : -90))
        }
    }
}
