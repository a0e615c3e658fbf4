// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import SinkKit
import Synchronization
import TestSupport
import Testing

@testable import MQTTSink

/// What goes over the wire, and what the sink makes of answers that mosquitto cannot be brought to give.
@Suite struct ProtocolTests {
    @Test func `a broker that refuses MQTT 5 is spoken to in 3_1_1, at once the next time`() throws {
        let broker = try ScriptedBroker { _, packet in
            packet.type == 1 && packet.level == 5 ? [0x20, 3, 0, 0x84, 0] : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port)
        try driver.open()
        try driver.write(driver.transitions(1...3))
        driver.close(isFinal: false)
        try driver.open()
        driver.close(isFinal: false)
        let levels = broker.packets.withLock { $0.filter { $0.type == 1 }.map(\.level) }
        #expect(levels == [5, 4, 4])
        #expect(driver.log.contains { $0.contains("3.1.1") })
    }

    @Test func `a refusal in the older spelling is understood`() throws {
        let broker = try ScriptedBroker { _, packet in
            packet.type == 1 && packet.level == 5 ? [0x20, 2, 0, 1] : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port)
        try driver.open()
        #expect(broker.packets.withLock { $0.filter { $0.type == 1 }.map(\.level) } == [5, 4])
    }

    @Test func `a broker that hangs up is asked for MQTT 5 again the next time`() throws {
        let broker = try ScriptedBroker { _, packet in
            packet.type == 1 && packet.level == 5 ? nil : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port)
        for _ in 0..<2 {
            try driver.open()
            driver.close(isFinal: false)
        }
        #expect(broker.packets.withLock { $0.filter { $0.type == 1 }.map(\.level) } == [5, 4, 5, 4])
    }

    @Test func `a version that was asked for is the only one that is tried`() throws {
        let broker = try ScriptedBroker { _, packet in
            packet.type == 1 ? [0x20, 3, 0, 0x84, 0] : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port, ["protocol": .text("5")])
        let error = try #require(Driver.failure { try driver.open() })
        #expect(error.reason.contains("`protocol`"))
        #expect(broker.packets.withLock { $0.count } == 1)
    }

    @Test func `CONNECT keeps the session for longer than the will waits`() throws {
        let broker = try ScriptedBroker { _, packet in ScriptedBroker.ordinary(packet) }
        let driver = Driver(port: broker.port)
        try driver.open()
        let connect = try #require(broker.packets.withLock { $0.first })
        // Name, level, flags: will retained at QoS 1, no clean start.
        #expect(Array(connect.body[..<8]) == [0, 4, 0x4D, 0x51, 0x54, 0x54, 5, 0b0010_1100])
        #expect(Array(connect.body[8..<10]) == [0, 20])
        #expect(Array(connect.body[10..<16]) == [8, 0x11, 0, 0, 0, 120], "session expiry is the first property")
        #expect(connect.body.containsSequence([5, 0x18, 0, 0, 0, 60]), "will delay")
        #expect(connect.body.containsSequence(Array("beacond-gw1".utf8)))
        #expect(connect.body.containsSequence(Array("beacond/gw1/status".utf8)))
    }

    @Test func `3_1_1 starts clean`() throws {
        let broker = try ScriptedBroker { _, packet in ScriptedBroker.ordinary(packet) }
        let driver = Driver(port: broker.port, ["protocol": .text("3.1.1")])
        try driver.open()
        let connect = try #require(broker.packets.withLock { $0.first })
        #expect(Array(connect.body[6..<10]) == [4, 0b0010_1110, 0, 20])
    }

    @Test(arguments: [0, 1, 7, 18, 19, 25])
    func `what was acknowledged before the connection ended is counted exactly`(count: Int) throws {
        // The birth is the first one that is acknowledged.
        let left = Counter(count + 1)
        let broker = try ScriptedBroker { _, packet in
            packet.type == 3 && !left.take() ? nil : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port)
        try driver.open()
        let error = try #require(driver.failure(driver.transitions(1...40)))
        #expect(error.isDisconnected)
        #expect(error.accepted == count)
        #expect(driver.failure(driver.transitions(1...1))?.isDisconnected == true, "it stays disconnected")
    }

    @Test func `at most 20 messages wait for their acknowledgement`() throws {
        let isSilent = Counter(1)
        let broker = try ScriptedBroker { _, packet in
            packet.type == 3 && !isSilent.take() ? [] : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port, limits: MQTTLimits(acknowledgementTime: .milliseconds(500)))
        try driver.open()
        let error = try #require(driver.failure(driver.transitions(1...100)))
        #expect(error.isDisconnected)
        #expect(error.accepted == 0)
        // Without the birth.
        #expect(broker.packets.withLock { $0.filter { $0.type == 3 }.count } - 1 == 18)
    }

    @Test func `a message that the broker refuses is rejected, and those before it are accepted`() throws {
        let broker = try ScriptedBroker { _, packet in
            packet.type == 3 && packet.body.containsSequence(Array("\"seq\":4,".utf8))
                ? ScriptedBroker.refuse(packet, 0x87) : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port)
        try driver.open()
        let error = try #require(driver.failure(driver.transitions(1...10)))
        #expect(error.isReject)
        #expect(error.accepted == 3)
        #expect(error.description.contains("/2/event"))
        #expect(error.description.contains("not authorized"))
        try driver.write(driver.transitions(5...10))
    }

    @Test func `a message for which the broker has no room is tried again`() throws {
        let broker = try ScriptedBroker { _, packet in
            packet.type == 3 && packet.body.containsSequence(Array(#""seq":3,"#.utf8))
                ? ScriptedBroker.refuse(packet, 0x97) : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port)
        try driver.open()
        let error = try #require(driver.failure(driver.transitions(1...5)))
        #expect(error.isRetry)
        #expect(error.accepted == 2)
    }

    @Test func `sightings do not pile up before a broker that stopped reading`() throws {
        let broker = try ScriptedBroker { _, packet in
            if packet.type == 3, packet.header & 0x06 == 0 { sleep(3) }
            return ScriptedBroker.ordinary(packet)
        }
        var limits = MQTTLimits()
        limits.sightingPatience = .milliseconds(100)
        let driver = Driver(port: broker.port, limits: limits)
        try driver.open()
        let sightings = (0..<2000).map { Delivery(role: .sightings, event: driver.event(.sighting, minor: $0)) }
        var handedOver = 0
        var error: SinkError?
        for _ in 0..<40 {
            error = driver.failure(sightings)
            handedOver += error?.accepted ?? sightings.count
            if error != nil { break }
        }
        let shortage = try #require(error)
        #expect(shortage.isBusy)
        // Both sockets' buffers, and no more than one message in the library.
        #expect(handedOver < 40_000)
        let again = try #require(driver.failure(sightings))
        #expect(again.isBusy)
        #expect(again.accepted == 0)
    }

    @Test func `the birth is repeated when somebody says offline`() throws {
        let topic = Array("beacond/gw1/status".utf8)
        let payload = Array("{\"state\":\"offline\",\"v\":1}".utf8)
        let broker = try ScriptedBroker { _, packet in
            guard packet.type == 8 else { return ScriptedBroker.ordinary(packet) }
            let suback: [UInt8] = [0x90, 4] + packet.body[..<2] + [0, 0]
            return suback + [0x30, UInt8(3 + topic.count + payload.count), 0, UInt8(topic.count)] + topic + [0]
                + payload
        }
        let driver = Driver(port: broker.port)
        try driver.open()
        try driver.idle(seconds: 0.5)
        #expect(broker.packets.withLock { $0.filter { $0.type == 3 }.count } == 2)
    }

    @Test func `a refused subscription is a warning`() throws {
        let broker = try ScriptedBroker { _, packet in
            packet.type == 8 ? [0x90, 4] + packet.body[..<2] + [0, 0x87] : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port)
        try driver.open()
        try driver.idle(seconds: 0.3)
        #expect(driver.log.contains { $0.contains("beacond/gw1/status") })
    }

    @Test func `a session that was taken over is called by its name`() throws {
        let broker = try ScriptedBroker { _, packet in
            packet.type == 8 ? [0xE0, 2, 0x8E, 0] : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port)
        let error = try #require(
            Driver.failure {
                try driver.open()
                try driver.idle(seconds: 5)
            })
        #expect(error.isDisconnected)
        #expect(error.reason.contains("another gateway uses this id"))
    }

    @Test func `a broker that never answers is given up`() throws {
        let broker = try ScriptedBroker { _, _ in [] }
        let driver = Driver(port: broker.port, limits: MQTTLimits(connectTime: .milliseconds(300)))
        let error = try #require(Driver.failure { try driver.open() })
        #expect(error.isDisconnected)
        #expect(error.reason.contains("no answer"))
        driver.host.isStopping.withLock { $0 = true }
        #expect(Driver.failure { try driver.open() }?.reason.contains("the program ends") == true)
    }

    @Test func `nobody listens`() throws {
        let driver = Driver(port: try Broker.freePort())
        let error = try #require(Driver.failure { try driver.open() })
        #expect(error.isDisconnected)
        #expect(error.description.contains("Connection refused"))
        #expect(error.description.contains("127.0.0.1"))
    }
}

final class Counter: Sendable {
    private let left: Mutex<Int>
    init(_ count: Int) { left = Mutex(count) }

    /// Whether there was one left.
    func take() -> Bool {
        left.withLock {
            $0 -= 1
            return $0 >= 0
        }
    }
}

extension [UInt8] {
    func containsSequence(_ other: [UInt8]) -> Bool {
        count >= other.count && (0...(count - other.count)).contains { Array(self[$0..<($0 + other.count)]) == other }
    }
}
