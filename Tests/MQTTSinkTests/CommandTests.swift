// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import SinkKit
import Synchronization
import TestSupport
import Testing

@testable import MQTTSink

/// Commands that come from a broker, up to where they are handed to the gateway, and their answers.
@Suite(.serialized) struct CommandTests {
    /// Plays the gateway: notes what it was asked, and answers from another thread.
    private final class Gateway: Sendable {
        let requests = Mutex<[String]>([])
        let refusals = Atomic<Int>(0)
        var receiver: CommandReceiver {
            CommandReceiver(
                submit: { [self] request, answer in
                    let text = String(decoding: request, as: UTF8.self)
                    let count = requests.withLock {
                        $0.append(text)
                        return $0.count
                    }
                    Thread.detachNewThread { answer(Array(#"{"ok":true,"count":\#(count)}"#.utf8)) }
                    return true
                }, noteRefusal: { [self] in refusals.add(1, ordering: .relaxed) })
        }
    }

    private static func open(
        _ broker: Broker, _ gateway: Gateway, version: String = "5", commands: [String] = ["state", "reload"]
    ) throws -> Driver {
        let driver = Driver(
            port: broker.port, commands: gateway.receiver,
            ["commands": .list(commands.map { .text($0) }), "protocol": .text(version)])
        try driver.open()
        return driver
    }

    @Test(arguments: ["5", "3.1.1"])
    func `a command is done and answered on its own topic`(version: String) throws {
        let broker = try Broker()
        let gateway = Gateway()
        let driver = try Self.open(broker, gateway, version: version)
        let subscriber = try Subscriber(broker, "beacond/gw1/command/+/answer")
        try broker.publish(["-t", "beacond/gw1/command/state", "-m", #" {"beacons": 5} "#])
        try broker.publish(["-t", "beacond/gw1/command/reload", "-n"])
        try driver.idle(seconds: 1)
        #expect(subscriber.wait { $0.count == 2 })
        #expect(gateway.requests.withLock { $0 } == [#"{"verb":"state","beacons": 5} "#, #"{"verb":"reload"}"#])
        #expect(subscriber.messages(on: "beacond/gw1/command/state/answer").first?["count"] == "1")
        #expect(subscriber.messages(on: "beacond/gw1/command/reload/answer").first?["ok"] == "1")
    }

    @Test func `with MQTT 5 the answer goes where the sender wants it`() throws {
        let broker = try Broker()
        let driver = try Self.open(broker, Gateway())
        let subscriber = try Subscriber(broker, "desk/7")
        try broker.publish(
            [
                "-V", "5", "-t", "beacond/gw1/command/state", "-n", "-D", "publish", "response-topic", "desk/7", "-D",
                "publish", "correlation-data", "q1",
            ])
        try driver.idle(seconds: 1)
        #expect(subscriber.wait { $0.count == 1 })
        #expect(subscriber.messages.first?.payload.contains(#""ok":true"#) == true)
        #expect(subscriber.messages.first?.properties.contains("q1") == true)
    }

    @Test func `what may not be done is refused and answered`() throws {
        let broker = try Broker()
        let gateway = Gateway()
        // Before the gateway listens.
        try broker.publish(["-r", "-t", "beacond/gw1/command/state", "-m", "{}"])
        let subscriber = try Subscriber(broker, "beacond/gw1/command/+/answer")
        let driver = try Self.open(broker, gateway)
        try driver.idle(seconds: 0.5)
        #expect(subscriber.wait { $0.count == 1 })
        try broker.publish(["-t", "beacond/gw1/command/scan", "-n"])
        try broker.publish(["-t", "beacond/gw1/command/state", "-m", String(repeating: " ", count: 2000)])
        try broker.publish(["-t", "beacond/gw1/command/state", "-m", "now"])
        try broker.publish(
            [
                "-V", "5", "-t", "beacond/gw1/command/state", "-n", "-D", "publish", "response-topic",
                "beacond/gw1/command/state",
            ])
        try driver.idle(seconds: 1)
        #expect(subscriber.wait { $0.count == 5 })
        let reasons = subscriber.messages.compactMap { $0["error"] }
        for (reason, word) in zip(reasons, ["retained", "not allowed", "1024 bytes", "expected", "response topic"]) {
            #expect(reason.contains(word))
        }
        #expect(subscriber.messages.allSatisfy { $0.payload.contains(#""ok":false"#) })
        #expect(gateway.requests.withLock { $0.isEmpty })
        #expect(driver.log.count { $0.contains("refused a command") } == 5)
    }

    @Test func `a flood is cut down to one a second`() {
        let gateway = Gateway()
        var desk = CommandDesk(allowed: ["state"], gateway: "g", root: "b/g/", receiver: gateway.receiver)
        let command = MQTTReports.Message(topic: "b/g/command/state", payload: [], isRetained: false)
        var time = MonotonicTime.zero + .seconds(1000)
        var done = 0
        for _ in 0..<100 where desk.take(command, at: time) == nil { done += 1 }
        #expect(done == 5)
        for _ in 0..<100 {
            time = time + .milliseconds(100)
            if desk.take(command, at: time) == nil { done += 1 }
        }
        #expect(done == 15)
        #expect(gateway.refusals.load(ordering: .relaxed) == 185)
    }

    @Test func `nothing is listened to unless it is enabled`() throws {
        let broker = try Broker()
        let gateway = Gateway()
        let driver = try Self.open(broker, gateway, commands: [])
        try broker.publish(["-t", "beacond/gw1/command/state", "-n"])
        try driver.idle(seconds: 0.5)
        #expect(gateway.requests.withLock { $0.isEmpty })
        #expect(driver.log.isEmpty)
    }
}
