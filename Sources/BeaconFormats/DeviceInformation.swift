// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import HCI

/// What an advertisement says about its device in the terms of the Core Specification (Supplement, Part A, 1), whatever
/// it is a beacon of.
public enum DeviceInformation {
    /// Writes an object with what there is of `flags`, `name`, `tx_power_level` (dBm), `appearance`, `service_uuids`,
    /// `manufacturer_data` (company id to octets) and `service_data` (UUID to octets).
    ///
    /// UUIDs and company ids are spelled in their own length, most significant digit first. A complete name goes before a
    /// short one; of several structures that say the same the first counts.
    public static func write(_ data: Span<UInt8>, into writer: inout JSONWriter) {
        writer.beginObject()
        if let flags = first(.flags, in: data, where: { $0.count >= 1 }) {
            writer.key("flags")
            writer.integer(flags[0])
        }
        if let name = first(.completeName, in: data, where: { $0.count >= 1 })
            ?? first(.shortenedName, in: data, where: { $0.count >= 1 })
        {
            writer.key("name")
            writer.string(String(decoding: name, as: UTF8.self))
        }
        if let power = first(.txPowerLevel, in: data, where: { $0.count == 1 }) {
            writer.key("tx_power_level")
            writer.integer(Int8(bitPattern: power[0]))
        }
        if let appearance = first(.appearance, in: data, where: { $0.count == 2 }) {
            writer.key("appearance")
            writer.integer(UInt16(appearance[0]) | UInt16(appearance[1]) << 8)
        }
        writeServices(data, &writer)
        write("manufacturer_data", in: data, &writer) { $0 == .manufacturerSpecificData ? 2 : nil }
        write("service_data", in: data, &writer) { type in
            switch type {
            case .serviceData16: 2
            case .serviceData32: 4
            case .serviceData128: 16
            default: nil
            }
        }
        writer.endObject()
    }

    private static func first(_ wanted: ADType, in data: Span<UInt8>, where isValid: (Span<UInt8>) -> Bool) -> [UInt8]?
    {
        var found: [UInt8]?
        AdvertisingData.forEachStructure(in: data) { type, payload in
            if found == nil, type == wanted, isValid(payload) { found = payload.indices.map { payload[$0] } }
        }
        return found
    }

    /// What is left of a list whose length is no multiple of the UUID's is no UUID.
    private static func writeServices(_ data: Span<UInt8>, _ writer: inout JSONWriter) {
        var uuids: [String] = []
        AdvertisingData.forEachStructure(in: data) { type, payload in
            let length: Int
            switch type {
            case .incompleteServices16, .completeServices16: length = 2
            case .incompleteServices32, .completeServices32: length = 4
            case .incompleteServices128, .completeServices128: length = 16
            default: return
            }
            for index in 0..<payload.count / length {
                uuids.append(spelling(payload.extracting(index * length..<index * length + length)))
            }
        }
        guard !uuids.isEmpty else { return }
        writer.key("service_uuids")
        writer.beginArray()
        for uuid in uuids { writer.string(uuid) }
        writer.endArray()
    }

    /// Writes an object from what leads the payload to what follows it, of the structures for which `keyLength` is given.
    private static func write(
        _ member: String, in data: Span<UInt8>, _ writer: inout JSONWriter, keyLength: (ADType) -> Int?
    ) {
        var entries: [(key: String, octets: [UInt8])] = []
        AdvertisingData.forEachStructure(in: data) { type, payload in
            guard let length = keyLength(type), payload.count >= length else { return }
            let key = spelling(payload.extracting(..<length))
            guard !entries.contains(where: { $0.key == key }) else { return }
            entries.append((key, (length..<payload.count).map { payload[$0] }))
        }
        guard !entries.isEmpty else { return }
        writer.key(member)
        writer.beginObject()
        for (key, octets) in entries {
            writer.key(key)
            writer.hexadecimal(octets.span)
        }
        writer.endObject()
    }

    private static func spelling(_ littleEndian: Span<UInt8>) -> String {
        let octets = littleEndian.indices.reversed().map { littleEndian[$0] }
        return octets.count == 16 ? UUIDText.text(octets) : Hexadecimal.text(octets)
    }
}
