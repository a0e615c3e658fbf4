// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import LinuxIO
import SinkKit
import Synchronization
import TestSupport
import Testing

@testable import MQTTSink

/// The sink at a real mosquitto, as a subscriber sees it.
@Suite(.serialized) struct BrokerTests {
    private static let beacon = "beacond/gw1/ibeacon/\(Driver.uuid)/1/2"

    @Test(arguments: ["5", "3.1.1"])
    func `states, transitions and sightings arrive each in its way`(version: String) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker)
        let driver = Driver(port: broker.port, ["protocol": .text(version)])
        try driver.open()
        try driver.write([
            Delivery(role: .states, event: driver.event(.enter)),
            Delivery(role: .states, event: driver.region(.regionEnter, "hall 1")),
            Delivery(role: .transitions, event: driver.event(.enter), sequence: 7),
            Delivery(role: .transitions, event: driver.region(.regionEnter, "hall 1"), sequence: 8, isReplayed: true),
            Delivery(role: .transitions, event: driver.region(.adapter, "hci0"), sequence: 9),
            Delivery(role: .sightings, event: driver.event(.sighting)),
        ])
        #expect(subscriber.wait { $0.count >= 7 })

        let status = try #require(subscriber.messages(on: "beacond/gw1/status").first)
        #expect(status.isRetained)
        #expect(status.quality == 1)
        #expect(status["state"] == "online")
        #expect(status["gateway"] == "gw1")
        #expect(status["version"] == "0.1.0-test")
        #expect(status["v"] == "1")
        #expect(status["time"]?.hasSuffix("Z") == true)

        let presence = try #require(subscriber.messages(on: "\(Self.beacon)/presence").first)
        #expect(presence.isRetained)
        #expect(presence.quality == 1)
        #expect(presence["state"] == "present")
        #expect(presence["major"] == "1")
        #expect(presence["seq"] == nil)

        let region = try #require(subscriber.messages(on: "beacond/gw1/region/hall%201/presence").first)
        #expect(region.isRetained)
        #expect(region["state"] == "inside")

        let event = try #require(subscriber.messages(on: "\(Self.beacon)/event").first)
        #expect(!event.isRetained)
        #expect(event.quality == 1)
        #expect(event["event"] == "enter")
        #expect(event["seq"] == "7")
        #expect(event["stream"] == "5eed")
        #expect(event.payload.contains("\"replayed\":false"))

        let regionEvent = try #require(subscriber.messages(on: "beacond/gw1/region/hall%201/event").first)
        #expect(regionEvent["region"] == "hall 1")
        #expect(regionEvent.payload.contains("\"replayed\":true"))
        #expect(subscriber.messages(on: "beacond/gw1/event").first?["event"] == "adapter")

        let sighting = try #require(subscriber.messages(on: "\(Self.beacon)/sighting").first)
        #expect(!sighting.isRetained)
        #expect(sighting.quality == 0)
        #expect(sighting["rssi"] == "-60")

        let is5 = version == "5"
        for message in [status, presence, event, sighting] {
            #expect(message.properties.contains("content-type") == is5, "\(message.topic)")
            #expect(message.properties.contains("gw1") == is5)
            #expect(message.properties.contains("message-expiry-interval") == (is5 && message.topic == sighting.topic))
        }
    }

    @Test(arguments: [false, true])
    func `strangers leave no states and no events, and sightings only on demand`(isDemanded: Bool) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker)
        let driver = Driver(port: broker.port, ["publish_unknown": .boolean(isDemanded)])
        func stranger(_ kind: Event.Kind) -> Event {
            var event = driver.event(kind, minor: 99)
            event.isConfigured = false
            return event
        }
        try driver.open()
        try driver.write([
            Delivery(role: .states, event: stranger(.enter)),
            Delivery(role: .transitions, event: stranger(.enter), sequence: 1),
            Delivery(role: .sightings, event: stranger(.sighting)),
            Delivery(role: .transitions, event: driver.event(.enter), sequence: 2),
        ])
        #expect(subscriber.wait { $0.contains { $0.topic == "\(Self.beacon)/event" } })
        let topics = subscriber.messages.map(\.topic).filter { $0.contains("/99/") }
        #expect(topics == (isDemanded ? ["beacond/gw1/ibeacon/\(Driver.uuid)/1/99/sighting"] : []))
    }

    @Test func `as many strangers as the configuration says have topics in an hour`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker)
        let driver = Driver(port: broker.port, ["publish_unknown": .boolean(true), "unknown_per_hour": .integer(2)])
        func stranger(_ minor: UInt16) -> Delivery {
            var event = driver.event(.sighting, minor: minor)
            event.isConfigured = false
            return Delivery(role: .sightings, event: event)
        }
        try driver.open()
        try driver.write([11, 12, 13, 11, 12, 14].map { stranger($0) })
        try driver.write([Delivery(role: .transitions, event: driver.event(.enter), sequence: 1)])
        #expect(subscriber.wait { $0.contains { $0.topic == "\(Self.beacon)/event" } })
        let minors = subscriber.messages.filter { $0.topic.hasSuffix("/sighting") }.compactMap { $0["minor"] }
        #expect(minors == ["11", "12", "11", "12"])
    }

    @Test func `each hour others may have topics`() throws {
        let driver = Driver(port: 1)
        let identities = (UInt16(1)...4).map { driver.event(.sighting, minor: $0).identity }
        var limit = StrangerLimit(2)
        func admitted(at seconds: Int64) throws -> [Bool] {
            try identities.map { limit.admits(try #require($0), at: .zero + .seconds(seconds)) }
        }
        #expect(try admitted(at: 5) == [true, true, false, false])
        #expect(try admitted(at: 3604) == [true, true, false, false])
        let next = try identities.reversed().map { limit.admits(try #require($0), at: .zero + .seconds(3605)) }
        #expect(next == [true, true, false, false])
    }

    @Test func `retained states replace each other and come back after a new open`() throws {
        let broker = try Broker()
        // The name has an IPv6 address, too, where nobody listens.
        let driver = Driver(port: broker.port, ["host": .text("localhost")])
        try driver.open()
        try driver.write([Delivery(role: .states, event: driver.event(.enter))])
        try driver.write([Delivery(role: .states, event: driver.event(.exit))])
        var subscriber = try Subscriber(broker, "\(Self.beacon)/#")
        #expect(subscriber.wait { $0.count >= 1 })
        #expect(subscriber.messages.map { $0["state"] } == ["absent"])

        // mosquitto without persistence forgets what it retains.
        driver.close(isFinal: false)
        broker.kill()
        try broker.start()
        try driver.open()
        try driver.write([Delivery(role: .states, event: driver.event(.exit))])
        subscriber = try Subscriber(broker, "\(Self.beacon)/#")
        #expect(subscriber.wait { $0.count >= 1 })
        #expect(subscriber.messages.map { $0["state"] } == ["absent"])
    }

    @Test func `no transition is lost and none changes its place when the broker is killed amid a batch`() throws {
        let broker = try Broker()
        let driver = Driver(port: broker.port)
        var received: [String] = []
        var next: UInt64 = 1
        let last: UInt64 = 12_000
        var (kills, interruptions) = (0, 0)
        while next <= last {
            // At QoS 0 the broker writes to the subscriber before it acknowledges to the publisher; at QoS 1 it would
            // let at most 20 be on their way, and take the rest with it.
            let subscriber = try Subscriber(broker, "\(Self.beacon)/event", quality: 0)
            try driver.open()
            if kills < 4 {
                let delay = UInt32(20_000 + 15_000 * kills)
                Thread.detachNewThread {
                    usleep(delay)
                    broker.kill()
                }
                kills += 1
            }
            let start = next
            var error: SinkError?
            while next <= last, error == nil {
                let batch = driver.transitions(next...min(next + 255, last))
                error = driver.failure(batch)
                next += UInt64(error?.accepted ?? batch.count)
            }
            driver.close(isFinal: false)
            if let error {
                #expect(error.isDisconnected, "\(error)")
                subscriber.wait(seconds: 2) { UInt64($0.count) >= next - start }
            } else {
                #expect(subscriber.wait { UInt64($0.count) >= next - start })
            }
            let sequences = subscriber.messages.compactMap { $0["seq"] }
            #expect(sequences.elementsEqual((start..<start + UInt64(sequences.count)).map(String.init)))
            #expect(UInt64(sequences.count) <= next - start + 19, "more than the window came without acknowledgement")
            #expect(UInt64(sequences.count) >= next - start, "what was acknowledged has been there")
            received += sequences
            if error != nil {
                interruptions += 1
                broker.kill()
                try broker.start()
            }
        }
        #expect(interruptions > 0)
        #expect(Set(received).count == Int(last))
    }

    @Test func `a broker that stops answering is left after the stall`() throws {
        let broker = try Broker()
        let limits = MQTTLimits(acknowledgementTime: .milliseconds(700))
        let driver = Driver(port: broker.port, limits: limits)
        try driver.open()
        try driver.write(driver.transitions(1...5))
        broker.pause()
        let start = Clock.now
        let error = try #require(driver.failure(driver.transitions(6...50)))
        #expect(Clock.now - start >= .milliseconds(700))
        #expect(error.isDisconnected)
        #expect(error.accepted == 0)
        #expect(error.reason.contains("acknowledged nothing"))
        driver.close(isFinal: true)
        broker.resume()
        try driver.open()
        try driver.write(driver.transitions(6...50))
    }

    @Test func `the end of the program does not wait for a broker that does not answer`() throws {
        let broker = try Broker()
        let driver = Driver(port: broker.port)
        try driver.open()
        broker.pause()
        driver.host.isStopping.withLock { $0 = true }
        let start = Clock.now
        let error = try #require(driver.failure(driver.transitions(1...50)))
        #expect(error.isRetry)
        #expect(error.accepted == 0)
        driver.close(isFinal: true)
        #expect(Clock.now - start < .seconds(4))
    }

    @Test func `idle returns when it is woken, and notices the end of the connection`() throws {
        let broker = try Broker()
        let driver = Driver(port: broker.port)
        try driver.open()
        var ends: [Int32] = [0, 0]
        try #require(unsafe pipe(&ends) == 0)
        defer { ends.forEach { close($0) } }
        let writing = ends[1]
        Thread.detachNewThread {
            usleep(100_000)
            _ = unsafe write(writing, "x", 1)
        }
        var start = Clock.now
        try driver.idle(seconds: 30, wake: ends[0])
        #expect(Clock.now - start < .seconds(15))

        start = Clock.now
        Thread.detachNewThread {
            usleep(100_000)
            broker.kill()
        }
        #expect(Driver.failure { try driver.idle(seconds: 30) }?.isDisconnected == true)
        #expect(Clock.now - start < .seconds(15))
    }

    @Test func `idle keeps the connection alive beyond the keepalive`() throws {
        let broker = try Broker()
        let driver = Driver(port: broker.port, ["keepalive": .duration(.seconds(5))])
        try driver.open()
        try driver.idle(seconds: 9)
        try driver.write(driver.transitions(1...1))
    }
}
