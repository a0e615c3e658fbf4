// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import Testing

/// What went wrong in other programs, from their public reports.
@Suite("Presence: known wrong answers")
struct PresenceCasesTests {
    private func settings(exitTime seconds: Int64) -> PresenceSettings {
        var settings = enteringAtOnce()
        settings.exitTime = .seconds(seconds)
        return settings
    }

    @Test("RSSI 127 keeps out of the mean, and is still a sighting (android-beacon-library#186, #546)")
    func strengthNotAvailable() {
        var settings = enteringAtOnce()
        settings.reportInterval = .zero
        var probe = PresenceProbe(settings)
        let strengths: [Int8?] = [-61, -60, nil, -62, -61, nil, -60]
        for (index, rssi) in strengths.enumerated() {
            probe.hear(1, at: Int64(index) * 19_000, rssi: rssi)
        }
        #expect(probe.events.count == 7)
        #expect(probe.transitions == ["enter 1 at 0"])
        #expect(probe.events.last?.signal.filtered == -60.8)
    }

    /// The moments at which a region was left and entered again; the beacon lay still and was silent in between.
    @Test(
        "A longer exit time removes the flaps of a beacon that lies still (android-beacon-library#982)",
        arguments: [(10, [1930, 2005, 2085, 2160, 2316, 2344]), (29, [2179, 2363]), (107, [2441])] as [(Int64, [Int64])]
    )
    func regionFlap(exitTime: Int64, exits: [Int64]) {
        let stays: [(Int64, Int64)] = [
            (0, 1930), (1943, 2005), (2021, 2085), (2099, 2160), (2256, 2316), (2334, 2344),
        ]
        let region = RegionRule(
            name: Name(rawValue: 1), patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: 3)])
        var probe = PresenceProbe(settings(exitTime: exitTime), regions: [region])
        // With a time-out of 10 s the last packet of each stay came 10 s before its exit.
        for (enter, exit) in stays {
            for second in stride(from: enter, through: exit - 10, by: 1) { probe.hear(1, at: second * 1000) }
        }
        probe.tick(10_000_000)
        #expect(probe.events(.regionExit).map { $0.time.nanoseconds / 1_000_000_000 } == exits)
    }

    @Test(
        "The exit time is a setting of the beacon (home-assistant/core#79345, #117534)",
        arguments: [(300, []), (180, [275, 510]), (60, [155, 390])] as [(Int64, [Int64])])
    func away(exitTime: Int64, exits: [Int64]) {
        let rule = BeaconRule(identity: PresenceProbe.identity(1), exitTime: .seconds(exitTime))
        var probe = PresenceProbe(beacons: [rule])
        for second: Int64 in [0, 40, 95, 290, 330, 560, 600] { probe.hear(1, at: second * 1000) }
        #expect(probe.events(.exit).map { $0.time.nanoseconds / 1_000_000_000 } == exits)
    }

    @Test("A tag that changes its identity for a while is two beacons at one address (home-assistant/core#153730)")
    func oneAddressTwoIdentities() {
        var probe = PresenceProbe(settings(exitTime: 30))
        for (second, number) in [(0, 10), (10, 10), (20, 15), (49, 15), (51, 10), (120, 10)] as [(Int64, UInt8)] {
            probe.hear(number, at: second * 1000, address: 0xC122_3344_5566)
        }
        #expect(
            probe.transitions == [
                "enter 10 at 0", "enter 15 at 20000", "exit 10 at 40000 timeout", "enter 10 at 51000",
                "exit 15 at 79000 timeout", "exit 10 at 81000 timeout", "enter 10 at 120000",
            ])
    }

    @Test("Two transmitters with one identity are one beacon when it is known by identity (monitor#430)")
    func oneIdentityTwoAddresses() {
        var probe = PresenceProbe(settings(exitTime: 60))
        for (second, address) in [(0, 1), (5, 2), (50, 2), (100, 2)] as [(Int64, UInt64)] {
            probe.hear(1, at: second * 1000, address: 0xC100_0000_0000 + address)
        }
        #expect(probe.transitions == ["enter 1 at 0"])
    }

    @Test("A tag that claims -3 dBm at 1 m is not millions of metres away (room-assistant#37)")
    func absurdPower() {
        for rule in [nil, BeaconRule(identity: PresenceProbe.identity(1), measuredPower: -59)] {
            var probe = PresenceProbe(beacons: rule.map { [$0] } ?? [])
            probe.hear(1, at: 0, rssi: -72, power: -3)
            #expect(abs(probe.events[0].accuracy - 4.47) < 0.005)
            #expect(probe.events[0].proximity == .far)
        }
    }
}
