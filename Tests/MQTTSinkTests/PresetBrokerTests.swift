// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Configuration
import Foundation
import LinuxIO
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// The presets at a real mosquitto, as a subscriber of the other gateway's topics sees them.
@Suite(.serialized) struct PresetBrokerTests {
    private static let all: [String: Value] = [
        "presets": .list([.text("mqtt_room"), .text("theengs"), .text("espresense")]), "room": .text("Living room"),
    ]

    private func driver(_ broker: Broker, _ more: [String: Value]) -> Driver {
        Driver(port: broker.port, formats: FrameDecoder().catalog, more)
    }

    private func event(_ kind: Event.Kind, _ driver: Driver, alias: String = "keys") -> Event {
        var event = driver.event(kind)
        event.name = driver.vocabulary.names.intern(alias)
        event.accuracy = 1.5
        return event
    }

    @Test(arguments: [
        (
            "mqtt_room", "room_presence/#", "room_presence/Living room",
            #"{"id":"keys","name":"keys","distance":1.5,"rssi":-60}"#
        ),
        (
            "theengs", "home/#", "home/gw1/BTtoMQTT/001122334455",
            #"{"id":"00:11:22:33:44:55","mac_type":1,"name":"keys","rssi":-60,"distance":1.5,"#
                + #""brand":"GENERIC","model":"iBeacon","model_id":"IBEACON","type":"BCON","mfid":"4c00","#
                + #""uuid":"fda50693a4e24fb1afcfc6eb07647825","major":1,"minor":2,"txpower":-59}"#
        ),
        (
            "espresense", "espresense/#",
            "espresense/devices/iBeacon:fda50693-a4e2-4fb1-afcf-c6eb07647825-1-2/Living room",
            #"{"mac":"001122334455","id":"iBeacon:fda50693-a4e2-4fb1-afcf-c6eb07647825-1-2","name":"keys","#
                + #""rssi@1m":-59,"rssi":-61.5,"rxAdj":0,"distance":1.5}"#
        ),
    ])
    func `a subscriber reads a sighting where the other gateway has it`(
        preset: String, filter: String, topic: String, payload: String
    ) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, filter)
        let driver = driver(broker, ["presets": .list([.text(preset)]), "room": .text("Living room")])
        try driver.open()
        try driver.write([Delivery(role: .sightings, event: event(.sighting, driver))])
        #expect(subscriber.wait { $0.contains { $0.topic == topic } })
        let message = try #require(subscriber.messages(on: topic).first)
        #expect(message.payload == payload)
        #expect(message.quality == 0)
        #expect(!message.isRetained)
        #expect(
            subscriber.messages.filter { $0.topic != topic }.allSatisfy { $0.isRetained }, "nothing else but a status")
    }

    @Test func `all presets run beside the native topics, with their own prefixes`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker)
        let driver = driver(
            broker,
            Self.all.merging([
                "mqtt_room_topic": .text("espresense/rooms"), "theengs_topic": .text("home/TheengsGateway"),
                "espresense_topic": .text("floor2/esp"),
            ]) { $1 })
        try driver.open()
        try driver.write([Delivery(role: .sightings, event: event(.sighting, driver))])
        driver.close(isFinal: true)
        #expect(subscriber.wait { $0.contains { $0.payload == "offline" && $0.topic == "home/TheengsGateway/LWT" } })
        #expect(
            Set(subscriber.messages.filter { !$0.isRetained }.map(\.topic)) == [
                "beacond/gw1/ibeacon/\(Driver.uuid)/1/2/sighting", "espresense/rooms/Living room",
                "home/TheengsGateway/BTtoMQTT/001122334455",
                "floor2/esp/devices/iBeacon:\(Driver.uuid)-1-2/Living room",
            ])
        for topic in ["home/TheengsGateway/LWT", "floor2/esp/rooms/Living room/status"] {
            let messages = subscriber.messages(on: topic)
            #expect(messages.map(\.payload) == ["online", "offline"])
            #expect(messages.allSatisfy { $0.isRetained })
        }
    }

    @Test func `an exit is told once it is the state, and what was heard before it does not come back`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "home/+/BTtoMQTT/#")
        let driver = driver(broker, Self.all)
        try driver.open()
        let early = event(.sighting, driver)
        let exit = event(.exit, driver)
        try driver.write([
            Delivery(role: .states, event: exit),
            Delivery(role: .transitions, event: exit, sequence: 1, isReplayed: true),
            Delivery(role: .sightings, event: early),
        ])
        try driver.write([Delivery(role: .sightings, event: event(.sighting, driver))])
        #expect(subscriber.wait { $0.contains { $0["rssi"] != nil } })
        #expect(subscriber.messages.map { $0["presence"] } == ["absent", nil])
        #expect(subscriber.messages.first?.payload == #"{"id":"00:11:22:33:44:55","presence":"absent"}"#)
        #expect(subscriber.messages.first?.quality == 1)
    }

    @Test(arguments: [false, true])
    func `strangers are told on demand only`(isDemanded: Bool) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "espresense/devices/#")
        let driver = driver(broker, Self.all.merging(["publish_unknown": .boolean(isDemanded)]) { $1 })
        try driver.open()
        var stranger = driver.event(.sighting, minor: 99)
        stranger.isConfigured = false
        try driver.write([
            Delivery(role: .sightings, event: stranger),
            Delivery(role: .sightings, event: driver.event(.sighting)),
        ])
        #expect(subscriber.wait { $0.contains { $0.topic.contains("-1-2/") } })
        #expect(subscriber.messages.contains { $0.topic.contains("-1-99/") } == isDemanded)
    }

    @Test func `a preset that the broker refuses costs no delivery`() throws {
        // Everything of the preset is refused; 3.1.1 could not say so.
        let broker = try ScriptedBroker { _, packet in
            packet.type == 3 && packet.body.containsSequence(Array("\"absent\"}".utf8))
                && packet.body.containsSequence(Array("BTtoMQTT".utf8))
                ? ScriptedBroker.refuse(packet, 0x87) : ScriptedBroker.ordinary(packet)
        }
        let driver = Driver(port: broker.port, formats: FrameDecoder().catalog, Self.all)
        try driver.open()
        try driver.write([
            Delivery(role: .states, event: driver.event(.exit)),
            Delivery(role: .transitions, event: driver.event(.exit), sequence: 1),
        ])
        #expect(driver.log.contains { $0.contains("preset") && $0.contains("not authorized") })
    }
}
