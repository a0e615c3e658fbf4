// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import Testing

/// What is known while no radio works.
@Suite("Presence: blindness")
struct PresenceBlindnessTests {
    private let region = RegionRule(
        name: Name(rawValue: 1), patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: 0)])

    private func state(_ number: UInt8, _ probe: borrowing PresenceProbe) -> BeaconInsight.State? {
        probe.insight(number)?.state
    }

    @Test(
        "Shorter than the hold it changes nothing; after it states are unknown, and known again when somebody is heard")
    func hold() {
        var probe = PresenceProbe(regions: [region])
        probe.radio(1, .listening, at: 0)
        probe.hear(1, at: 1000)
        probe.hear(2, at: 1000)
        probe.radio(1, .blind, at: 2000)
        probe.tick(121_999)
        #expect(state(1, probe) == .present && probe.events(.regionUnknown).isEmpty)
        #expect(probe.engine.nextDeadline == .milliseconds(122_000))
        probe.tick(122_000)
        #expect(state(1, probe) == .unknown && probe.events(.regionUnknown).count == 1)
        probe.tick(600_000)
        probe.radio(1, .listening, at: 602_000)
        #expect(state(1, probe) == .unknown && probe.events(.regionKnown).isEmpty)
        probe.hear(1, at: 603_000)
        #expect(state(1, probe) == .present && state(2, probe) == .unknown)
        #expect(probe.events(.regionKnown).map(\.insideCount) == [2])
        #expect(probe.events(.enter).count == 2 && probe.events(.exit).isEmpty)
        #expect(probe.events(.regionEnter).count == 1 && probe.events(.regionExit).isEmpty)
        // Nobody hears the second one any more: it leaves when its exit time has passed since the return.
        for second in 604...630 { probe.hear(1, at: Int64(second) * 1000) }
        #expect(
            probe.transitions.filter { !$0.hasPrefix("region") } == [
                "enter 1 at 1000", "enter 2 at 1000", "unknown 1 at 122000", "unknown 2 at 122000",
                "known 1 at 603000", "exit 2 at 622000 timeout",
            ])
    }

    @Test("Beacons are told of before their regions, strangers not at all")
    func order() {
        let rule = BeaconRule(identity: PresenceProbe.identity(1))
        var probe = PresenceProbe(
            beacons: [rule],
            regions: [
                RegionRule(
                    name: Name(rawValue: 1),
                    patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: 3)])
            ])
        probe.radio(1, .listening, at: 0)
        probe.hear(1, at: 1000)
        probe.hear(2, at: 1000)
        probe.radio(1, .blind, at: 2000)
        probe.tick(130_000)
        #expect(state(2, probe) == .unknown)
        var listed: [Event] = []
        probe.engine.forEachPresent { listed.append(copy $0) }
        #expect(listed.map(\.kind) == [.unknown, .unknown] && listed.allSatisfy { $0.time == .milliseconds(122_000) })
        probe.radio(1, .listening, at: 200_000)
        probe.hear(1, at: 201_000)
        probe.hear(2, at: 201_000)
        #expect(
            probe.transitions.suffix(4) == [
                "unknown 1 at 122000", "region_unknown region 1 at 122000", "known 1 at 201000",
                "region_known region 1 at 201000",
            ])
        listed = []
        probe.engine.forEachPresent { listed.append(copy $0) }
        #expect(listed.map(\.kind) == [.enter, .enter] && listed.allSatisfy { $0.time == .milliseconds(1000) })
    }

    @Test("A full room goes blind and comes back: each beacon is told of once each way")
    func fullRoom() {
        var settings = enteringAtOnce()
        settings.maximumBeacons = 10_000
        let identities = (0..<10_000).map { presenceIdentity(0, [7, UInt8($0 / 256), UInt8($0 % 256)]) }
        let everybody = RegionRule(
            name: Name(rawValue: 1), patterns: [IdentityPattern(identity: identities[0], prefix: 1)])
        var engine = PresenceEngine(settings: settings, beacons: [], regions: [everybody])
        var counts: [Event.Kind: Int] = [:]
        func hearAll(at time: MonotonicTime) {
            for identity in identities {
                engine.observe(
                    Sighting(
                        time: time, identity: identity, address: .anonymous, rssi: -60, measuredPower: nil,
                        adapter: Name(rawValue: 1))
                ) { counts[$0.kind, default: 0] += 1 }
            }
        }
        hearAll(at: .milliseconds(1000))
        engine.radio(Name(rawValue: 1), .blind, at: .milliseconds(2000)) { counts[$0.kind, default: 0] += 1 }
        engine.tick(.milliseconds(500_000)) { counts[$0.kind, default: 0] += 1 }
        #expect(counts[.unknown] == 10_000 && counts[.regionUnknown] == 1)
        engine.radio(Name(rawValue: 1), .listening, at: .milliseconds(600_000)) { counts[$0.kind, default: 0] += 1 }
        hearAll(at: .milliseconds(601_000))
        #expect(counts[.known] == 10_000 && counts[.regionKnown] == 1)
        #expect(counts[.enter] == 10_000 && counts[.exit] == nil)
    }

    @Test("The region of beacons that never come back is left from unknown")
    func leftFromUnknown() {
        var probe = PresenceProbe(regions: [region])
        probe.radio(1, .listening, at: 0)
        probe.hear(1, at: 1000)
        probe.radio(1, .blind, at: 2000)
        probe.radio(1, .listening, at: 700_000)
        probe.tick(800_000)
        #expect(probe.events(.regionUnknown).count == 1 && probe.events(.regionExit).count == 1)
        #expect(
            probe.transitions.filter { !$0.hasPrefix("region") } == [
                "enter 1 at 1000", "unknown 1 at 122000", "exit 1 at 720000 timeout",
            ])
    }

    @Test(
        "One radio that works, or pauses on purpose, is enough to know", arguments: [RadioActivity.paused, .listening])
    func oneIsEnough(other: RadioActivity) {
        var probe = PresenceProbe(regions: [region])
        probe.radio(1, .listening, at: 0)
        probe.radio(2, other, at: 0)
        probe.hear(1, at: 1000)
        probe.radio(1, .blind, at: 2000)
        probe.tick(3_600_000)
        #expect(probe.events(.regionUnknown).isEmpty)
    }

    @Test("Who comes while the others are in doubt makes the region known")
    func newcomer() {
        var probe = PresenceProbe(regions: [region])
        probe.radio(1, .listening, at: 0)
        probe.hear(1, at: 1000)
        probe.radio(1, .blind, at: 2000)
        probe.radio(1, .listening, at: 200_000)
        probe.hear(2, at: 201_000)
        #expect(probe.events(.regionKnown).map(\.insideCount) == [2])
        #expect(probe.events(.regionEnter).count == 1)
    }
}
