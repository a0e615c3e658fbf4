// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// How many beacons the retained state of a region says are inside.
@Suite(.serialized) struct RegionCountTests {
    private static let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"
    private static let topic = "beacond/test/region/room/presence"

    private func count(_ subscriber: Subscriber) -> String? { subscriber.messages(on: Self.topic).last?["inside"] }

    @Test func `it follows who comes and goes, over a lost broker and a restart, and is no event`() throws {
        let broker = try Broker()
        var subscriber = try Subscriber(broker, "beacond/#")
        let folder = try TemporaryFolder()
        // Three come one after the other, and one of them leaves.
        let visits = [
            #"{ "from": "0s", "to": "300s" }"#, #"{ "from": "3s", "to": "300s" }"#, #"{ "from": "4s", "to": "8s" }"#,
        ]
        let beacons = visits.enumerated().map {
            """
            { "alias": "b\($0 + 1)", "uuid": "\(Self.uuid)", "major": 1, "minor": \($0 + 1), "interval": "100ms",
              "path": [{ "distance": 1 }], "visits": [\($1)] }
            """
        }
        let scenario = try folder.file(
            "world.json",
            """
            { "seed": 7, "duration": "300s", "noise": 0,
              "radios": [{ "name": "sim0", "window": "100ms", "interval": "100ms" }],
              "beacons": [\(beacons.joined(separator: ", "))] }
            """)
        let state = folder.path("state")
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        let configuration = try folder.file(
            "plugins.json",
            """
            { "gateway": { "id": "test" }, "state_directory": "\(state)", "presence": { "exit_time": "4s" },
              "regions": [{ "name": "room", "uuid": "\(Self.uuid)" }],
              "sinks": [{ "kind": "mqtt", "config": { "host": "127.0.0.1", "port": \(broker.port) } }] }
            """)
        func start(_ source: String) throws -> Program {
            let program = try Program(
                ["run", "--config", configuration, "--source", "simulate:\(source)"],
                environment: ["RUNTIME_DIRECTORY": folder.path])
            try program.start()
            return program
        }
        func end(_ program: Program, _ signal: Int32) {
            kill(program.process.processIdentifier, signal)
            program.process.waitUntilExit()
        }
        let first = try start(scenario)
        defer { end(first, SIGKILL) }
        #expect(subscriber.wait { _ in count(subscriber) == "1" })
        #expect(subscriber.wait { _ in count(subscriber) == "3" })
        broker.kill()
        try broker.start()
        // The broker has forgotten, and one has left meanwhile or leaves now.
        subscriber = try Subscriber(broker, "beacond/#")
        #expect(subscriber.wait { _ in count(subscriber) == "2" })
        #expect(subscriber.messages(on: Self.topic).last?["state"] == "inside")
        let told = try Program.run("state", "--json", environment: ["RUNTIME_DIRECTORY": folder.path])
        #expect(told.output.contains(#""region":{"region":"room","state":"inside","inside":2}"#), "\(told.output)")
        #expect(subscriber.messages.allSatisfy { $0["event"] != "region_known" })
        end(first, SIGTERM)

        // As another subscriber finds it: nobody comes or goes in a world without a radio.
        let silent = try folder.file(
            "silent.json",
            """
            { "duration": "300s", "radios": [{ "name": "sim0", "blind": [{ "from": "0s", "to": "300s" }] }],
              "beacons": [] }
            """)
        try broker.publish(["-r", "-t", Self.topic, "-m", #"{"state":"inside","inside":9}"#])
        let second = try start(silent)
        defer { end(second, SIGKILL) }
        #expect(subscriber.wait { _ in count(subscriber) == "2" })
    }
}
