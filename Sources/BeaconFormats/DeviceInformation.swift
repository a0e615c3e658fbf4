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
        let places = Places(data)
        writer.beginObject()
        if let flags = places.flags {
            writer.key("flags")
            writer.integer(data[flags.lowerBound])
        }
        if let name = places.completeName ?? places.shortenedName {
            writer.key("name")
            writer.string(utf8: data.extracting(name))
        }
        if let power = places.txPower {
            writer.key("tx_power_level")
            writer.integer(Int8(bitPattern: data[power.lowerBound]))
        }
        if let appearance = places.appearance {
            writer.key("appearance")
            writer.integer(data.extracting(appearance).leadingKey)
        }
        if places.hasServices { writeServices(data, &writer) }
        if places.hasManufacturerData { writeMap("manufacturer_data", in: data, &writer, companyIDLength) }
        if places.hasServiceData { writeMap("service_data", in: data, &writer, serviceUUIDLength) }
        writer.endObject()
    }

    /// Where the first structure of each kind has its payload, and what else there is.
    private struct Places {
        var flags: Range<Int>?
        var completeName: Range<Int>?
        var shortenedName: Range<Int>?
        var txPower: Range<Int>?
        var appearance: Range<Int>?
        var hasServices = false
        var hasManufacturerData = false
        var hasServiceData = false

        init(_ data: Span<UInt8>) {
            var end = 0
            AdvertisingData.forEachStructure(in: data) { type, payload in
                // Length and type stand in front of each payload.
                let range = end + 2..<end + 2 + payload.count
                end = range.upperBound
                switch type {
                case .flags where flags == nil && payload.count >= 1: flags = range
                case .completeName where completeName == nil && payload.count >= 1: completeName = range
                case .shortenedName where shortenedName == nil && payload.count >= 1: shortenedName = range
                case .txPowerLevel where txPower == nil && payload.count == 1: txPower = range
                case .appearance where appearance == nil && payload.count == 2: appearance = range
                default:
                    if let length = listedUUIDLength(type), payload.count >= length { hasServices = true }
                    if let length = companyIDLength(type), payload.count >= length { hasManufacturerData = true }
                    if let length = serviceUUIDLength(type), payload.count >= length { hasServiceData = true }
                }
            }
        }
    }

    private static func listedUUIDLength(_ type: ADType) -> Int? {
        switch type {
        case .incompleteServices16, .completeServices16: 2
        case .incompleteServices32, .completeServices32: 4
        case .incompleteServices128, .completeServices128: 16
        default: nil
        }
    }

    private static func companyIDLength(_ type: ADType) -> Int? { type == .manufacturerSpecificData ? 2 : nil }

    private static func serviceUUIDLength(_ type: ADType) -> Int? {
        switch type {
        case .serviceData16: 2
        case .serviceData32: 4
        case .serviceData128: 16
        default: nil
        }
    }

    /// What is left of a list whose length is no multiple of the UUID's is no UUID.
    private static func writeServices(_ data: Span<UInt8>, _ writer: inout JSONWriter) {
        writer.key("service_uuids")
        writer.beginArray()
        AdvertisingData.forEachStructure(in: data) { type, payload in
            guard let length = listedUUIDLength(type) else { return }
            for index in 0..<payload.count / length {
                write(littleEndian: payload.extracting(index * length..<index * length + length), &writer)
            }
        }
        writer.endArray()
    }

    /// Writes an object from what leads the payload to what follows it, of the structures for which `keyLength` is given.
    private static func writeMap(
        _ member: String, in data: Span<UInt8>, _ writer: inout JSONWriter, _ keyLength: (ADType) -> Int?
    ) {
        writer.key(member)
        writer.beginObject()
        var count = 0
        AdvertisingData.forEachStructure(in: data) { type, payload in
            guard let length = keyLength(type), payload.count >= length else { return }
            let key = payload.extracting(..<length)
            if !isRepeated(key, behind: count, in: data, keyLength) {
                writer.key { write(littleEndian: key, &$0) }
                writer.hexadecimal(payload.extracting(length...))
            }
            count += 1
        }
        writer.endObject()
    }

    /// Whether one of the first `count` structures with a key has this one.
    private static func isRepeated(
        _ key: Span<UInt8>, behind count: Int, in data: Span<UInt8>, _ keyLength: (ADType) -> Int?
    ) -> Bool {
        guard count > 0 else { return false }
        var seen = 0
        var isRepeated = false
        AdvertisingData.forEachStructure(in: data) { type, payload in
            guard let length = keyLength(type), payload.count >= length else { return }
            if seen < count, length == key.count, payload.extracting(..<length).isEqual(to: key) { isRepeated = true }
            seen += 1
        }
        return isRepeated
    }

    private static func write(littleEndian octets: Span<UInt8>, _ writer: inout JSONWriter) {
        if octets.count == 16 {
            writer.uuid(octets, isReversed: true)
        } else {
            writer.hexadecimal(octets, isReversed: true)
        }
    }
}
