// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// nats-server speaks only MQTT 3.1.1, and takes neither spaces nor dots in topics.
@Suite(.serialized) struct OtherBrokerTests {
    private final class Server {
        let port: UInt16
        private let folder: TemporaryFolder
        private let process = Process()

        init() throws {
            port = try Broker.freePort()
            folder = try TemporaryFolder()
            let configuration = try folder.file(
                "nats.conf",
                """
                server_name: test
                listen: "127.0.0.1:\(try Broker.freePort())"
                jetstream { store_dir: "\(folder.path)" }
                mqtt { listen: "127.0.0.1:\(port)" }
                """)
            process.executableURL = try Broker.tool("nats-server")
            process.arguments = ["-c", configuration]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            let deadline = Date.now.addingTimeInterval(20)
            while !Broker.accepts(port) {
                guard process.isRunning, Date.now < deadline else {
                    throw Broker.Failure.didNotStart("nats-server does not listen on 127.0.0.1:\(port)")
                }
                usleep(10_000)
            }
        }

        deinit {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
            process.waitUntilExit()
        }
    }

    @Test func `a broker that refuses MQTT 5, spaces and dots gets everything all the same`() throws {
        let server = try Server()
        let root = "beacond/gw%2E1"
        let driver = Driver(port: server.port, gateway: "gw.1")
        let deadline = Date.now.addingTimeInterval(20)
        // Its store of messages is ready a little after it listens.
        while let error = Driver.failure({ try driver.open() }) {
            try #require(Date.now < deadline, "\(error)")
            usleep(100_000)
        }
        #expect(driver.log.contains { $0.contains("3.1.1") })

        let live = try Subscriber(port: server.port, version: "311", "beacond/#")
        try driver.write(
            [driver.event(.enter), driver.region(.regionEnter, "hall 1.a")].map { Delivery(role: .states, event: $0) })
        try driver.write(driver.transitions(1...300))
        try driver.write([Delivery(role: .sightings, event: driver.event(.sighting))])
        let beacon = "\(root)/ibeacon/\(Driver.uuid)/1/2"
        #expect(live.wait { messages in messages.contains { $0.topic == "\(beacon)/sighting" } })
        #expect(live.wait { $0.compactMap { $0["seq"] }.count >= 300 })
        #expect(live.messages(on: "\(beacon)/event").compactMap { $0["seq"] } == (1...300).map { "\($0)" })

        let late = try Subscriber(port: server.port, version: "311", "beacond/#")
        #expect(late.wait { $0.count >= 3 })
        #expect(late.messages(on: "\(beacon)/presence").first?["state"] == "present")
        #expect(late.messages(on: "\(root)/region/hall%201%2Ea/presence").first?["state"] == "inside")
        #expect(late.messages(on: "\(root)/status").first?["state"] == "online")

        var removed = driver.event(.exit)
        removed.exitReason = .removed
        try driver.write([
            Delivery(role: .states, event: removed),
            Delivery(role: .transitions, event: driver.region(.adapter, "hci0"), sequence: 301),
            Delivery(role: .sightings, event: driver.ranged("hall 1.a", rank: 1, of: 1)),
        ])
        #expect(live.wait { messages in messages.contains { $0.topic == "\(root)/region/hall%201%2Ea/ranging" } })
        let later = try Subscriber(port: server.port, version: "311", "beacond/#")
        #expect(later.wait { messages in messages.contains { $0.topic == "\(root)/health" } })
        #expect(later.wait { messages in messages.contains { $0.topic.hasSuffix("/region/hall%201%2Ea/presence") } })
        #expect(later.messages(on: "\(beacon)/presence").isEmpty)

        driver.close(isFinal: true)
        #expect(live.wait { $0.last { $0.topic == "\(root)/status" }?["state"] == "offline" })
    }
}
