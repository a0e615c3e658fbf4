// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What an ESPresense node publishes (ESPresense, src/BleFingerprint.cpp and src/mqtt.cpp).
///
/// | event | topic | message |
/// | --- | --- | --- |
/// | sighting | `<prefix>/devices/<id>/<room>` | `{"mac","id","name","rssi@1m","rssi","rxAdj","distance",…}`, QoS 0 |
/// | exit | | none: a node forgets in silence |
/// | connected, good-bye | `<prefix>/rooms/<room>/status` | `online`, `offline`, retained |
///
/// Variances (`rssiVar`, `var`) and the mean interval (`int`) are left out, as a node leaves out what it does not know.
struct ESPresense: Preset {
    let statusTopic: String?
    private let devices: String
    private let room: String
    private let vocabulary: Vocabulary
    private let known: KnownFormats

    init(prefix: String, room: String, vocabulary: Vocabulary) {
        devices = "\(prefix)/devices/"
        self.room = "/\(room)"
        statusTopic = "\(prefix)/rooms/\(room)/status"
        self.vocabulary = vocabulary
        known = KnownFormats(vocabulary.formats)
    }

    func spellSighting(
        _ event: borrowing Event, _ frame: borrowing FrameMembers, _ message: inout PresetMessage
    ) -> Bool {
        guard let identity = event.identity else { return false }
        message.payload.beginObject()
        if !event.address.isAnonymous {
            event.address.append(to: &message.text, isUpperCase: false)
            message.payload.key("mac")
            message.writeText()
            message.text.removeAll(keepingCapacity: true)
        }
        appendID(identity, isKnown: event.isConfigured, to: &message.text)
        message.appendToTopic(devices)
        message.appendTextToTopic()
        message.appendToTopic(room)
        message.payload.key("id")
        message.writeText()
        if event.name != .none {
            message.payload.key("name")
            message.payload.string(vocabulary.names[event.name])
        }
        if let power = event.measuredPower {
            message.payload.key("rssi@1m")
            message.payload.integer(power)
        }
        if let filtered = event.signal.filtered {
            message.payload.key("rssi")
            message.payload.decimal(Double(filtered), decimals: 2)
        }
        message.payload.key("rxAdj")
        message.payload.integer(0)
        if event.accuracy >= 0 {
            message.payload.key("distance")
            message.payload.decimal(Double(event.accuracy), decimals: 2)
        }
        writeReadings(frame, &message.payload)
        message.payload.endObject()
        return true
    }

    func spellExit(_ event: borrowing Event, _ message: inout PresetMessage) -> Bool { false }

    private func writeReadings(_ frame: borrowing FrameMembers, _ writer: inout JSONWriter) {
        if let voltage = frame.number("battery_mv")
            ?? (frame.number("battery_v") ?? frame.number("voltage")).map({ $0 * 1000 }),
            voltage > 0
        {
            writer.key("mV")
            writer.decimal(voltage, decimals: 0)
        }
        write("batt", frame.number("battery"), decimals: 0, &writer)
        write("temp", frame.number("temperature_c") ?? frame.number("temperature"), decimals: 2, &writer)
        write("rh", frame.number("humidity_percent") ?? frame.number("humidity"), decimals: 2, &writer)
        write("lux", frame.number("illuminance") ?? frame.number("luminosity_lux"), decimals: 0, &writer)
    }

    private func write(_ key: String, _ value: Double?, decimals: Int, _ writer: inout JSONWriter) {
        guard let value else { return }
        writer.key(key)
        writer.decimal(value, decimals: decimals)
    }

    /// The kind of id that a node gives the same advertisement. What it knows only as a device has its address; the key of
    /// a private address never leaves this gateway, so that a node's `irk:` ids are not had here.
    private func appendID(_ identity: BeaconIdentity, isKnown: Bool, to text: inout [UInt8]) {
        switch identity.format {
        case known.iBeacon:
            text.append(contentsOf: "iBeacon:".utf8)
            KnownFormats.appendTriple(identity, to: &text)
        case known.altBeacon:
            text.append(contentsOf: "altBeacon:".utf8)
            KnownFormats.appendTriple(identity, to: &text)
        case known.eddystoneUID:
            // A node repeats the fifth octet of the namespace, and its readers know the beacon by that.
            let namespace = [11 of UInt8] { identity[$0 < 5 ? $0 : $0 - 1] }
            let instance = [6 of UInt8] { identity[$0 + 10] }
            text.append(contentsOf: "eddy:".utf8)
            Hexadecimal.append(namespace.span, to: &text)
            text.append(UInt8(ascii: "-"))
            Hexadecimal.append(instance.span, to: &text)
        case known.device:
            // As with the node's setting `known_macs`.
            if isKnown { text.append(contentsOf: "known:".utf8) }
            KnownFormats.address(identity).append(to: &text, isUpperCase: false)
        default:
            text.append(contentsOf: (vocabulary.formats[identity.format]?.name ?? "unknown").utf8)
            text.append(UInt8(ascii: ":"))
            KnownFormats.appendFields(identity, vocabulary.formats, to: &text)
        }
    }
}
