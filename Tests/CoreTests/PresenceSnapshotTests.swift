// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import TestSupport
import Testing

/// What survives a restart.
@Suite("Presence: restart")
struct PresenceSnapshotTests {
    private let region = RegionRule(
        name: Name(rawValue: 1), patterns: [IdentityPattern(identity: PresenceProbe.identity(1), prefix: 0)])

    private func learningSettings() -> PresenceSettings {
        var settings = enteringAtOnce()
        settings.exitTime = nil
        return settings
    }

    private func records(_ probe: borrowing PresenceProbe) -> [(BeaconIdentity, [UInt8])] {
        var records: [(BeaconIdentity, [UInt8])] = []
        probe.engine.snapshot(wallTime: { WallTime(milliseconds: 1_000_000 + $0.nanoseconds / 1_000_000) }) {
            records.append(($0, $1))
        }
        return records
    }

    /// A beacon that is here, and one that has left, after ten minutes.
    private func before() -> PresenceProbe {
        var probe = PresenceProbe(learningSettings(), regions: [region])
        for time in stride(from: Int64(0), to: 600_000, by: 1000) {
            if time < 300_000 { probe.hear(2, at: time) }
            probe.hear(1, at: time + 500)
        }
        return probe
    }

    @Test("Presence comes back without an enter, with what was learned, and goes when its exit time has passed")
    func restored() throws {
        let old = before()
        let records = records(old)
        #expect(records.count == 2)
        let learned = old.insight(1)
        var probe = PresenceProbe(learningSettings(), regions: [region])
        probe.radio(1, .blind, at: 5000)
        for (identity, record) in records {
            let isTaken = probe.engine.restore(
                identity, record, at: .milliseconds(5000), wallTime: WallTime(milliseconds: 1_000_000 + 660_000))
            #expect(isTaken)
        }
        #expect(probe.engine.presentCount == 1 && probe.engine.trackedCount == 1)
        var inside: UInt32 = 0
        probe.engine.forEachRegion { inside += $1 }
        #expect(inside == 1)
        let found = probe.insight(1)
        let restored = try #require(found)
        #expect(restored.state == .present)
        #expect(restored.advertisingInterval == learned?.advertisingInterval)
        #expect(restored.gapCount == learned?.gapCount)
        // Heard last half a second before ten minutes, and the restart was a minute after that.
        #expect(restored.lastSeen == .milliseconds(5000 - 60_500))
        #expect(restored.enteredAt == .milliseconds(5000 - 659_500))
        probe.radio(1, .listening, at: 20_000)
        probe.tick(20_000 + restored.exitTime.milliseconds - 1)
        #expect(probe.events.isEmpty)
        probe.tick(20_000 + restored.exitTime.milliseconds + 1)
        #expect(probe.events(.exit).count == 1 && probe.events(.regionExit).count == 1)
        #expect(probe.events(.enter).isEmpty && probe.events(.regionEnter).isEmpty)
    }

    @Test("A restored beacon that is heard has neither entered nor left")
    func stays() {
        let records = records(before())
        var probe = PresenceProbe(learningSettings(), regions: [region])
        for (identity, record) in records {
            probe.engine.restore(identity, record, at: .zero, wallTime: WallTime(milliseconds: 0))
        }
        for time in stride(from: Int64(1000), to: 60_000, by: 1000) { probe.hear(1, at: time) }
        #expect(probe.transitions.isEmpty)
        // The one that had left enters as any other.
        probe.hear(2, at: 61_000)
        #expect(probe.transitions == ["enter 2 at 61000"])
    }

    @Test("What was unknown is unknown after the restart, known when it is heard, and left when it is not")
    func unknown() {
        var old = PresenceProbe(learningSettings(), regions: [region])
        for time in stride(from: Int64(0), to: 60_000, by: 1000) {
            old.hear(1, at: time)
            old.hear(2, at: time)
        }
        old.radio(1, .blind, at: 60_000)
        old.tick(200_000)
        #expect(old.events(.unknown).count == 2)
        var probe = PresenceProbe(learningSettings(), regions: [region])
        for (identity, record) in records(old) {
            probe.engine.restore(identity, record, at: .milliseconds(5000), wallTime: WallTime(milliseconds: 1_300_000))
        }
        let isUnknown = probe.engine.isUnknown(region: region.name)
        #expect(probe.insight(1)?.state == .unknown && isUnknown)
        var listed: [Event] = []
        probe.engine.forEachPresent { listed.append(copy $0) }
        #expect(listed.map(\.kind) == [.unknown, .unknown] && listed.allSatisfy { $0.time == .milliseconds(5000) })
        for time in stride(from: Int64(6000), to: 120_000, by: 1000) { probe.hear(1, at: time) }
        #expect(probe.events(.enter).isEmpty && probe.events(.exit).count == 1)
        #expect(
            probe.transitions.prefix(2) == ["known 1 at 6000", "region_known region 1 at 6000"])
    }

    @Test("A region of which one beacon is known is known", arguments: [[UInt8(1), 2], [2, 1]])
    func partlyUnknown(order: [UInt8]) {
        var old = PresenceProbe(learningSettings(), regions: [region])
        old.hear(1, at: 1000)
        old.hear(2, at: 1000)
        old.radio(1, .blind, at: 2000)
        old.tick(200_000)
        old.radio(1, .listening, at: 200_000)
        old.hear(2, at: 201_000)
        var probe = PresenceProbe(learningSettings(), regions: [region])
        let records = records(old)
        for number in order {
            for (identity, record) in records where identity == PresenceProbe.identity(number) {
                probe.engine.restore(identity, record, at: .zero, wallTime: WallTime(milliseconds: 1_300_000))
            }
        }
        #expect(probe.insight(1)?.state == .unknown && probe.insight(2)?.state == .present)
        let isUnknown = probe.engine.isUnknown(region: region.name)
        #expect(!isUnknown)
    }

    @Test("Damaged records change nothing, and no record traps", arguments: UInt64(1)...4)
    func damage(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let records = records(before())
        for (identity, record) in records {
            for _ in 0..<200 {
                var damaged = record
                switch random.below(3) {
                case 0: damaged[random.below(damaged.count)] ^= UInt8(1 + random.below(255))
                case 1: damaged.removeLast(1 + random.below(damaged.count))
                default: damaged += [UInt8(random.below(256))]
                }
                var probe = PresenceProbe(learningSettings(), regions: [region])
                let isTaken = probe.engine.restore(
                    identity, damaged, at: .zero, wallTime: WallTime(milliseconds: .max))
                #expect(!isTaken && probe.engine.trackedCount == 0, "seed \(seed): \(damaged)")
            }
        }
    }

    @Test("Any times in a record are taken without a trap", arguments: [Int64.min, -1, 0, .max])
    func times(wall: Int64) {
        let old = before()
        var records: [(BeaconIdentity, [UInt8])] = []
        old.engine.snapshot(wallTime: { _ in WallTime(milliseconds: wall) }) { records.append(($0, $1)) }
        for now in [Int64.min, 0, .max] {
            var probe = PresenceProbe(learningSettings(), regions: [region])
            for (identity, record) in records {
                probe.engine.restore(identity, record, at: .zero, wallTime: WallTime(milliseconds: now))
            }
            #expect(probe.engine.presentCount == 1)
        }
    }
}
