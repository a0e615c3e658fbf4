// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What Theengs Gateway and OpenMQTTGateway publish (theengs/gateway, TheengsGateway/ble_gateway.py; theengs/decoder,
/// src/devices and tests/BLE/test_ble.cpp).
///
/// | event | topic | message |
/// | --- | --- | --- |
/// | sighting | `<root>/BTtoMQTT/<MAC>` | `{"id","mac_type","rssi","distance","brand","model",…}`, QoS 0 |
/// | exit | the same | `{"id":"<MAC>","presence":"absent"}` |
/// | connected, good-bye | `<root>/LWT` | `online`, `offline`, retained |
///
/// The MAC is in upper case, without colons in the topic and with them in `id`. An advertiser without an address has no
/// topic there.
struct Theengs: Preset {
    let statusTopic: String?
    private let data: String
    private let vocabulary: Vocabulary
    private let known: KnownFormats

    /// - Parameter root: the levels before `BTtoMQTT` and `LWT`, `home/<gateway>` in the original.
    init(root: String, vocabulary: Vocabulary) {
        data = "\(root)/BTtoMQTT/"
        statusTopic = "\(root)/LWT"
        self.vocabulary = vocabulary
        known = KnownFormats(vocabulary.formats)
    }

    func spellSighting(
        _ event: borrowing Event, _ frame: borrowing FrameMembers, _ message: inout PresetMessage
    ) -> Bool {
        guard let identity = event.identity, begin(event, &message) else { return false }
        message.payload.key("mac_type")
        message.payload.integer(isPublic(event.address) ? 0 : 1)
        if event.name != .none {
            message.payload.key("name")
            message.payload.string(vocabulary.names[event.name])
        }
        if let rssi = event.signal.last {
            message.payload.key("rssi")
            message.payload.integer(rssi)
        }
        if event.accuracy >= 0 {
            message.payload.key("distance")
            message.payload.decimal(Double(event.accuracy), decimals: 2)
        }
        if identity.format == known.iBeacon {
            writeIBeacon(identity, event.measuredPower, &message)
        } else {
            writeModel(frame, &message.payload)
        }
        writeReadings(frame, &message)
        message.payload.endObject()
        return true
    }

    /// Readers take a beacon whose message has no `rssi` for gone.
    func spellExit(_ event: borrowing Event, _ message: inout PresetMessage) -> Bool {
        guard begin(event, &message) else { return false }
        message.payload.key("presence")
        message.payload.string("absent")
        message.payload.endObject()
        return true
    }

    /// Spells the topic and `id`; false for an advertiser without an address.
    private func begin(_ event: borrowing Event, _ message: inout PresetMessage) -> Bool {
        guard !event.address.isAnonymous else { return false }
        event.address.append(to: &message.text, isUpperCase: true)
        message.appendToTopic(data)
        message.appendTextToTopic()
        message.text.removeAll(keepingCapacity: true)
        event.address.append(to: &message.text, separator: UInt8(ascii: ":"), isUpperCase: true)
        message.payload.beginObject()
        message.payload.key("id")
        message.writeText()
        return true
    }

    private func isPublic(_ address: DeviceAddress) -> Bool {
        address.kind == .publicDevice || address.kind == .publicIdentity
    }

    private func writeIBeacon(_ identity: BeaconIdentity, _ power: Int8?, _ message: inout PresetMessage) {
        write(brand: "GENERIC", model: "iBeacon", id: "IBEACON", type: "BCON", &message.payload)
        message.payload.key("mfid")
        message.payload.string("4c00")
        message.payload.key("uuid")
        let uuid = [16 of UInt8] { identity[$0] }
        message.payload.hexadecimal(uuid.span)
        // The decoder takes both for signed numbers, and its readers know the beacon by them.
        message.payload.key("major")
        message.payload.integer(Int16(bitPattern: UInt16(identity[16]) << 8 | UInt16(identity[17])))
        message.payload.key("minor")
        message.payload.integer(Int16(bitPattern: UInt16(identity[18]) << 8 | UInt16(identity[19])))
        if let power {
            message.payload.key("txpower")
            message.payload.integer(power)
        }
    }

    private func writeModel(_ frame: borrowing FrameMembers, _ writer: inout JSONWriter) {
        let isNew = frame.isText("frame", "ruuvi-df5")
        guard isNew || frame.isText("frame", "ruuvi-df3") else { return }
        write(
            brand: "Ruuvi", model: "RuuviTag", id: isNew ? "RuuviTag_RAWv2" : "RuuviTag_RAWv1", type: "ACEL", &writer)
        writer.key("track")
        writer.boolean(true)
    }

    private func write(brand: String, model: String, id: String, type: String, _ writer: inout JSONWriter) {
        writer.key("brand")
        writer.string(brand)
        writer.key("model")
        writer.string(model)
        writer.key("model_id")
        writer.string(id)
        writer.key("type")
        writer.string(type)
    }

    /// What a native key is called there, and the factor between the units.
    private static let readings: [(native: StaticString, key: String, factor: Double, decimals: Int)] = [
        ("humidity_percent", "hum", 1, 4), ("humidity", "hum", 1, 2),
        // Pa in Ruuvi's formats, hPa in BTHome.
        ("pressure_pa", "pres", 0.01, 2), ("pressure", "pres", 1, 2),
        ("battery_v", "volt", 1, 3), ("battery_mv", "volt", 0.001, 3), ("voltage", "volt", 1, 3),
        ("battery", "batt", 1, 0), ("illuminance", "lux", 1, 2), ("moisture", "moi", 1, 2),
        ("conductivity", "fer", 1, 0), ("carbon_dioxide", "co2", 1, 0), ("co2_ppm", "co2", 1, 0),
        ("packet_id", "packet", 1, 0), ("tx_power", "tx", 1, 0), ("movement", "mov", 1, 0), ("sequence", "seq", 1, 0),
    ]

    /// The decoder divides thousandths of g by 10,000 and multiplies by 9.80665: a tenth of the metres per second squared
    /// that it means. Readers know its numbers.
    private static let acceleration = 0.980665

    private func writeAcceleration(_ key: String, _ value: Double?, _ writer: inout JSONWriter) {
        guard let value else { return }
        writer.key(key)
        writer.decimal(value * Self.acceleration, decimals: 8)
    }

    private func writeReadings(_ frame: borrowing FrameMembers, _ message: inout PresetMessage) {
        if let celsius = frame.number("temperature_c") ?? frame.number("temperature") {
            message.payload.key("tempc")
            message.payload.decimal(celsius, decimals: 3)
            message.payload.key("tempf")
            message.payload.decimal(celsius * 1.8 + 32, decimals: 3)
        }
        for (native, key, factor, decimals) in Self.readings {
            guard let value = frame.number(native) else { continue }
            message.payload.key(key)
            message.payload.decimal(value * factor, decimals: decimals)
        }
        writeAcceleration("accx", frame.number("accel_g", at: 0), &message.payload)
        writeAcceleration("accy", frame.number("accel_g", at: 1), &message.payload)
        writeAcceleration("accz", frame.number("accel_g", at: 2), &message.payload)
        if let isMoving = frame.flag("motion") {
            message.payload.key("motion")
            message.payload.boolean(isMoving)
        }
        if let isOpen = frame.flag("opening") ?? frame.flag("window") ?? frame.flag("door") {
            message.payload.key("open")
            message.payload.boolean(isOpen)
        }
        if let mac = frame.text("mac") {
            message.text.removeAll(keepingCapacity: true)
            for octet in mac {
                let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(octet)
                message.text.append(isLetter ? octet - 0x20 : octet)
            }
            message.payload.key("mac")
            message.writeText()
        }
    }
}
