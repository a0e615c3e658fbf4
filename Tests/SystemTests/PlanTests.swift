// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// `beacond plan` as a user runs it.
@Suite struct PlanTests {
    private func plans(_ arguments: String...) throws -> [[String: Any]] {
        let program = try Program(["plan", "--json"] + arguments)
        try program.start()
        let outcome = try program.finish()
        try #require(outcome.status == 0, "\(outcome.errors)")
        return try outcome.lines.map(Program.object)
    }

    @Test func aPlanPerProfileAndInterval() throws {
        let all = try plans("--advertising-interval", "1s")
        #expect(all.map { $0["profile"] as? String } == ["continuous", "balanced", "economy"])
        #expect(all.map { $0["duty"] as? Double ?? 0 } == [1, 0.301282, 0.100917])
        #expect(all.allSatisfy { $0["beats"] as? Bool == false })
        let times = try all.map { try #require(($0["first_heard"] as? [String: Any])?["median"] as? Double) }
        #expect(times == times.sorted())
        // In turn with the advertising interval, on 1 s and on a mean of 1.005 s.
        #expect(abs(times[0] - 0.505) < 0.01)
        let rate = try #require(all[0]["reports_per_second"] as? Double)
        #expect(abs(rate - 0.996 / 1.005) < 0.001)

        let usual = try plans("--profile", "continuous")
        #expect(usual.count == 13)
        #expect(usual.allSatisfy { ($0["limits"] as? [String]) == [] && $0["beats"] as? Bool == false })
    }

    @Test func beatsAreNamed() throws {
        let outcome = try Program.run(
            "plan", "--window", "102.5ms", "--interval", "1023.75ms", "--advertising-interval", "1022.5ms")
        #expect(outcome.output.contains("It beats with 1.022s.") || outcome.output.contains("It beats with 1022.5ms."))
        #expect(outcome.output.contains("the radio is on 10 % of the time"))
        let economy = try Program.run("plan", "--profile", "economy", "--advertising-interval", "1022.5ms")
        #expect(economy.output.contains("It beats with none of these intervals."))
    }

    @Test func theSimulationStandsBesideTheModel() throws {
        let plan = try plans("--profile", "balanced", "--advertising-interval", "318.75ms", "--simulate")[0]
        #expect(plan["simulated_beacons"] as? Int == 20_000)
        let model = try #require(plan["first_heard"] as? [String: Double])
        let simulated = try #require(plan["simulated"] as? [String: Double])
        for key in ["median", "p95", "p99"] {
            let (one, other) = (try #require(model[key]), try #require(simulated[key]))
            #expect(abs(one / other - 1) < 0.05, "\(key): \(one) and \(other)")
        }
    }

    @Test func fewerFalseExitsTakeLonger() throws {
        func exitTime(_ rate: String) throws -> Double {
            let plan = try plans(
                "--profile", "economy", "--advertising-interval", "1s", "--loss", "0.2", "--false-exits", rate)
            return try #require(plan[0]["exit_time"] as? Double)
        }
        let times = try ["10/hour", "1/hour", "1/day", "1/week", "1/month"].map(exitTime)
        #expect(times == times.sorted() && Set(times).count == times.count, "\(times)")
    }

    @Test func profilesOfTheConfiguration() throws {
        let folder = try TemporaryFolder()
        let path = try folder.file(
            "plugins.json",
            #"{"scan": {"profiles": [{"name": "night", "window": "30ms", "interval": "60ms", "burst": {"on": "1s", "off": "2s"}}]}}"#
        )
        let plan = try plans("--config", path, "--profile", "night", "--advertising-interval", "1s")[0]
        #expect(plan["burst_on"] as? Double == 1 && plan["burst_off"] as? Double == 2)
        let same = try plans(
            "--window", "30ms", "--interval", "60ms", "--burst", "1s/2s", "--advertising-interval", "1s")[0]
        #expect(same["profile"] is NSNull)
        #expect(same["first_heard"] as? NSDictionary == plan["first_heard"] as? NSDictionary)
    }

    private static let mistakes: [([String], String)] = [
        (["--profile", "economi"], "did you mean \"economy\"?"), (["--window", "30ms"], "--interval is missing"),
        (["--window", "60ms", "--interval", "30ms"], "must not be longer"),
        (["--window", "30ms", "--interval", "30ms", "--profile", "economy"], "does not go with --profile"),
        (["--burst", "1s/1s"], "--window is missing"),
        (["--window", "30ms", "--interval", "30ms", "--burst", "1s"], "as in 10s/50s"),
        (["--window", "30ms", "--interval", "30ms", "--burst", "1s/10m"], "from 100ms to 5m"),
        (["--window", "1ms", "--interval", "30ms"], "from 2.5ms to"), (["--loss", "1"], "less than 1"),
        (["--loss", "nan"], "less than 1"), (["--advertising-interval", "19ms"], "from 20ms to"),
        (["--false-exits", "0/day"], "such as 1/day"), (["--false-exits", "1/fortnight"], "such as 1/day"),
        (["--false-exits", "inf/day"], "such as 1/day"), (["--seed", "-1"], "whole number"),
    ]

    @Test(arguments: PlanTests.mistakes)
    func wrongArgumentsAreExplained(_ arguments: [String], _ message: String) throws {
        let program = try Program(["plan"] + arguments)
        try program.start()
        let outcome = try program.finish()
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains(message), "\(outcome.errors)")
    }
}
