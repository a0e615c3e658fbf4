// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// What the broker retains of beacons and regions, as the configuration changes.
@Suite(.serialized) struct RetainedStateTests {
    private static let stem = "beacond/test/ibeacon/f7826da6-4fa2-4e98-8024-bc5b71e0893e/1"

    private static let wide = "fda50693-a4e2-4fb1-afcf-c6eb07647825"

    private static func configuration(_ port: UInt16, beacons: ClosedRange<Int>, regions: [String: String]) -> String {
        let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"
        let beacons = beacons.map { #"{ "alias": "b\#($0)", "uuid": "\#(uuid)", "major": 1, "minor": \#($0) }"# }
        let regions = regions.sorted { $0.key < $1.key }.map { #"{ "name": "\#($0)", "beacons": ["\#($1)"] }"# }
        return """
            { "gateway": { "id": "test" }, "beacons": [\(beacons.joined(separator: ", "))],
              "regions": [\(regions.joined(separator: ", "))],
              "sinks": [{ "kind": "mqtt", "config": { "host": "127.0.0.1", "port": \(port) } }] }
            """
    }

    @Test func `what was dropped while the gateway did not run goes at its next start`() throws {
        let broker = try Broker()
        let folder = try TemporaryFolder()
        let scenario = try folder.file("world.json", Daemon.scenario(beacons: 2, interval: "100ms"))
        // The whole of the second UUID is a region: its beacons are named by it.
        let file = try folder.file(
            "plugins.json",
            Self.configuration(broker.port, beacons: 1...2, regions: ["desk": "b1"]).replacing(
                #""regions": ["#, with: #""regions": [{ "name": "all", "uuid": "\#(Self.wide)" }, "#))
        func state(_ member: String, gateway: String = "test") -> String {
            #"{"state":"present","time":"2026-11-30T21:09:00.123Z","v":1,"gateway":"\#(gateway)",\#(member)}"#
        }
        func beacon(_ uuid: String, _ minor: Int) -> String {
            #""format":"ibeacon","uuid":"\#(uuid)","major":1,"minor":\#(minor)"#
        }
        let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"
        let dropped = ["\(Self.stem)/4/presence", "beacond/test/region/gone/presence"]
        let kept = [
            "\(Self.stem)/2/presence", "beacond/test/ibeacon/\(Self.wide)/1/9/presence",
            "beacond/test/region/all/presence", "beacond/other/ibeacon/\(uuid)/1/4/presence",
            "\(Self.stem)/5/presence", "\(Self.stem)/6/presence",
        ]
        let payloads = [
            state(beacon(uuid, 4)), state(#""region":"gone""#), state(beacon(uuid, 2)), state(beacon(Self.wide, 9)),
            state(#""region":"all""#), state(beacon(uuid, 4), gateway: "other"),
            // Nobody knows what they are, or whose.
            "{}", state(beacon(uuid, 6), gateway: "other"),
        ]
        for (topic, payload) in zip(dropped + kept, payloads) {
            try broker.publish(["-r", "-t", topic, "-m", payload])
        }
        let subscriber = try Subscriber(broker, "beacond/#")
        let program = try Program(
            ["run", "--config", file, "--source", "simulate:\(scenario)"],
            environment: ["RUNTIME_DIRECTORY": folder.path])
        try program.start()
        defer {
            kill(program.process.processIdentifier, SIGKILL)
            program.process.waitUntilExit()
        }
        #expect(
            subscriber.wait { messages in
                dropped.allSatisfy { topic in messages.last { $0.topic == topic }?.payload.isEmpty == true }
            })
        let late = try Subscriber(broker, "beacond/#")
        for topic in kept { #expect(late.wait { $0.contains { $0.topic == topic } }, "\(topic)") }
    }

    @Test func `what the configuration drops is no longer retained, the rest is`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "beacond/#")
        let folder = try TemporaryFolder()
        let scenario = try folder.file("world.json", Daemon.scenario(beacons: 3, interval: "100ms"))
        // Nobody is ever in the hall: its beacon is not in the world.
        let file = try folder.file(
            "plugins.json",
            Self.configuration(broker.port, beacons: 1...4, regions: ["desk": "b1", "door": "b3", "hall": "b4"]))
        let program = try Program(
            ["run", "--config", file, "--source", "simulate:\(scenario)"],
            environment: ["RUNTIME_DIRECTORY": folder.path])
        try program.start()
        defer {
            kill(program.process.processIdentifier, SIGKILL)
            program.process.waitUntilExit()
        }
        // Of an earlier life of this gateway.
        try broker.publish(["-r", "-t", "\(Self.stem)/4/presence", "-m", "{}"])
        let retained =
            (1...3).map { "\(Self.stem)/\($0)/presence" }
            + ["desk", "door"].map { "beacond/test/region/\($0)/presence" }
        #expect(
            subscriber.wait { messages in retained.allSatisfy { topic in messages.contains { $0.topic == topic } } })

        _ = try folder.file(
            "plugins.json", Self.configuration(broker.port, beacons: 1...2, regions: ["desk": "b2"]))
        kill(program.process.processIdentifier, SIGHUP)
        let dropped =
            (3...4).map { "\(Self.stem)/\($0)/presence" }
            + ["door", "hall"].map { "beacond/test/region/\($0)/presence" }
        #expect(
            subscriber.wait { messages in
                dropped.allSatisfy { topic in messages.last { $0.topic == topic }?.payload.isEmpty == true }
            })
        let late = try Subscriber(broker, "beacond/test/#")
        let kept = [1, 2].map { "\(Self.stem)/\($0)/presence" } + ["beacond/test/region/desk/presence"]
        #expect(late.wait { messages in kept.allSatisfy { topic in messages.contains { $0.topic == topic } } })
        #expect(late.messages.allSatisfy { message in !dropped.contains { $0 == message.topic } })
    }
}
