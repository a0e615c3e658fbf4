// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import TestSupport
import Testing

@testable import Agent

/// More strangers than there is room for.
@Suite struct FloodTests {
    @Test func theyAreToldOfTogetherAndOnceAMinute() throws {
        var watch = FloodWatch()
        func look(_ seconds: Int64, _ refused: UInt64, _ evicted: UInt64) -> Event? {
            watch.look(at: .zero + .seconds(seconds), (refused, evicted), tracked: 7, eventTime: .zero)
        }
        #expect(look(10, 0, 0) == nil)
        let first = try #require(look(20, 3, 1))
        #expect(first.kind == .flood && first.flood == (3, 1) && first.insideCount == 7)
        #expect(first.isTransition)
        #expect(look(30, 3, 1) == nil && look(79, 50, 2) == nil)
        #expect(try #require(look(80, 60, 2)).flood == (57, 1))
        #expect(look(600, 60, 2) == nil, "it is over")
    }

    @Test func aDaemonTellsOfThem() throws {
        let folder = try TemporaryFolder()
        let scenario = try folder.file("world.json", Daemon.scenario(beacons: 30, interval: "300ms"))
        let config = try folder.file(
            "plugins.json",
            """
            { "gateway": { "id": "test" }, "control_socket": "none", "sinks": [{ "kind": "json" }],
              "presence": { "maximum_beacons": 5 } }
            """)
        let outcome = try Program.run(
            "run", "--config", config, "--source", "simulate:\(scenario)", "--duration", "12s")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let floods = try outcome.lines.map(Program.object).filter { $0["event"] as? String == "flood" }
        #expect(floods.count == 1)
        #expect(try #require(floods.first?["evicted"] as? Int) > 10)
        #expect(floods.first?["tracked"] as? Int == 5)
    }
}
