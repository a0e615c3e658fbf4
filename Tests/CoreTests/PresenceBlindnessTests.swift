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
                "enter 1 at 1000", "enter 2 at 1000", "exit 2 at 622000 timeout",
            ])
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
            probe.transitions.filter { !$0.hasPrefix("region") } == ["enter 1 at 1000", "exit 1 at 720000 timeout"])
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
