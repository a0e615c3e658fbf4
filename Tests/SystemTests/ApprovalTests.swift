// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// A beacon that somebody approves while the gateway runs, from the command line and through the broker.
@Suite(.serialized) struct ApprovalTests {
    private static let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"

    @Test func `an approved beacon has states and is announced, also after a restart, until it is taken out`() throws {
        let broker = try Broker()
        let folder = try TemporaryFolder()
        let scenario = try folder.file("world.json", Daemon.scenario(beacons: 2, interval: "100ms", duration: "300s"))
        let configuration = try folder.file(
            "plugins.json",
            """
            { "gateway": { "id": "test" }, "state_directory": "\(folder.path)",
              "beacons": [{ "alias": "keys", "uuid": "\(Self.uuid)", "major": 1, "minor": 1 }],
              "sinks": [{ "kind": "mqtt", "config": { "host": "127.0.0.1", "port": \(broker.port),
                "home_assistant": {}, "commands": ["approve", "disapprove"] } }] }
            """)
        func start() throws -> Program {
            let program = try Program(
                ["run", "--config", configuration, "--source", "simulate:\(scenario)"],
                environment: ["RUNTIME_DIRECTORY": folder.path])
            try program.start()
            return program
        }
        func run(_ arguments: String...) throws -> Program.Outcome {
            let program = try Program(arguments, environment: ["RUNTIME_DIRECTORY": folder.path])
            try program.start()
            return try program.finish()
        }
        let state = "beacond/test/ibeacon/\(Self.uuid)/1/2/presence"
        let document = "homeassistant/device/beacond_test/ibeacon_\(Self.uuid)_1_2/config"
        func isKept(_ topic: String, _ messages: [Subscriber.Message]) -> Bool {
            messages.last { $0.topic == topic }.map { !$0.payload.isEmpty } ?? false
        }
        var program = try start()
        defer {
            kill(program.process.processIdentifier, SIGKILL)
            program.process.waitUntilExit()
        }
        let subscriber = try Subscriber(broker, "#")
        let first = "beacond/test/ibeacon/\(Self.uuid)/1/1/presence"
        #expect(subscriber.wait { isKept(first, $0) })
        #expect(!isKept(document, subscriber.messages))
        #expect(try run("approve").output == "no beacon is approved\n")

        let approval = try run("approve", "--alias", "bag", "\(Self.uuid)/1/2")
        #expect(approval.output == "approved  ibeacon \(Self.uuid)/1/2  bag\n")
        #expect(subscriber.wait { isKept(state, $0) && isKept(document, $0) })
        #expect(subscriber.messages.last { $0.topic == document }?.payload.contains(#""name":"bag""#) == true)

        kill(program.process.processIdentifier, SIGTERM)
        program.process.waitUntilExit()
        program = try start()
        let late = try Subscriber(broker, "#")
        #expect(late.wait { isKept(state, $0) && isKept(document, $0) })
        #expect(try Daemon.waits { try run("approve").output == approval.output }, "it is remembered")
        kill(program.process.processIdentifier, SIGHUP)
        #expect(try run("approve").output == approval.output, "and not forgotten by a reload")

        let wrong = try run("disapprove", "keys")
        #expect(wrong.status != 0 && wrong.errors.contains("the configuration file names this beacon"))
        try broker.publish(["-t", "beacond/test/command/disapprove", "-m", #"{"beacon":"bag"}"#])
        #expect(late.wait { $0.contains { $0.topic == "beacond/test/command/disapprove/answer" } })
        #expect(late.wait { !isKept(state, $0) && !isKept(document, $0) })
        #expect(isKept(first, late.messages))
        try broker.publish(["-t", "beacond/test/command/approve", "-m", #"{"beacon":"ibeacon \#(Self.uuid)/1/2"}"#])
        #expect(late.wait { isKept(state, $0) && isKept(document, $0) })
    }

    @Test func `a beacon of a format of the configuration is shown by its fields`() throws {
        let folder = try TemporaryFolder()
        let daemon = try Daemon(
            configuration: """
                "state_directory": "\(folder.path)",
                "formats": [{ "name": "mine", "layout": "m:2-3=beac,i:4-19,i:20-21,p:24-24" }]
                """)
        let text = "mine \(Self.uuid)/513"
        #expect(try daemon.run("approve", text).output == "approved  \(text)\n")
        #expect(try daemon.run("approve", "mine \(Self.uuid)").status != 0)
        #expect(try daemon.run("disapprove", text).output == "no beacon is approved\n")
    }
}
