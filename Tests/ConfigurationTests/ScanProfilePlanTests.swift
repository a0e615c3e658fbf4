// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Presence
import Testing

/// The stock profiles against the usual advertising intervals.
@Suite struct ScanProfilePlanTests {
    private static let pairs = ScanProfile.stock.flatMap { profile in
        ScanProfilePlan.usualIntervals.map { (profile, $0) }
    }

    @Test(arguments: pairs) func stockProfilesDoNotBeat(_ profile: ScanProfile, _ interval: TimeInterval) throws {
        let plan = ScanProfilePlan(profile, advertisingInterval: interval, loss: 0, falseExits: 1 / 86_400)
        let factor = try #require(plan.beatFactor)
        #expect(factor < 1.1 && !plan.beats, "\(profile.name) \(interval): \(factor)")
        #expect(plan.limits.isEmpty)
        #expect(try #require(plan.exitTime) > interval)
    }

    @Test func aSimpleTenthBeats() {
        // A tenth of the time, against an interval that Apple recommends.
        let profile = ScanProfile(
            name: "p", window: TimeInterval(nanoseconds: 102_400_000), interval: .milliseconds(1024))
        let plan = ScanProfilePlan(
            profile, advertisingInterval: TimeInterval(nanoseconds: 1_022_500_000), loss: 0, falseExits: 1)
        #expect(plan.beats)
    }

    @Test func theSimulationFollowsItsSeed() throws {
        func median(_ seed: UInt64) -> TimeInterval? {
            ScanProfilePlan(.balanced, advertisingInterval: .seconds(1), loss: 0.1, falseExits: 1).simulate(seed: seed)
                .times.median
        }
        let first = try #require(median(1))
        #expect(median(1) == first)
        #expect(median(2) != first)
    }
}
