// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// The retained document of how the gateway fares.
@Suite(.serialized) struct HealthTests {
    private static let topic = "beacond/gw1/health"

    private static func adapter(_ driver: Driver, _ state: Event.AdapterState, _ trouble: String? = nil) -> Event {
        var event = driver.region(.adapter, "hci0")
        event.adapterState = state
        event.trouble = trouble.map { driver.vocabulary.names.intern($0) } ?? .none
        return event
    }

    private static func health(_ driver: Driver, _ trouble: String?) -> Event {
        var event = Event(kind: .health, time: .zero)
        event.wallTime = WallTime(milliseconds: 1_790_000_000_000)
        event.isHealthy = trouble == nil
        event.trouble = trouble.map { driver.vocabulary.names.intern($0) } ?? .none
        return event
    }

    private static func object(_ message: Subscriber.Message?) -> NSDictionary? {
        guard let payload = message?.payload else { return nil }
        return try? JSONSerialization.jsonObject(with: Data(payload.utf8)) as? NSDictionary
    }

    @Test func `it is retained, told anew at each change and at each connection`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, Self.topic)
        let driver = Driver(port: broker.port)
        try driver.open()
        try driver.write([
            Delivery(role: .transitions, event: Self.adapter(driver, .starting), sequence: 1),
            Delivery(role: .transitions, event: Self.adapter(driver, .blind, "switched off"), sequence: 2),
            Delivery(role: .transitions, event: Self.health(driver, "hci0 is blind: switched off"), sequence: 3),
        ])
        try driver.write(driver.transitions(4...6))
        #expect(subscriber.wait { $0.count == 1 })
        let bad = try #require(Self.object(subscriber.messages.last))
        #expect(bad["healthy"] as? Bool == false)
        #expect(bad["reason"] as? String == "hci0 is blind: switched off")
        #expect(bad["version"] as? String == "0.1.0-test")
        let adapters = try #require(bad["adapters"] as? [[String: String]])
        #expect(adapters == [["adapter": "hci0", "state": "blind", "reason": "switched off"]])
        #expect((bad["outbox"] as? NSDictionary)?["acknowledged"] as? Int == 3)
        #expect((bad["sent"] as? NSDictionary)?["events"] as? Int == 3)

        // The same comes again after a connection was lost: nothing new, and nothing older than what was told.
        try driver.write([
            Delivery(role: .transitions, event: Self.adapter(driver, .starting), sequence: 1, isReplayed: true)
        ])
        try driver.write([
            Delivery(role: .transitions, event: Self.adapter(driver, .scanning), sequence: 7),
            Delivery(role: .transitions, event: Self.health(driver, nil), sequence: 8),
        ])
        #expect(subscriber.wait { $0.count == 2 })
        let good = try #require(Self.object(subscriber.messages.last))
        #expect(good["healthy"] as? Bool == true)
        #expect(good["reason"] == nil)
        #expect(good["adapters"] as? [[String: String]] == [["adapter": "hci0", "state": "scanning"]])

        // mosquitto without persistence has forgotten it.
        driver.close(isFinal: false)
        broker.kill()
        try broker.start()
        try driver.open()
        let late = try Subscriber(broker, Self.topic)
        #expect(late.wait { $0.count == 1 })
        #expect(Self.object(late.messages.last)?["adapters"] as? NSArray == good["adapters"] as? NSArray)
        #expect((Self.object(late.messages.last)?["sent"] as? NSDictionary)?["connections"] as? Int == 2)
    }

    @Test func `the example of the page is what is written`() throws {
        let page = try String(contentsOf: Fixtures.repository.appending(path: "docs/mqtt.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "### `beacond/gw1/health`\n").last)
        let example = try #require(
            section.components(separatedBy: "```json\n").dropFirst().first?.split(separator: "\n").first)
        let driver = Driver(port: 1)
        let stream = "7f3a9c0e5b1d4826a1c4e8f09b7d3562"
        let time = WallTime(milliseconds: 1_796_073_240_502)
        var document = HealthDocument(gateway: "gw1", version: "0.1.0", names: driver.vocabulary.names)
        for (sequence, var event) in [
            Self.adapter(driver, .blind, "hci0: the adapter was switched off"),
            Self.health(driver, "hci0 is blind: hci0: the adapter was switched off"),
        ].enumerated() {
            event.wallTime = time
            document.note(
                Delivery(role: .transitions, event: event, sequence: UInt64(20 + sequence)), stream: stream)
        }
        document.acknowledge(stream, through: 21)
        document.sent = .init(states: 3, events: 21, sightings: 312, connections: 1)
        let counters = SinkHostCounters(
            queued: 2, conflated: 14,
            outbox: .init(
                waiting: 2, oldest: time, commits: 19, written: 311_296))
        var writer = JSONWriter()
        document.tell(counters, into: &writer)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == example)
    }

    @Test func `its counts go on while nothing happens`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, Self.topic)
        let driver = Driver(port: broker.port, limits: MQTTLimits(healthInterval: .milliseconds(200)))
        try driver.open()
        try driver.idle(seconds: 0.5)
        #expect(subscriber.messages.isEmpty, "nothing is known yet")
        try driver.write([Delivery(role: .transitions, event: Self.adapter(driver, .scanning), sequence: 1)])
        try driver.write(driver.transitions(2...9))
        try driver.idle(seconds: 3)
        #expect(subscriber.wait { $0.count >= 2 })
        let last = try #require(Self.object(subscriber.messages.last))
        #expect((last["outbox"] as? NSDictionary)?["acknowledged"] as? Int == 9)
    }

    @Test func `old events in full batches are not told one after the other`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, Self.topic)
        let driver = Driver(port: broker.port)
        try driver.open()
        let states: [Event.AdapterState] = [.starting, .scanning, .failed, .starting, .scanning]
        for (place, state) in states.enumerated() {
            let event = Self.adapter(driver, state)
            try driver.write([
                Delivery(role: .transitions, event: event, sequence: UInt64(place + 1), isReplayed: place < 4)
            ])
        }
        #expect(subscriber.wait { $0.count == 1 })
        #expect(subscriber.messages.last?.payload.contains("scanning") == true)
    }
}
