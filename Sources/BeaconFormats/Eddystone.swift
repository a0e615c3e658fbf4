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
    static let eid: UInt8 = 0x30

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
            writer.key("battery_mv")
            writer.integer(payload.bigEndian(4..<6))
            writer.key("temperature_c")
            let temperature = payload.bigEndianInt16(at: 6)
            if temperature == .min {
                writer.null()
            } else {
                // A step is 1/256 °C, which eight decimals spell exactly.
                writer.decimal(Double(temperature) / 256, decimals: 8)
            }
            writer.key("adv_count")
            writer.integer(payload.bigEndian(8..<12))
            writer.key("uptime_ds")
            writer.integer(payload.bigEndian(12..<16))
        })

    /// Eddystone-TLM, encrypted (version 1): 12 octets of telemetry under the key of an EID beacon, a salt and a message
    /// integrity check of 16 bits each. Only the resolver that knows the EID can read it.
    static let eddystoneEncryptedTLM = FormatDefinition(
        name: "eddystone-etlm",
        in: Eddystone.carrier,
        decode: { payload, format in
            guard payload.count >= 20, payload[2] == Eddystone.tlm, payload[3] == 1 else { return nil }
            return Frame(format: format, identity: nil, measuredPower: nil)
        },
        describe: { payload, writer in
            writer.key("etlm")
            writer.hexadecimal(payload.extracting(4..<16))
            writer.key("salt")
            writer.integer(payload.bigEndian(16..<18))
            writer.key("mic")
            writer.integer(payload.bigEndian(18..<20))
        })

    /// Eddystone-EID: an ephemeral identifier of 8 octets.
    ///
    /// It changes every few minutes to hours, and only the resolver with the key knows what stays the same, so it is no
    /// identity here.
    static let eddystoneEID = FormatDefinition(
        name: "eddystone-eid",
        in: Eddystone.carrier,
        decode: { payload, format in
            guard payload.count >= 12, payload[2] == Eddystone.eid else { return nil }
            return Frame(format: format, identity: nil, measuredPower: Eddystone.measuredPower(payload[3]))
        },
        describe: { payload, writer in
            writer.key("eid")
            writer.hexadecimal(payload.extracting(4..<12))
            Eddystone.writePower(payload, &writer)
        })
}
