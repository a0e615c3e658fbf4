// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// What the broker retains of a beacon while no radio of the gateway works, and afterwards.
@Suite(.serialized) struct BlindGatewayTests {
    private static let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"
    private static let beacon = "beacond/test/ibeacon/\(uuid)/1/1"

    private static func world(blind: String) -> String {
        """
        { "seed": 7, "duration": "120s", "noise": 0,
          "radios": [{ "name": "sim0", "window": "100ms", "interval": "100ms", "blind": [\(blind)] }],
          "beacons": [{ "alias": "b1", "uuid": "\(uuid)", "major": 1, "minor": 1,
          "interval": "100ms", "path": [{ "distance": 1 }] }] }
        """
    }

    private func states(_ subscriber: Subscriber) -> [String] {
        subscriber.messages(on: "\(Self.beacon)/presence").compactMap { $0["state"] }
    }

    @Test func `a beacon is unknown while nobody can say, also over a restart, and known again when it is heard`()
        throws
    {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "beacond/#")
        let folder = try TemporaryFolder()
        let state = folder.path("state")
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        let configuration = try folder.file(
            "plugins.json",
            """
            { "gateway": { "id": "test" }, "state_directory": "\(state)", "presence": { "blind_hold": "1s" },
              "beacons": [{ "alias": "b1", "uuid": "\(Self.uuid)", "major": 1, "minor": 1 }],
              "regions": [{ "name": "room", "beacons": ["b1"] }],
              "sinks": [{ "kind": "mqtt", "config": { "host": "127.0.0.1", "port": \(broker.port) } }] }
            """)
        func start(blind: String) throws -> Program {
            let scenario = try folder.file("world.json", Self.world(blind: blind))
            let program = try Program(
                ["run", "--config", configuration, "--source", "simulate:\(scenario)"],
                environment: ["RUNTIME_DIRECTORY": folder.path])
            try program.start()
            return program
        }
        func end(_ program: Program, _ signal: Int32) {
            kill(program.process.processIdentifier, signal)
            program.process.waitUntilExit()
        }

        let first = try start(blind: #"{ "from": "3s", "to": "110s" }"#)
        defer { end(first, SIGKILL) }
        #expect(subscriber.wait { _ in states(subscriber).last == "unknown" })
        let unknown = subscriber.messages(on: "\(Self.beacon)/presence").last
        #expect(unknown?["reason"] == "blind")
        #expect(subscriber.wait { $0.contains { $0.topic.hasSuffix("/room/presence") && $0["state"] == "unknown" } })
        let asked = try Program.run("state", "--json", environment: ["RUNTIME_DIRECTORY": folder.path])
        for line in asked.lines {
            let answer = try Program.object(line)
            for key in ["beacon", "region"] {
                guard let told = answer[key] as? [String: Any] else { continue }
                #expect(told["state"] as? String == "unknown" && told["reason"] as? String == "blind", "\(line)")
            }
        }
        #expect(asked.output.contains(#""beacon":"#) && asked.output.contains(#""region":{"#))
        end(first, SIGTERM)

        let seen = states(subscriber).count
        let second = try start(blind: #"{ "from": "0s", "to": "5s" }"#)
        defer { end(second, SIGKILL) }
        #expect(subscriber.wait { _ in states(subscriber).last == "present" && states(subscriber).count > seen })
        // Never present in between: that is what nobody could say.
        #expect(states(subscriber).dropFirst(seen).dropLast().allSatisfy { $0 == "unknown" })
        #expect(
            subscriber.wait { messages in
                messages.filter { $0.topic == "\(Self.beacon)/event" }.compactMap { $0["event"] }
                    .filter { $0 != "proximity" } == ["enter", "unknown", "known"]
            })
        let late = try Subscriber(broker, "\(Self.beacon)/presence")
        #expect(late.wait { $0.first?["state"] == "present" })
    }
}
