// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What the Eddystone frames have in common (Google, Eddystone Protocol Specification): service 0xFEAA, then the frame
/// type, then for most the transmitted power at 0 m.
enum Eddystone {
    static let carrier = FormatDefinition.Carrier.service(uuid: 0xFEAA)

    /// Frame types.
    static let uid: UInt8 = 0x00
    static let url: UInt8 = 0x10
    static let tlm: UInt8 = 0x20

    /// Strength at 1 m from the power at 0 m: 41 dB less, the loss over the first metre that the specification gives.
    static func measuredPower(_ octet: UInt8) -> Int8 {
        Int8(clamping: Int(Int8(bitPattern: octet)) - 41)
    }

    static func writePower(_ payload: Span<UInt8>, _ writer: inout JSONWriter) {
        writer.key("tx_power")
        writer.integer(Int8(bitPattern: payload[3]))
    }
}

extension FormatDefinition {
    /// Eddystone-UID: namespace of 10 and instance of 6 octets. The two reserved octets behind them may be missing, as
    /// many tags leave them out, and may hold anything.
    static let eddystoneUID = FormatDefinition(
        name: "eddystone-uid",
        fields: [
            IdentityField(
                key: "namespace", spelling: .hexadecimal(octets: 10), summary: "Namespace, 20 hexadecimal digits."),
            IdentityField(
                key: "instance", spelling: .hexadecimal(octets: 6), summary: "Instance, 12 hexadecimal digits."),
        ],
        in: Eddystone.carrier,
        decode: { payload, format in
            guard payload.count >= 20, payload[2] == Eddystone.uid else { return nil }
            return Frame(
                format: format, identity: BeaconIdentity(format: format, octets: payload.extracting(4..<20)),
                measuredPower: Eddystone.measuredPower(payload[3]))
        },
        describe: Eddystone.writePower)

    /// Eddystone-URL: a scheme and up to 17 octets of text, in which values below 14 stand for common endings.
    static let eddystoneURL = FormatDefinition(
        name: "eddystone-url",
        fields: [
            IdentityField(
                key: "url",
                spelling: .custom(spell: CompressedURL.expand, parse: CompressedURL.compress),
                summary: "The whole URL as it is spelled in events.")
        ],
        in: Eddystone.carrier,
        decode: { payload, format in
            guard payload.count >= 5, payload[2] == Eddystone.url else { return nil }
            let encoded = payload.extracting(4...)
            guard CompressedURL.isValid(encoded) else { return nil }
            return Frame(
                format: format, identity: BeaconIdentity(format: format, octets: encoded),
                measuredPower: Eddystone.measuredPower(payload[3]))
        },
        describe: Eddystone.writePower)

    /// Eddystone-TLM, unencrypted (version 0): battery in mV (0: not measured), temperature as signed 8.8 fixed point in
    /// °C (0x8000: not measured), advertisements since power-up, and time since power-up in tenths of a second.
    ///
    /// It names no beacon: it belongs to the device that sends it beside a UID or a URL.
    static let eddystoneTLM = FormatDefinition(
        name: "eddystone-tlm",
        in: Eddystone.carrier,
        decode: { payload, format in
            guard payload.count >= 16, payload[2] == Eddystone.tlm, payload[3] == 0 else { return nil }
            return Frame(format: format, identity: nil, measuredPower: nil)
        },
        describe: { payload, writer in
            func number(_ range: Range<Int>) -> UInt32 {
                range.reduce(0) { $0 << 8 | UInt32(payload[$1]) }
            }
            writer.key("battery_mv")
            writer.integer(number(4..<6))
            writer.key("temperature_c")
            let temperature = UInt16(number(6..<8))
            if temperature == 0x8000 {
                writer.null()
            } else {
                // A step is 1/256 °C, which eight decimals spell exactly.
                writer.decimal(Double(Int16(bitPattern: temperature)) / 256, decimals: 8)
            }
            writer.key("adv_count")
            writer.integer(number(8..<12))
            writer.key("uptime_ds")
            writer.integer(number(12..<16))
        })
}
