// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// A command goes from a broker through the verbs of a running daemon, and its answer back.
@Suite(.serialized) struct CommandOverMQTTTests {
    private static let commands = ["health", "state", "scan", "discover", "profile", "watch"]

    @Test func `a running gateway is asked and told through the broker`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "beacond/#")
        let folder = try TemporaryFolder()
        let scenario = try folder.file("world.json", Daemon.scenario(beacons: 2, interval: "100ms"))
        let configuration = try folder.file(
            "plugins.json",
            """
            { "gateway": { "id": "test" },
              "beacons": [{ "alias": "b1", "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1, "minor": 1 }],
              "sinks": [{ "kind": "mqtt", "config": { "host": "127.0.0.1", "port": \(broker.port),
              "commands": \(Self.commands) } }] }
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

        func ask(_ verb: String, _ payload: String = "") throws -> [String] {
            let topic = "beacond/test/command/\(verb)"
            try broker.publish(["-t", topic, "-m", payload])
            #expect(subscriber.wait { $0.contains { $0.topic == "\(topic)/answer" } }, "\(verb) \(payload)")
            return subscriber.messages(on: "\(topic)/answer").map(\.payload)
        }
        #expect(try ask("health").first?.hasPrefix(#"{"gateway":"test","ok":true,"answer":[{"healthy":"#) == true)

        // Those that answer when their time is over, and one that is asked and answers meanwhile.
        try broker.publish(["-t", "beacond/test/command/discover", "-m", #"{"duration": "2s", "id": 7}"#])
        #expect(try ask("profile", #"{"profile": "economy"}"#).first?.contains(#""held":"economy""#) == true)
        let scan = try #require(try ask("scan", #"{"duration": "1500ms"}"#).first)
        for minor in 1...2 { #expect(scan.contains(#""minor":\#(minor)"#)) }
        #expect(scan.contains(#""found":2"#))
        #expect(subscriber.wait { $0.contains { $0.topic == "beacond/test/command/discover/answer" } })
        let discover = try #require(subscriber.messages(on: "beacond/test/command/discover/answer").first?.payload)
        #expect(discover.hasPrefix(#"{"id":7,"gateway":"test","ok":true,"#))
        #expect(discover.contains(#""minor":2"#) && !discover.contains(#""minor":1,"#))

        #expect(try ask("watch").first?.contains(#""ok":false"#) == true)
        sleep(2)
        let wrong = try #require(try ask("state", #"{"beacons": 1, "nonsense": 2}"#).first)
        #expect(wrong.contains(#""ok":false"#) && wrong.contains("nonsense"))
        try broker.publish(["-t", "beacond/test/command/unheard_of", "-n"])
        #expect(subscriber.wait { $0.contains { $0.topic == "beacond/test/command/unknown/answer" } })
        sleep(2)
        try broker.publish(["-t", "beacond/test/command/state", "-n"])
        #expect(subscriber.wait { $0.count { $0.topic == "beacond/test/command/state/answer" } == 2 })
        let state = try #require(subscriber.messages(on: "beacond/test/command/state/answer").last?.payload)
        #expect(state.contains(#""refused_commands":3"#))
    }
}
