// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// A command goes from a broker through the verbs of a running daemon, and its answer back.
@Suite(.serialized) struct CommandOverMQTTTests {
    @Test func `a running gateway is asked for its health through the broker`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "beacond/#")
        let folder = try TemporaryFolder()
        let scenario = try folder.file("world.json", Daemon.scenario(beacons: 2, interval: "100ms"))
        let configuration = try folder.file(
            "plugins.json",
            """
            { "gateway": { "id": "test" }, "sinks": [{ "kind": "mqtt",
              "config": { "host": "127.0.0.1", "port": \(broker.port), "commands": ["health", "state"] } }] }
            """)
        let program = try Program(
            ["run", "--config", configuration, "--source", "simulate:\(scenario)"],
            environment: ["RUNTIME_DIRECTORY": folder.path])
        try program.start()
        defer {
            kill(program.process.processIdentifier, SIGKILL)
            program.process.waitUntilExit()
        }
        #expect(subscriber.wait { $0.contains { $0.topic == "beacond/test/status" } })

        for (verb, payload) in [("health", ""), ("state", #"{"beacons": 1, "nonsense": 2}"#)] {
            let command = Process()
            command.executableURL = URL(filePath: "/usr/bin/mosquitto_pub")
            command.arguments = [
                "-h", "127.0.0.1", "-p", "\(broker.port)", "-t", "beacond/test/command/\(verb)", "-m", payload,
            ]
            try command.run()
            command.waitUntilExit()
        }
        #expect(subscriber.wait { $0.count { $0.topic.hasSuffix("/answer") } == 2 })
        let health = try #require(subscriber.messages(on: "beacond/test/command/health/answer").first)
        #expect(health.payload.hasPrefix(#"{"gateway":"test","ok":true,"answer":[{"healthy":"#))
        let state = try #require(subscriber.messages(on: "beacond/test/command/state/answer").first)
        #expect(state.payload.contains(#""ok":false"#))
        #expect(state.payload.contains("nonsense"))
    }
}
