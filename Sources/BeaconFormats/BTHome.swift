// SPDX-License-Identifier: Apache-2.0

import BeaconModel

extension FormatDefinition {
    /// BTHome v2 (bthome.io): service 0xFCD2, device information, then objects, in the clear or encrypted.
    ///
    /// It names no beacon, but the values belong to the device that sends them.
    static let btHome = FormatDefinition(
        name: "bthome-v2",
        in: .service(uuid: BTHome.serviceUUID),
        decode: { payload, format in
            guard payload.count >= 3, payload[2] >> 5 == 2,
                payload[2] & BTHome.addressIncluded == 0 || payload.count >= BTHome.offset(payload)
            else { return nil }
            return Frame(format: format, identity: nil, measuredPower: nil, standsForDevice: true)
        },
        open: { payload, address, keys in keys.open(payload, from: address) },
        describe: BTHome.describe)
}

/// The layout of BTHome v2: service UUID, device information, an address where the information says so, objects.
enum BTHome {
    static let serviceUUID: UInt16 = 0xFCD2

    /// Bits of the device information; the upper three are the version.
    static let encrypted: UInt8 = 1 << 0
    static let addressIncluded: UInt8 = 1 << 1
    private static let triggerBased: UInt8 = 1 << 2

    /// Where the objects begin, or what they were encrypted to.
    static func offset(_ payload: Span<UInt8>) -> Int { payload[2] & addressIncluded == 0 ? 3 : 9 }

    /// A payload as it would be without encryption. The service UUID is replaced by zeros, which no payload from the air
    /// can begin with, for it would not have been taken for BTHome: so nobody can pass off as opened what he sent.
    static func opened(deviceInformation: UInt8, objects: [UInt8]) -> [UInt8] {
        [0, 0, deviceInformation & ~addressIncluded] + objects
    }

    private static func isOpened(_ payload: Span<UInt8>) -> Bool { payload[0] == 0 && payload[1] == 0 }

    static func describe(_ payload: Span<UInt8>, _ writer: inout JSONWriter) {
        let information = payload[2]
        writer.key("encrypted")
        writer.boolean(information & encrypted != 0)
        writer.key("trigger_based")
        writer.boolean(information & triggerBased != 0)
        let isReadable = information & encrypted == 0 || isOpened(payload)
        let objects = payload.extracting((isReadable ? offset(payload) : payload.count)...)
        let items = items(of: objects)
        for (key, section) in [("values", BTHomeObject.Section.values), ("binary", .binary), ("events", .events)] {
            writer.key(key)
            writer.beginObject()
            for item in items where item.object.section == section {
                write(item, objects.extracting(item.range), &writer)
            }
            writer.endObject()
        }
    }

    private struct Item {
        let object: BTHomeObject
        /// Behind the object id.
        let range: Range<Int>
        /// 1 for the first of its key and section.
        let ordinal: Int
        /// Whether there are several of its key and section, so that they are numbered.
        var isNumbered: Bool
    }

    /// The objects up to the first that is unknown or does not fit: where the next one begins is then not known.
    private static func items(of objects: Span<UInt8>) -> [Item] {
        var items: [Item] = []
        var offset = 0
        while offset < objects.count, let object = BTHomeObject[objects[offset]],
            let length = object.length(in: objects.extracting((offset + 1)...))
        {
            let same = items.indices.filter {
                items[$0].object.section == object.section && items[$0].object.key == object.key
            }
            for index in same { items[index].isNumbered = true }
            items.append(
                Item(
                    object: object, range: offset + 1..<offset + 1 + length, ordinal: same.count + 1,
                    isNumbered: !same.isEmpty))
            offset += 1 + length
        }
        return items
    }

    private static func write(_ item: Item, _ octets: Span<UInt8>, _ writer: inout JSONWriter) {
        let key = item.isNumbered ? "\(item.object.key)_\(item.ordinal)" : item.object.key
        switch item.object.form {
        case .unsigned(_, let step, let decimals):
            writer.key(key)
            writer.scaled(Int64(octets.littleEndian(0..<octets.count)) * Int64(step), decimals: decimals)
        case .signed(_, let step, let decimals):
            let unused = UInt64(64 - octets.count * 8)
            let value = Int64(bitPattern: octets.littleEndian(0..<octets.count) << unused) >> Int64(unused)
            writer.key(key)
            writer.scaled(value * Int64(step), decimals: decimals)
        case .flag:
            writer.key(key)
            writer.boolean(octets[0] != 0)
        case .timestamp:
            writer.key(key)
            writer.string(timestamp(seconds: octets.littleEndian(0..<4)))
        case .version:
            writer.key(key)
            writer.string(octets.indices.reversed().map { String(octets[$0]) }.joined(separator: "."))
        case .text:
            guard let text = String(validating: octets.indices.dropFirst().map { octets[$0] }, as: UTF8.self) else {
                return
            }
            writer.key(key)
            writer.string(text)
        case .raw:
            writer.key(key)
            writer.hexadecimal(octets.extracting(1...))
        case .button, .dimmer, .command: writeEvent(item.object.form, key, octets, &writer)
        }
    }

    /// An event is a pair: what happened, and what belongs to it. One that says that nothing happened, which keeps the
    /// place of a button, or that this version does not know is counted and not spelled.
    private static func writeEvent(
        _ form: BTHomeObject.Form, _ key: String, _ octets: Span<UInt8>, _ writer: inout JSONWriter
    ) {
        let name: String? =
            switch form {
            case .button: buttonEvent(octets[0])
            case .dimmer: dimmerEvent(octets[0])
            default: command(octets[1])
            }
        guard let name else { return }
        writer.key(key)
        writer.beginArray()
        writer.string(name)
        switch form {
        case .dimmer:
            writer.beginObject()
            writer.key("steps")
            writer.integer(octets[1])
            writer.endObject()
        case .command where octets.count > 2:
            writer.beginObject()
            writer.key("args")
            writer.hexadecimal(octets.extracting(2...))
            writer.endObject()
        default: writer.null()
        }
        writer.endArray()
    }

    private static func buttonEvent(_ event: UInt8) -> String? {
        switch event {
        case 0x01: "press"
        case 0x02: "double_press"
        case 0x03: "triple_press"
        case 0x04: "long_press"
        case 0x05: "long_double_press"
        case 0x06: "long_triple_press"
        // 0xFE is what Shelly's firmware before 1.0.20 sends.
        case 0x80, 0xFE: "hold_press"
        default: nil
        }
    }

    private static func dimmerEvent(_ event: UInt8) -> String? {
        switch event {
        case 0x01: "rotate_left"
        case 0x02: "rotate_right"
        default: nil
        }
    }

    private static func command(_ command: UInt8) -> String? {
        switch command {
        case 0x00: "off"
        case 0x01: "on"
        case 0x02: "toggle"
        case 0x03: "step_up"
        case 0x04: "step_down"
        default: nil
        }
    }

    /// `2023-05-14 19:41:17+00:00`
    private static func timestamp(seconds: UInt64) -> String {
        guard let time = CivilTime(WallTime(milliseconds: Int64(seconds) * 1000)) else { return "" }
        func pair(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return "\(time.year)-\(pair(time.month))-\(pair(time.day)) "
            + "\(pair(time.hour)):\(pair(time.minute)):\(pair(time.second))+00:00"
    }
}

extension JSONWriter {
    /// `value` units of 10^-`decimals`.
    fileprivate mutating func scaled(_ value: Int64, decimals: Int) {
        var unit = 1.0
        for _ in 0..<decimals { unit *= 10 }
        decimal(Double(value) / unit, decimals: decimals)
    }
}
