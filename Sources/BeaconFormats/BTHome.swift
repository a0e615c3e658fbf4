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
        for (key, section) in sections {
            writer.key(key)
            writer.beginObject()
            var offset = 0
            while let item = item(in: objects, at: offset) {
                offset = item.range.upperBound
                if item.object.section == section { write(item, of: objects, &writer) }
            }
            writer.endObject()
        }
    }

    private static let sections: [(key: String, section: BTHomeObject.Section)] = [
        ("values", .values), ("binary", .binary), ("events", .events),
    ]

    private struct Item {
        let object: BTHomeObject
        /// Behind the object id.
        let range: Range<Int>
    }

    /// The object whose id stands at an offset; nil at the end, and when it is unknown or does not fit: where the next
    /// one begins is then not known.
    private static func item(in objects: Span<UInt8>, at offset: Int) -> Item? {
        guard offset < objects.count, let object = BTHomeObject[objects[offset]],
            let length = object.length(in: objects.extracting((offset + 1)...))
        else { return nil }
        return Item(object: object, range: offset + 1..<offset + 1 + length)
    }

    /// The place of an item among those of its key and section, from 1; nil when it is the only one.
    private static func ordinal(of item: Item, in objects: Span<UInt8>) -> Int? {
        var offset = 0
        var count = 0
        var ordinal = 1
        while let other = self.item(in: objects, at: offset) {
            offset = other.range.upperBound
            guard other.object.section == item.object.section, other.object.key == item.object.key else { continue }
            count += 1
            if other.range.lowerBound < item.range.lowerBound { ordinal += 1 }
        }
        return count > 1 ? ordinal : nil
    }

    /// Writes the key of an item, numbered when there are several of it.
    private static func writeKey(_ item: Item, of objects: Span<UInt8>, _ writer: inout JSONWriter) {
        guard let ordinal = ordinal(of: item, in: objects) else { return writer.key(item.object.key) }
        writer.key { key in
            key.string { text in
                text.append(contentsOf: item.object.key.utf8)
                text.append(UInt8(ascii: "_"))
                Decimal.append(UInt64(ordinal), to: &text)
            }
        }
    }

    private static func write(_ item: Item, of objects: Span<UInt8>, _ writer: inout JSONWriter) {
        let octets = objects.extracting(item.range)
        guard isSpelled(item, octets) else { return }
        writeKey(item, of: objects, &writer)
        switch item.object.form {
        case .unsigned(_, let step, let decimals):
            writer.scaled(Int64(octets.littleEndian(0..<octets.count)) * Int64(step), decimals: decimals)
        case .signed(_, let step, let decimals):
            let unused = UInt64(64 - octets.count * 8)
            let value = Int64(bitPattern: octets.littleEndian(0..<octets.count) << unused) >> Int64(unused)
            writer.scaled(value * Int64(step), decimals: decimals)
        case .flag: writer.boolean(octets[0] != 0)
        case .timestamp: writeTimestamp(seconds: octets.littleEndian(0..<4), &writer)
        case .version:
            writer.string { text in
                for index in octets.indices.reversed() {
                    Decimal.append(UInt64(octets[index]), to: &text)
                    if index > 0 { text.append(UInt8(ascii: ".")) }
                }
            }
        case .text: writer.string(utf8: octets.extracting(1...))
        case .raw: writer.hexadecimal(octets.extracting(1...))
        case .button, .dimmer, .command: writeEvent(item.object.form, octets, &writer)
        }
    }

    /// What is not spelled is counted all the same: an event that says that nothing happened, which keeps the place of a
    /// button, or that this version does not know, and a text that is none.
    private static func isSpelled(_ item: Item, _ octets: Span<UInt8>) -> Bool {
        switch item.object.form {
        case .text: octets.extracting(1...).isUTF8
        case .button, .dimmer, .command: eventName(item.object.form, octets) != nil
        default: true
        }
    }

    private static func eventName(_ form: BTHomeObject.Form, _ octets: Span<UInt8>) -> String? {
        switch form {
        case .button: buttonEvent(octets[0])
        case .dimmer: dimmerEvent(octets[0])
        default: command(octets[1])
        }
    }

    /// An event is a pair: what happened, and what belongs to it.
    private static func writeEvent(_ form: BTHomeObject.Form, _ octets: Span<UInt8>, _ writer: inout JSONWriter) {
        guard let name = eventName(form, octets) else { return writer.null() }
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
    private static func writeTimestamp(seconds: UInt64, _ writer: inout JSONWriter) {
        writer.string { text in
            guard let time = CivilTime(WallTime(milliseconds: Int64(seconds) * 1000)) else { return }
            time.appendDate(to: &text)
            text.append(UInt8(ascii: " "))
            time.appendTimeOfDay(to: &text)
            text.append(contentsOf: "+00:00".utf8)
        }
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
