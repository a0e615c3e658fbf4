// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import LinuxIO
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// The life of announcements at a real mosquitto.
@Suite(.serialized) struct DiscoveryBrokerTests {
    private static let limits = MQTTLimits(
        discoveryDelay: .milliseconds(200), discoveryJitter: .milliseconds(300), discoveryFarewell: .milliseconds(500))
    private static let node = "homeassistant/device/beacond_gw1"
    private static let badge = "ibeacon_\(Driver.uuid)_1_2"
    private static let tag = "device_c4_3A7c_3A8d_3A6a_3A11_3A22"

    /// A sink that announces, at a broker.
    private func driver(_ broker: Broker, _ more: [String: Value] = [:]) -> Driver {
        let driver = Driver(
            port: broker.port, limits: Self.limits, formats: DiscoverySample.catalog,
            ["home_assistant": DiscoverySample.section(more)])
        driver.board.post(DiscoverySample.inventory(driver.vocabulary.names))
        return driver
    }

    /// Serves the connection until what has come satisfies the condition.
    private func serve(
        _ driver: Driver, _ subscriber: Subscriber, seconds: Double = 20,
        _ condition: ([Subscriber.Message]) -> Bool
    ) throws -> Bool {
        let deadline = Date.now.addingTimeInterval(seconds)
        while !condition(subscriber.messages) {
            if Date.now >= deadline { return false }
            try driver.idle(seconds: 0.05)
        }
        return true
    }

    private func topics(_ objects: [String]) -> Set<String> { Set(objects.map { "\(Self.node)/\($0)/config" }) }

    /// What a client that comes now finds.
    private func retained(_ broker: Broker, _ filter: String = "homeassistant/#") throws -> [String: String] {
        let late = try Subscriber(broker, filter)
        return Dictionary(late.messages.map { ($0.topic, $0.payload) }) { $1 }
    }

    @Test(arguments: ["5", "3.1.1"])
    func `everything is announced after the connection, retained, the gateway first`(version: String) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "homeassistant/#")
        let driver = Driver(
            port: broker.port, limits: Self.limits, formats: DiscoverySample.catalog,
            ["home_assistant": DiscoverySample.section(), "protocol": .text(version)])
        driver.board.post(DiscoverySample.inventory(driver.vocabulary.names))
        try driver.open()
        #expect(try serve(driver, subscriber) { $0.count >= 5 })
        #expect(
            Set(subscriber.messages.map(\.topic))
                == topics(["gateway", "region_hall_201", "region_me", Self.badge, Self.tag]))
        #expect(subscriber.messages.first?.topic == "\(Self.node)/gateway/config")
        for message in subscriber.messages {
            #expect(message.isRetained)
            #expect(message.quality == 1)
            #expect(message["components"] != nil)
        }
        // Nothing of it comes again, not even when the sink connects anew.
        driver.close(isFinal: false)
        try driver.open()
        try driver.idle(seconds: 1)
        #expect(subscriber.messages.count == 5)
        #expect(driver.log.allSatisfy { !$0.contains("refuse") && !$0.contains("read") }, "\(driver.log)")
    }

    @Test func `nothing is announced unless it is asked for`() throws {
        for section in [[:], ["home_assistant": DiscoverySample.section(["enabled": .boolean(false)])]] {
            let broker = try Broker()
            let subscriber = try Subscriber(broker, "homeassistant/#")
            let driver = Driver(port: broker.port, limits: Self.limits, formats: DiscoverySample.catalog, section)
            driver.board.post(DiscoverySample.inventory(driver.vocabulary.names))
            try driver.open()
            try broker.publish(["-t", "homeassistant/status", "-m", "online"])
            try driver.idle(seconds: 1)
            #expect(subscriber.messages.map(\.topic) == ["homeassistant/status"])
        }
    }

    @Test func `a birth of Home Assistant is answered, a death and a retained birth are not`() throws {
        let broker = try Broker()
        try broker.publish(["-r", "-t", "homeassistant/status", "-m", "online"])
        let subscriber = try Subscriber(broker, "homeassistant/+/+/+/config")
        let driver = self.driver(broker)
        try driver.open()
        #expect(try serve(driver, subscriber) { $0.count >= 5 })
        try broker.publish(["-t", "homeassistant/status", "-m", "offline"])
        try driver.idle(seconds: 1)
        #expect(subscriber.messages.count == 5)
        try broker.publish(["-t", "homeassistant/status", "-m", "online"])
        #expect(try serve(driver, subscriber) { $0.count >= 10 })
        #expect(Set(subscriber.messages.suffix(5).map(\.topic)).count == 5)
    }

    @Test func `what leaves the configuration is taken back, while the gateway runs and while it does not`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "homeassistant/#")
        let first = driver(broker)
        try first.open()
        #expect(try serve(first, subscriber) { $0.count >= 5 })
        var inventory = DiscoverySample.inventory(first.vocabulary.names)
        inventory.regions.removeLast()
        first.board.post(inventory)
        #expect(try serve(first, subscriber) { $0.last?.topic == "\(Self.node)/region_me/config" })
        #expect(subscriber.messages.last?.payload == "")
        #expect(subscriber.messages.count == 6)
        first.close(isFinal: true)

        let second = driver(broker)
        inventory = DiscoverySample.inventory(second.vocabulary.names)
        inventory.regions.removeLast()
        inventory.beacons.removeFirst()
        second.board.post(inventory)
        try second.open()
        #expect(try serve(second, subscriber) { $0.last?.topic == "\(Self.node)/\(Self.badge)/config" })
        #expect(subscriber.messages.last?.payload == "")
        #expect(Set(try retained(broker).keys) == topics(["gateway", "region_hall_201", Self.tag]))
    }

    @Test(arguments: ["2024.3", "2026.7"])
    func `at its birth Home Assistant is shown once more what went while it was off`(release: String) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "homeassistant/#")
        let driver = driver(broker, ["release": .text(release)])
        try driver.open()
        #expect(try serve(driver, subscriber) { $0.contains { $0.topic.contains(Self.badge) } })
        try driver.idle(seconds: 1)
        let topics = Set(subscriber.messages.map(\.topic).filter { $0.contains(Self.badge) })
        #expect(!topics.isEmpty)
        var inventory = DiscoverySample.inventory(driver.vocabulary.names)
        inventory.beacons.removeFirst()
        driver.board.post(inventory)
        #expect(try serve(driver, subscriber) { $0.count { $0.payload.isEmpty } == topics.count })
        let before = subscriber.messages.count
        try broker.publish(["-t", "homeassistant/status", "-m", "online"])
        #expect(
            try serve(driver, subscriber) {
                $0.dropFirst(before).count { topics.contains($0.topic) } == 2 * topics.count
            })
        let shown = subscriber.messages.dropFirst(before).filter { topics.contains($0.topic) }
        for message in shown.prefix(topics.count) {
            #expect(message.payload.contains(#""origin":{"name":"beacond"}"#))
            #expect(message.payload.contains(#""identifiers":["beacond_gw1_\#(Self.badge)"]"#), "\(message.payload)")
            #expect(message.payload.contains(#""unique_id":"beacond_gw1_\#(Self.badge)_"#))
        }
        #expect(shown.suffix(topics.count).allSatisfy { $0.payload.isEmpty })
        #expect(try retained(broker).keys.allSatisfy { !topics.contains($0) })
        // Once, and not at all for what is there again.
        let after = subscriber.messages.count
        driver.board.post(DiscoverySample.inventory(driver.vocabulary.names))
        try broker.publish(["-t", "homeassistant/status", "-m", "online"])
        try driver.idle(seconds: 1.5)
        #expect(subscriber.messages.dropFirst(after).allSatisfy { !$0.payload.isEmpty })
    }

    @Test func `another form takes the place of the old one`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "homeassistant/#")
        let old = driver(broker, ["release": .text("2024.3")])
        try old.open()
        #expect(try serve(old, subscriber) { $0.count >= 20 })
        try old.idle(seconds: 0.5)
        let topics = Set(subscriber.messages.map(\.topic))
        #expect(topics.contains("homeassistant/device_tracker/beacond_gw1/\(Self.badge)_tracker/config"))
        #expect(topics.allSatisfy { !$0.hasPrefix(Self.node) })
        old.close(isFinal: true)

        let new = driver(broker)
        try new.open()
        let count = subscriber.messages.count
        // Each entity makes room first, then its device comes, then the old topic goes.
        #expect(try serve(new, subscriber) { $0.count >= count + 2 * topics.count + 5 })
        #expect(subscriber.messages[count].payload.contains("migrate_discovery"))
        #expect(
            Set(try retained(broker).keys)
                == self.topics(["gateway", "region_hall_201", "region_me", Self.badge, Self.tag]))
        new.close(isFinal: true)

        let back = driver(broker, ["release": .text("2024.3")])
        try back.open()
        #expect(try serve(back, subscriber) { $0.count >= count + 3 * topics.count + 10 })
        #expect(Set(try retained(broker).keys) == topics)
    }

    @Test(arguments: ["2024.3", "2026.7"])
    func `what a beacon measures is announced when it is heard, and kept`(release: String) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "homeassistant/#")
        let first = driver(broker, ["release": .text(release)])
        try first.open()
        try first.idle(seconds: 0.6)
        var sighting = first.event(.sighting, DiscoverySample.tag)
        sighting.payload = DiscoverySample.telemetry
        var stranger = first.event(.sighting, DiscoverySample.beacon(minor: 9))
        stranger.payload = DiscoverySample.telemetry
        try first.write([sighting, stranger].map { Delivery(role: .sightings, event: $0) })
        func has(_ messages: [Subscriber.Message]) -> Bool {
            messages.contains { $0.payload.contains("\(Self.tag)_battery_mv") }
                && messages.contains { $0.payload.contains("\(Self.tag)_temperature_c") }
        }
        #expect(try serve(first, subscriber, has))
        let count = subscriber.messages.count
        try first.write([Delivery(role: .sightings, event: sighting)])
        try first.idle(seconds: 0.5)
        #expect(subscriber.messages.count == count, "nothing new was heard")
        #expect(subscriber.messages.allSatisfy { !$0.topic.contains("_1_9") })
        first.close(isFinal: true)

        let second = driver(broker, ["release": .text(release)])
        try second.open()
        try second.idle(seconds: 1)
        #expect(subscriber.messages.count == count, "the same is wanted as before")
        try broker.publish(["-t", "homeassistant/status", "-m", "online"])
        #expect(try serve(second, subscriber) { has(Array($0.dropFirst(count))) })
    }

    @Test func `an entity that a device has no more is named once without anything`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "\(Self.node)/region_me/config")
        let first = driver(broker)
        try first.open()
        #expect(try serve(first, subscriber) { $0.count >= 1 })
        first.close(isFinal: true)
        let second = driver(broker, ["trackers": .list([])])
        try second.open()
        #expect(try serve(second, subscriber) { $0.count >= 3 })
        #expect(subscriber.messages[1].payload.contains(#""tracker":{"platform":"device_tracker"}"#))
        #expect(!subscriber.messages[2].payload.contains("tracker"))
    }

    @Test func `what others announce is left alone`() throws {
        let broker = try Broker()
        let foreign = [
            "homeassistant/device/beacond_gw2/gateway/config", "homeassistant/sensor/lamp/config",
            "homeassistant/sensor/beacond_gw1x/a/config", "homeassistant/sensor/other/beacond_gw1/config",
            // At this gateway's place, by somebody else.
            "homeassistant/sensor/beacond_gw1/mine/config",
        ]
        for topic in foreign {
            try broker.publish(["-r", "-t", topic, "-m", #"{"name":"x","origin":{"name":"somebody"}}"#])
        }
        let driver = self.driver(broker)
        let subscriber = try Subscriber(broker, "\(Self.node)/+/config")
        try driver.open()
        #expect(try serve(driver, subscriber) { $0.count >= 5 })
        try driver.idle(seconds: 0.5)
        let left = try retained(broker)
        for topic in foreign { #expect(left[topic]?.contains("somebody") == true, "\(topic)") }
    }

    @Test func `a thousand beacons are announced a few at a time, and transitions pass between`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker)
        let driver = self.driver(broker)
        var octets = Array(repeating: UInt8(7), count: 20)
        driver.board.post(
            Inventory(
                beacons: (0..<1000).map { number in
                    octets[18] = UInt8(number >> 8)
                    octets[19] = UInt8(number & 0xFF)
                    return .init(identity: DiscoverySample.identity("ibeacon", octets))
                }))
        try driver.open()
        var sequence: UInt64 = 0
        let isDone = try serve(driver, subscriber, seconds: 60) { messages in
            sequence += 1
            if sequence <= 20 {
                #expect(throws: Never.self) { try driver.write(driver.transitions(sequence...sequence)) }
            }
            return messages.count { $0.topic.hasPrefix(Self.node) } >= 1001
        }
        #expect(isDone)
        let written = Int(min(sequence, 20))
        #expect(subscriber.wait { messages in messages.count { $0.topic.hasSuffix("/event") } == written })
        let first = subscriber.messages.firstIndex { $0.topic.hasSuffix("/event") } ?? .max
        #expect(first < subscriber.messages.lastIndex { $0.topic.hasPrefix(Self.node) } ?? 0)
        #expect(Set(try retained(broker).keys).count == 1001)
    }

    @Test func `a broker that does not let it announce is told of once, and everything else goes on`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("acl", "topic write beacond/#\ntopic read #\n")
        let broker = try Broker(settings: ["acl_file \(file)"])
        let driver = self.driver(broker)
        try driver.open()
        try driver.idle(seconds: 1)
        try driver.write(driver.transitions(1...5))
        #expect(driver.log.contains { $0.contains("announcement") }, "\(driver.log)")
    }
}
