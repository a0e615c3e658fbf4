// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Configuration
import Foundation
import SinkKit

@testable import MQTTSink

/// A gateway with a beacon, a tag and two regions, and what it is configured to announce.
struct DiscoverySample {
    static let catalog = FrameDecoder().catalog

    static func identity(_ format: String, _ octets: [UInt8]) -> BeaconIdentity {
        BeaconIdentity(format: catalog.id(named: format) ?? FormatID(rawValue: 0), octets: octets.span)
    }

    static func beacon(minor: UInt8) -> BeaconIdentity {
        identity("ibeacon", (UUIDText.octets(Driver.uuid) ?? []) + [0, 1, 0, minor])
    }

    static let tag = identity("device", [0xC4, 0x7C, 0x8D, 0x6A, 0x11, 0x22])

    static func inventory(_ names: NameTable) -> Inventory {
        Inventory(
            beacons: [
                .init(identity: beacon(minor: 2), alias: names.intern("badge-7")), .init(identity: tag),
            ],
            regions: [.init(name: names.intern("hall 1")), .init(name: names.intern("me"))],
            adapters: [names.intern("hci0")])
    }

    static func section(_ more: [String: Value] = [:]) -> Value {
        .section(
            Values(given: ["trackers": .list([.text("me")])].merging(more) { $1 }))
    }

    static func documents(
        _ more: [String: Value] = [:], inventory: Inventory? = nil, names: NameTable = NameTable()
    )
        throws -> DiscoveryDocuments
    {
        guard case .section(let values) = section(more), let configuration = HomeAssistantConfiguration(values) else {
            throw CocoaError(.featureUnsupported)
        }
        let vocabulary = Vocabulary(formats: catalog, names: names)
        var documents = DiscoveryDocuments(
            configuration, gateway: "gw1", version: "0.1.0", vocabulary: vocabulary,
            topics: MQTTTopics(
                prefix: "beacond", gateway: "gw1", vocabulary: vocabulary, templates: .init(Values())))
        documents.use(inventory ?? self.inventory(names))
        return documents
    }

    /// A frame as it came out of the air: the payload of an AD structure.
    static func frame(_ format: String, _ payload: [UInt8]) -> FramePayload? {
        catalog.id(named: format).flatMap { FramePayload(format: $0, payload.span) }
    }

    /// Battery 3,000 mV and 21.5 °C.
    static let telemetry = frame(
        "eddystone-tlm", [0xAA, 0xFE, 0x20, 0, 0x0B, 0xB8, 0x15, 0x80, 0, 0, 0, 1, 0, 0, 0, 9])
    /// Battery 93 %, temperature 25.00 °C twice, motion.
    static let btHome = frame(
        "bthome-v2", [0xD2, 0xFC, 0x40, 0x01, 0x5D, 0x02, 0xC4, 0x09, 0x02, 0xC4, 0x09, 0x21, 0x01])
}
