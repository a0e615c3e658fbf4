// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// What Home Assistant is told, to the last octet.
@Suite struct DiscoveryDocumentTests {
    private static let measured: Set<String> = ["temperature_c", "battery_mv", "battery", "flag_motion", "accel_x"]

    /// `BEACOND_RECORD=1` writes the documents down anew; read them before committing them.
    @Test(arguments: ["2024.3", "2024.12", "2025.10", "2026.7"])
    func `every document of a release is as it is written down`(release: String) throws {
        var documents = try DiscoverySample.documents(["release": .text(release)])
        var lines = ""
        for object in documents.order {
            var measured: Set<String> = []
            if case .beacon(DiscoverySample.tag) = object { measured = Self.measured }
            for document in documents.documents(of: object, measuring: measured) {
                lines += "\(document.topic) \(String(decoding: document.payload, as: UTF8.self))\n"
            }
        }
        let file = "discovery/\(release).txt"
        if ProcessInfo.processInfo.environment["BEACOND_RECORD"] == "1" {
            try Data(lines.utf8).write(to: URL(filePath: Fixtures.path(file)))
        }
        #expect(try Fixtures.lines(file) == lines.split(separator: "\n").map(String.init))
    }

    @Test func `the examples of the page are those documents`() throws {
        let page = try String(contentsOf: Fixtures.repository.appending(path: "docs/mqtt.md"), encoding: .utf8)
        let payloads = try Fixtures.lines("discovery/2026.7.txt").map { $0.drop { $0 != " " }.dropFirst() }
        let shown = page.split(separator: "\n").filter { $0.hasPrefix("{\"device\":") }
        #expect(shown.count == 3)
        for example in shown { #expect(payloads.contains(example)) }
    }

    /// What `MQTT_ENTITY_DEVICE_INFO_SCHEMA`, `TOPIC_MATCHER` and the schemas of the components ask for.
    @Test(arguments: ["2024.3", "2024.12", "2025.10", "2026.7"])
    func `every document is what Home Assistant accepts`(release: String) throws {
        var documents = try DiscoverySample.documents(["release": .text(release)])
        let isDevice = release != "2024.3"
        var ids: Set<String> = []
        for object in documents.order {
            let all = documents.documents(of: object, measuring: Self.measured)
            #expect(all.count == 1 || !isDevice)
            #expect(documents.topics(of: object, measuring: Self.measured) == all.map(\.topic))
            for document in all {
                let levels = document.topic.split(separator: "/")
                #expect(levels.count == 5)
                #expect(levels.dropFirst(2).dropLast().allSatisfy { $0.utf8.allSatisfy(isUnreserved) })
                let root = try #require(
                    JSONSerialization.jsonObject(with: Data(document.payload)) as? [String: Any])
                let device = try #require(root["device"] as? [String: Any])
                #expect((device["identifiers"] as? [String])?.count == 1)
                let deviceName = try #require(device["name"] as? String)
                #expect((root["origin"] as? [String: Any])?["name"] as? String == "beacond")
                let components = root["components"] as? [String: [String: Any]] ?? [String(levels[1]): root]
                #expect((root["components"] != nil) == isDevice)
                #expect(Set(document.components.keys) == (isDevice ? Set(components.keys) : []))
                for entity in components.values {
                    let component = entity["platform"] as? String ?? String(levels[1])
                    #expect(["binary_sensor", "sensor", "device_tracker"].contains(component))
                    #expect(ids.insert(try #require(entity["unique_id"] as? String)).inserted)
                    #expect((entity["object_id"] == nil) == (release >= "2025.10"))
                    if let id = entity["default_entity_id"] as? String {
                        #expect(id.hasPrefix("\(component)."))
                    }
                    if let name = entity["name"] as? String { #expect(!name.hasPrefix(deviceName)) }
                    #expect(entity["expire_after"] == nil)
                    let hasTopic = entity["state_topic"] != nil || entity["json_attributes_topic"] != nil
                    #expect(hasTopic)
                    if component == "device_tracker" {
                        #expect(entity["source_type"] as? String == "bluetooth_le")
                        // The state for itself, and the attribute for the people in a zone.
                        #expect(entity["state_topic"] != nil && entity["json_attributes_topic"] != nil)
                    }
                }
            }
        }
        #expect(ids.count > 20)
    }

    @Test func `names become identifiers and never collide`() {
        let odd = ["a.b", "a_b", "a b", "a_2Eb", "ä", "a/b", "a+", "#", "", "a-b", "\u{7F}", "A", "a"]
        let escaped = odd.map(DiscoveryNames.escape)
        #expect(Set(escaped).count == odd.count)
        for text in escaped { #expect(text.utf8.allSatisfy(isUnreserved)) }
        #expect(DiscoveryNames.escape("a.b_c") == "a_2Eb_5Fc")
        #expect(DiscoveryNames.slug("Schlüssel 1") == "schlussel_1")
        #expect(DiscoveryNames.slug("--Badge--7!") == "badge_7")
        #expect(DiscoveryNames.slug("鍵").isEmpty)
    }

    @Test func `odd names of a gateway, a region and an alias stay apart`() throws {
        let names = NameTable()
        let odd = ["hall", "hall_count", "hall count", "hall.count", "Beacons", "鍵", "Presence"]
        let inventory = Inventory(
            beacons: (1...7).map {
                .init(identity: DiscoverySample.beacon(minor: $0), alias: names.intern(odd[Int($0) - 1]))
            }, regions: odd.map { .init(name: names.intern($0)) })
        for release in ["2024.3", "2026.7"] {
            var documents = try DiscoverySample.documents(
                ["release": .text(release)], inventory: inventory, names: names)
            let topics = documents.order.flatMap { documents.topics(of: $0, measuring: []) }
            #expect(Set(topics).count == topics.count)
            #expect(documents.objects.count == 15)
            for object in documents.order {
                for document in documents.documents(of: object, measuring: []) {
                    let root = try #require(
                        JSONSerialization.jsonObject(with: Data(document.payload)) as? [String: Any])
                    let name = try #require((root["device"] as? [String: Any])?["name"] as? String)
                    let entities = root["components"] as? [String: [String: Any]] ?? ["": root]
                    for entity in entities.values {
                        #expect((entity["name"] as? String)?.hasPrefix(name) != true)
                        let id = (entity["default_entity_id"] ?? entity["object_id"]) as? String
                        #expect(id?.hasSuffix(".") == false)
                    }
                }
            }
        }
    }

    @Test(arguments: [
        ("2026.7", true), ("2024.12", true), ("2026.07", false), ("2026", false), ("2026.7.1", false), ("x.1", false),
        ("2026.13", false), ("2026.0", false), ("", false), ("-2026.7", false),
    ])
    func `a release is a year and a month`(text: String, isRight: Bool) throws {
        #expect((HomeAssistantRelease(text) != nil) == isRight)
        guard case .text(let rule) = HomeAssistantConfiguration.release.declaration.shape else { return }
        let pattern = try NSRegularExpression(pattern: try #require(rule.pattern))
        let range = NSRange(text.startIndex..., in: text)
        #expect((pattern.firstMatch(in: text, range: range) != nil) == isRight, "the schema's pattern says the same")
    }

    @Test func `what a frame measures is found, and null is nothing`() throws {
        let catalog = DiscoverySample.catalog
        #expect(
            FrameMeasurements.keys(in: try #require(DiscoverySample.telemetry), catalog)
                == ["battery_mv", "temperature_c"])
        #expect(
            FrameMeasurements.keys(in: try #require(DiscoverySample.btHome), catalog)
                == ["battery", "temperature_1", "temperature_2", "flag_motion"])
        // The temperature was not measured.
        let cold = try #require(
            DiscoverySample.frame(
                "eddystone-tlm", [0xAA, 0xFE, 0x20, 0, 0x0B, 0xB8, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 9]))
        #expect(FrameMeasurements.keys(in: cold, catalog) == ["battery_mv"])
        let numbered = try #require(MeasuredQuantity.named("temperature_2"))
        #expect(numbered.template == "{{ value_json.get('values', {}).get('temperature_2', '') }}")
        #expect(MeasuredQuantity.key(values: "distance") == "measured_distance")
        #expect(MeasuredQuantity.named("measured_distance_2")?.member == "distance_2")
        for key in ["rssi", "presence", "tracker", "distance", "temperature_", "temperature_0", "flag_x", ""] {
            #expect(MeasuredQuantity.named(key) == nil, "\(key)")
        }
    }
}
