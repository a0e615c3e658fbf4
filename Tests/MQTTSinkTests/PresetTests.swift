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

/// Messages of the other gateways, as they were recorded, and ours for the same advertisement.
@Suite struct PresetTests {
    private static let frames = FrameDecoder()
    private let vocabulary = Vocabulary(formats: PresetTests.frames.catalog, names: NameTable())

    // MARK: mqtt_room

    @Test func `mqtt_room: the example of Home Assistant's page`() throws {
        // home-assistant.io, source/_integrations/mqtt_room.markdown.
        let recorded = #"{"id":"123testid","name":"Test Device","distance":5.678}"#
        var event = try heard(.manufacturer, "4c000215426c7565436861726d426561636f6e730efe1355c5")
        event.name = vocabulary.names.intern("123testid")
        event.accuracy = 5.678
        let table = MQTTRoom(prefix: "room_presence", room: "kitchen", vocabulary: vocabulary)
        let (topic, payload) = try #require(spell(table, event))
        #expect(topic == "room_presence/kitchen")
        // The name is for people: here it is the alias, which is the id.
        expect(payload, equals: recorded, but: ["name"], beyond: ["rssi"])
        #expect(object(payload)?["name"] as? String == "123testid")
    }

    @Test(arguments: [("test", 4.2, "living-room"), ("test", 13.37, "bedroom")])
    func `mqtt_room: what room-assistant publishes`(name: String, distance: Double, room: String) throws {
        // mKeRix/room-assistant, src/integrations/home-assistant/home-assistant.service.spec.ts, but for its name "Test".
        let recorded = #"{"id":"\#(name)","name":"\#(name)","distance":\#(distance)}"#
        var event = try heard(.manufacturer, "4c000215426c7565436861726d426561636f6e730efe1355c5")
        event.name = vocabulary.names.intern(name)
        event.accuracy = Float(distance)
        let table = MQTTRoom(prefix: "room-assistant/mqtt-room", room: room, vocabulary: vocabulary)
        let (topic, payload) = try #require(spell(table, event))
        #expect(topic == "room-assistant/mqtt-room/\(room)")
        expect(payload, equals: recorded, but: [], beyond: ["rssi"])
    }

    @Test(arguments: [
        (
            UInt8(0xFF), "4c000215426c7565436861726d426561636f6e730efe1355c5",
            "426c7565-4368-6172-6d42-6561636f6e73-3838-4949"
        ),
        (
            0xFF, "1801beac426c7565436861726d426561636f6e730efe1355c500",
            "426c7565-4368-6172-6d42-6561636f6e73-3838-4949"
        ),
        (0xFF, "99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f", "cbb8334c884f"),
        (0x16, "aafe00ee0102030405060708090aa1a2a3a4a5a60000", "0102030405060708090a-a1a2a3a4a5a6"),
    ])
    func `mqtt_room: a beacon without an alias is its identity`(type: UInt8, data: String, id: String) throws {
        let event = try heard(Structure(rawValue: type) ?? .manufacturer, data)
        let table = MQTTRoom(prefix: "p", room: "r", vocabulary: vocabulary)
        #expect(object(spell(table, event)?.payload ?? "")?["id"] as? String == id)
    }

    @Test func `mqtt_room: what has no distance is not told`() throws {
        var event = try heard(.manufacturer, "4c000215426c7565436861726d426561636f6e730efe1355c5")
        event.accuracy = -1
        #expect(spell(MQTTRoom(prefix: "p", room: "r", vocabulary: vocabulary), event) == nil)
        #expect(spellExit(MQTTRoom(prefix: "p", room: "r", vocabulary: vocabulary), event) == nil)
    }

    // MARK: Theengs Gateway and OpenMQTTGateway

    @Test func `theengs: an iBeacon, as OpenMQTTGateway's page has it`() throws {
        // 1technophile/OpenMQTTGateway, docs/use/ble.md, before `presenceUseBeaconUuid`.
        let recorded = #"""
            {"id":"60:87:57:4C:9B:C2","mac_type":1,"rssi":-78,"distance":7.85288,"brand":"GENERIC","model":"iBeacon",
            "model_id":"IBEACON","mfid":"4c00","uuid":"1de4b189115e45f6b44e509352269977","major":0,"minor":0,
            "txpower":-66}
            """#
        var event = try heard(
            .manufacturer, "4c0002151de4b189115e45f6b44e50935226997700000000be", from: "60:87:57:4C:9B:C2")
        event.signal.last = -78
        event.accuracy = 7.85288
        let (topic, payload) = try #require(spell(theengs, event))
        #expect(topic == "home/OpenMQTTGateway/BTtoMQTT/6087574C9BC2")
        // Ours has two decimals. Decoders of later releases have `type`.
        expect(payload, equals: recorded, but: ["distance"], beyond: ["type"])
        #expect(object(payload)?["distance"] as? Double == 7.85)
        #expect(object(payload)?["type"] as? String == "BCON")
    }

    @Test(arguments: [
        // theengs/decoder, tests/BLE/test_ble.cpp: the advertisement and what is expected of it.
        (
            "4c000215426c7565436861726d426561636f6e730efe1355c5",
            #"""
            {"brand":"GENERIC","model":"iBeacon","model_id":"IBEACON","type":"BCON","mfid":"4c00",
            "uuid":"426c7565436861726d426561636f6e73","major":3838,"minor":4949,"txpower":-59}
            """#
        ),
        // Made by the decoder's package for Python (2.5.0): numbers above 32,767 are negative.
        (
            "4c000215494e54454c4c495f524f434b535f48575072f2ffc2",
            #"""
            {"brand":"GENERIC","model":"iBeacon","model_id":"IBEACON","type":"BCON","mfid":"4c00",
            "uuid":"494e54454c4c495f524f434b535f4857","major":20594,"minor":-3329,"txpower":-62}
            """#
        ),
        (
            "99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f",
            #"""
            {"brand":"Ruuvi","model":"RuuviTag","model_id":"RuuviTag_RAWv2","type":"ACEL","track":true,"tempc":24.3,
            "tempf":75.74,"hum":53.49,"pres":1000.44,"accx":0.00392266,"accy":-0.00392266,"accz":1.01596894,
            "volt":2.977,"tx":4,"mov":66,"seq":205,"mac":"CB:B8:33:4C:88:4F"}
            """#
        ),
        (
            "9904057ffffffefffe7fff7fff7fffffdefefffecbb8334c884f",
            #"""
            {"brand":"Ruuvi","model":"RuuviTag","model_id":"RuuviTag_RAWv2","type":"ACEL","track":true,"tempc":163.835,
            "tempf":326.903,"hum":163.8350,"pres":1155.34,"accx":32.13345006,"accy":32.13345006,"accz":32.13345006,
            "volt":3.646,"tx":20,"mov":254,"seq":65534,"mac":"CB:B8:33:4C:88:4F"}
            """#
        ),
        (
            "9904058001000000008001800180010000000000cbb8334c884f",
            #"""
            {"brand":"Ruuvi","model":"RuuviTag","model_id":"RuuviTag_RAWv2","type":"ACEL","track":true,
            "tempc":-163.835,"tempf":-262.903,"hum":0,"pres":500,"accx":-32.13345006,"accy":-32.13345006,
            "accz":-32.13345006,"volt":1.6,"tx":-40,"mov":0,"seq":0,"mac":"CB:B8:33:4C:88:4F"}
            """#
        ),
        (
            "990403ff7f63ffff7fff7fff7fffffff",
            #"""
            {"brand":"Ruuvi","model":"RuuviTag","model_id":"RuuviTag_RAWv1","type":"ACEL","track":true,"hum":127.5,
            "tempc":127.99,"tempf":262.382,"pres":1155.35,"accx":32.13345006,"accy":32.13345006,"accz":32.13345006,
            "volt":65.535}
            """#
        ),
        (
            "99040300ff6300008001800180010000",
            #"""
            {"brand":"Ruuvi","model":"RuuviTag","model_id":"RuuviTag_RAWv1","type":"ACEL","track":true,"hum":0,
            "tempc":-127.99,"tempf":-198.382,"pres":500,"accx":-32.13345006,"accy":-32.13345006,"accz":-32.13345006,
            "volt":0}
            """#
        ),
    ])
    func `theengs: what its decoder makes of an advertisement`(data: String, recorded: String) throws {
        let event = try heard(.manufacturer, data, from: "CB:B8:33:4C:88:4F")
        let (topic, payload) = try #require(spell(theengs, event))
        #expect(topic == "home/OpenMQTTGateway/BTtoMQTT/CBB8334C884F")
        // The gateways add what is not in the advertisement.
        expect(payload, equals: recorded, but: [], beyond: ["id", "mac_type", "rssi", "distance"])
        #expect(object(payload)?["id"] as? String == "CB:B8:33:4C:88:4F")
    }

    @Test func `theengs: values that are not available are left out`() throws {
        // Ruuvi's own vector of invalid values.
        let event = try heard(.manufacturer, "9904058000ffffffff800080008000ffffffffffffffffffffff")
        let keys = try #require(object(spell(theengs, event)?.payload ?? "")).keys
        #expect(Set(keys) == ["id", "mac_type", "rssi", "distance", "brand", "model", "model_id", "type", "track"])
    }

    @Test func `theengs: BTHome and Eddystone's telemetry under the decoder's names`() throws {
        let bthome = try #require(try spell(theengs, heard(.serviceData, "d2fc440011016405e803000ca00b2d012e3c450501")))
        expect(
            bthome.payload,
            equals: #"""
                {"packet":17,"batt":100,"lux":10,"volt":2.976,"open":true,"hum":60,"tempc":26.1,"tempf":78.98}
                """#, but: [], beyond: ["id", "mac_type", "rssi", "distance"])
        let telemetry = try #require(try spell(theengs, heard(.serviceData, "aafe20000bb81580000000010000000a")))
        expect(
            telemetry.payload, equals: #"{"volt":3,"tempc":21.5,"tempf":70.7}"#, but: [],
            beyond: ["id", "mac_type", "rssi", "distance"])
    }

    @Test func `theengs: a beacon that is gone`() throws {
        // theengs/gateway, TheengsGateway/ble_gateway.py.
        let event = try heard(
            .manufacturer, "4c000215426c7565436861726d426561636f6e730efe1355c5", from: "54:94:5E:9F:64:C4")
        let (topic, payload) = try #require(spellExit(theengs, event))
        #expect(topic == "home/OpenMQTTGateway/BTtoMQTT/54945E9F64C4")
        #expect(payload == #"{"id":"54:94:5E:9F:64:C4","presence":"absent"}"#)

        var anonymous = event
        anonymous.address = .anonymous
        #expect(spell(theengs, anonymous) == nil)
        #expect(spellExit(theengs, anonymous) == nil)
    }

    // MARK: ESPresense

    @Test func `espresense: a recorded iBeacon`() throws {
        // Recorded from a node of 2026 on espresense/devices/<id>/office; the members are those of
        // ESPresense/ESPresense, src/BleFingerprint.cpp, `BleFingerprint::fill`.
        let recorded = #"""
            {"mac":"dd8800003777","id":"iBeacon:426c7565-4368-6172-6d42-6561636f6e73-3838-4949","rssi@1m":-59,
            "rssi":-81.10,"rxAdj":0,"rssiVar":7.42,"distance":6.58,"var":4.00,"int":2028}
            """#
        var event = try heard(
            .manufacturer, "4c000215426c7565436861726d426561636f6e730efe1355c5", from: "DD:88:00:00:37:77")
        event.signal.filtered = -81.1
        event.accuracy = 6.58
        let (topic, payload) = try #require(spell(espresense, event))
        #expect(topic == "espresense/devices/iBeacon:426c7565-4368-6172-6d42-6561636f6e73-3838-4949/office")
        // Not known here, and left out by a node that does not know them.
        expect(payload, equals: recorded, but: ["rssiVar", "var", "int"], beyond: [])
        #expect(spellExit(espresense, event) == nil)
    }

    @Test(arguments: [
        (
            UInt8(0xFF), "1801beac426c7565436861726d426561636f6e730efe1355c500",
            "altBeacon:426c7565-4368-6172-6d42-6561636f6e73-3838-4949"
        ),
        // BleFingerprint.cpp spells the fifth octet of the namespace twice.
        (0x16, "aafe00ee0102030405060708090aa1a2a3a4a5a60000", "eddy:010203040505060708090a-a1a2a3a4a5a6"),
        (0xFF, "99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f", "known:cbb8334c884f"),
    ])
    func `espresense: the kinds of id`(type: UInt8, data: String, id: String) throws {
        let event = try heard(Structure(rawValue: type) ?? .manufacturer, data)
        let (topic, payload) = try #require(spell(espresense, event))
        #expect(topic == "espresense/devices/\(id)/office")
        #expect(object(payload)?["id"] as? String == id)
        var stranger = event
        stranger.isConfigured = false
        let plain = id.hasPrefix("known:") ? String(id.dropFirst(6)) : id
        #expect(spell(espresense, stranger)?.topic == "espresense/devices/\(plain)/office")
    }

    @Test func `espresense: readings`() throws {
        let (_, payload) = try #require(try spell(espresense, heard(.serviceData, "aafe20000bb81580000000010000000a")))
        #expect(object(payload)?["mV"] as? Int == 3000)
        #expect(object(payload)?["temp"] as? Double == 21.5)
        let (_, tag) = try #require(
            try spell(espresense, heard(.manufacturer, "99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f")))
        #expect(object(tag)?["mV"] as? Int == 2977)
        #expect(object(tag)?["rh"] as? Double == 53.49)
    }

    // MARK: Hostile names

    @Test func `names cannot make a topic of another shape`() throws {
        let hostile = "a/b+#\u{0}\u{1}$\u{7F}é"
        var event = try heard(.serviceData, "aafe10ee03612f2b23612f")
        event.name = vocabulary.names.intern(hostile)
        let configuration = MQTTConfiguration(Values(given: [:]), gateway: hostile)
        let tables: [any Preset] = [
            MQTTRoom(prefix: "room_presence", room: configuration.room, vocabulary: vocabulary),
            Theengs(root: configuration.theengsTopic, vocabulary: vocabulary),
            ESPresense(prefix: "espresense", room: configuration.room, vocabulary: vocabulary),
        ]
        for (table, levels) in zip(tables, [2, 4, 4]) {
            let (topic, payload) = try #require(spell(table, event))
            for name in [topic, table.statusTopic].compactMap(\.self) {
                #expect(name.split(separator: "/", omittingEmptySubsequences: false).count <= levels, "\(name)")
                #expect(name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x2B && $0 != 0x23 }, "\(name)")
            }
            let told = object(payload)?["name"] as? String
            #expect(told == hostile, "\(payload)")
        }
    }

    // MARK: Parts

    /// The AD types that carry frames.
    private enum Structure: UInt8 {
        case serviceData = 0x16
        case manufacturer = 0xFF
    }

    private var theengs: Theengs { Theengs(root: "home/OpenMQTTGateway", vocabulary: vocabulary) }
    private var espresense: ESPresense { ESPresense(prefix: "espresense", room: "office", vocabulary: vocabulary) }

    /// A sighting of a configured beacon by one advertisement. Distances come from elsewhere.
    private func heard(
        _ type: Structure, _ data: String, from address: String = "C0:FF:EE:00:00:01"
    ) throws -> Event {
        let octets = try #require(Hexadecimal.octets(data))
        let advertisement = [UInt8(octets.count + 1), type.rawValue] + octets
        var event = Event(kind: .sighting, time: Clock.now)
        event.isConfigured = true
        event.address = try #require(DeviceAddress(text: address, kind: .randomDevice))
        event.signal = Signal(last: -70, filtered: -70, minimum: -70, maximum: -70, count: 1)
        event.accuracy = 2
        var count = 0
        let device = try #require(Self.frames.catalog.id(named: "device"))
        Self.frames.forEachFrame(in: advertisement.span, from: event.address) { frame, payload in
            count += 1
            event.identity = frame.identity ?? BeaconIdentity(address: event.address, format: device)
            event.measuredPower = frame.measuredPower
            if frame.identity == nil { event.payload = FramePayload(format: frame.format, payload) }
        }
        try #require(count == 1)
        // The tag says its address itself.
        if data.hasSuffix("cbb8334c884f"), let own = DeviceAddress(text: "CB:B8:33:4C:88:4F", kind: .randomDevice) {
            event.address = own
            event.identity = BeaconIdentity(address: own, format: device)
        }
        return event
    }

    private func spell(_ table: any Preset, _ event: Event) -> (topic: String, payload: String)? {
        var message = PresetMessage()
        var frame = FrameMembers()
        frame.read(event, vocabulary.formats)
        message.begin()
        guard table.spellSighting(event, frame, &message) else { return nil }
        return read(&message)
    }

    private func spellExit(_ table: any Preset, _ event: Event) -> (topic: String, payload: String)? {
        var message = PresetMessage()
        message.begin()
        guard table.spellExit(event, &message) else { return nil }
        return read(&message)
    }

    private func read(_ message: inout PresetMessage) -> (topic: String, payload: String) {
        message.end()
        let topic = String(decoding: message.topic.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return (topic, message.payload.text)
    }

    private func object(_ text: String) -> [String: Any]? {
        try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    }

    /// Every member of `recorded` is in `payload`, of the same type and value, but those in `except`; and beyond them
    /// there are only `more`.
    private func expect(
        _ payload: String, equals recorded: String, but except: Set<String>, beyond more: Set<String>,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        guard let ours = object(payload), let theirs = object(recorded) else {
            Issue.record("no JSON: \(payload) \(recorded)", sourceLocation: sourceLocation)
            return
        }
        for (key, value) in theirs where !except.contains(key) {
            let mine = ours[key]
            #expect(
                (mine as? NSObject) == (value as? NSObject), "\(key): \(value), ours \(String(describing: mine))",
                sourceLocation: sourceLocation)
        }
        let unexpected = Set(ours.keys).subtracting(theirs.keys).subtracting(more)
        #expect(unexpected.isEmpty, "\(payload)", sourceLocation: sourceLocation)
    }
}
