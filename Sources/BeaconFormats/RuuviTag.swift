// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What the Ruuvi formats have in common (Ruuvi, "Bluetooth advertisements"): company 0x0499, then the number of the data
/// format. Numbers are big-endian; one value of each field means "not available" and is spelled `null`.
///
/// A frame names no beacon, but the values belong to the device that sends them.
enum Ruuvi {
    static let carrier = FormatDefinition.Carrier.manufacturer(companyID: 0x0499)

    static func frame(_ format: FormatID) -> Frame {
        Frame(format: format, identity: nil, measuredPower: nil, standsForDevice: true)
    }

    /// Temperature, humidity and pressure stand at the same places in formats 5, 6 and E1.
    static func writeClimate(_ payload: Span<UInt8>, _ writer: inout JSONWriter) {
        let temperature = payload.bigEndianInt16(at: 3)
        write("temperature_c", temperature == .min ? nil : Double(temperature) * 5 / 1000, decimals: 3, &writer)
        let humidity = number(payload, 5..<7)
        write("humidity_percent", humidity.map { Double($0) * 25 / 10_000 }, decimals: 4, &writer)
        write("pressure_pa", number(payload, 7..<9).map { $0 + 50_000 }, &writer)
    }

    /// Particles in µg/m³, in steps of 0.1.
    static func writeParticles(_ key: String, _ payload: Span<UInt8>, at offset: Int, _ writer: inout JSONWriter) {
        write(key, number(payload, offset..<offset + 2).map { Double($0) / 10 }, decimals: 1, &writer)
    }

    /// CO2 in ppm and the indices for volatile organic compounds and nitrogen oxides, 9 bits whose lowest stand in the
    /// flags.
    static func writeGases(_ payload: Span<UInt8>, at offset: Int, flags: UInt8, _ writer: inout JSONWriter) {
        write("co2_ppm", number(payload, offset..<offset + 2), &writer)
        let voc = UInt64(payload[offset + 2]) << 1 | UInt64(flags >> 6 & 1)
        let nox = UInt64(payload[offset + 3]) << 1 | UInt64(flags >> 7)
        write("voc_index", voc == 0x1FF ? nil : voc, &writer)
        write("nox_index", nox == 0x1FF ? nil : nox, &writer)
    }

    static func writeFlags(_ flags: UInt8, _ writer: inout JSONWriter) {
        writer.key("calibrating")
        writer.boolean(flags & 1 == 1)
    }

    static func writeMAC(_ payload: Span<UInt8>, at offset: Int, _ writer: inout JSONWriter) {
        writer.key("mac")
        let mac = payload.bigEndian(offset..<offset + 6)
        writer.address(mac == 0xFFFF_FFFF_FFFF ? .anonymous : DeviceAddress(value: mac, kind: .randomDevice))
    }

    /// nil when all bits are set.
    static func number(_ payload: Span<UInt8>, _ range: Range<Int>) -> UInt64? {
        let value = payload.bigEndian(range)
        return value == 1 << UInt64(range.count * 8) - 1 ? nil : value
    }

    static func write(_ key: String, _ value: UInt64?, _ writer: inout JSONWriter) {
        writer.key(key)
        if let value { writer.integer(value) } else { writer.null() }
    }

    static func write(_ key: String, _ value: Double?, decimals: Int, _ writer: inout JSONWriter) {
        writer.key(key)
        if let value { writer.decimal(value, decimals: decimals) } else { writer.null() }
    }

    static func writeAcceleration(
        _ payload: Span<UInt8>, at offset: Int, notAvailable: Int16?, _ writer: inout JSONWriter
    ) {
        writer.key("accel_g")
        writer.beginArray()
        for axis in 0..<3 {
            let value = payload.bigEndianInt16(at: offset + axis * 2)
            if value == notAvailable { writer.null() } else { writer.decimal(Double(value) / 1000, decimals: 3) }
        }
        writer.endArray()
    }
}

extension FormatDefinition {
    /// Data format 3 (RAWv1). It has no value for "not available".
    static let ruuviFormat3 = FormatDefinition(
        name: "ruuvi-df3",
        in: Ruuvi.carrier,
        decode: { payload, format in payload.count >= 16 && payload[2] == 3 ? Ruuvi.frame(format) : nil },
        describe: { payload, writer in
            // A sign and 7 bits of whole degrees, then hundredths: not two's complement.
            let magnitude = Double(payload[4] & 0x7F) + Double(payload[5]) / 100
            let temperature = payload[4] & 0x80 == 0 ? magnitude : -magnitude
            Ruuvi.write("temperature_c", payload[5] < 100 ? temperature : nil, decimals: 2, &writer)
            Ruuvi.write("humidity_percent", Double(payload[3]) / 2, decimals: 1, &writer)
            Ruuvi.write("pressure_pa", payload.bigEndian(6..<8) + 50_000, &writer)
            Ruuvi.writeAcceleration(payload, at: 8, notAvailable: nil, &writer)
            Ruuvi.write("battery_v", Double(payload.bigEndian(14..<16)) / 1000, decimals: 3, &writer)
        })

    /// Data format 5 (RAWv2).
    static let ruuviFormat5 = FormatDefinition(
        name: "ruuvi-df5",
        in: Ruuvi.carrier,
        decode: { payload, format in payload.count >= 26 && payload[2] == 5 ? Ruuvi.frame(format) : nil },
        describe: { payload, writer in
            Ruuvi.writeClimate(payload, &writer)
            Ruuvi.writeAcceleration(payload, at: 9, notAvailable: .min, &writer)
            // 11 bits of battery voltage above 1.6 V in mV, then 5 bits of transmit power above −40 dBm in 2 dBm.
            let power = UInt16(payload.bigEndian(15..<17))
            writer.key("tx_power")
            if power & 0x1F == 0x1F { writer.null() } else { writer.integer(Int(power & 0x1F) * 2 - 40) }
            let battery = power >> 5
            Ruuvi.write("battery_v", battery == 0x7FF ? nil : Double(battery + 1600) / 1000, decimals: 3, &writer)
            Ruuvi.write("movement", Ruuvi.number(payload, 17..<18), &writer)
            Ruuvi.write("sequence", Ruuvi.number(payload, 18..<20), &writer)
            Ruuvi.writeMAC(payload, at: 20, &writer)
        })

    /// Data format 6 (Ruuvi Air, for receivers without extended advertising).
    static let ruuviFormat6 = FormatDefinition(
        name: "ruuvi-df6",
        in: Ruuvi.carrier,
        decode: { payload, format in payload.count >= 22 && payload[2] == 6 ? Ruuvi.frame(format) : nil },
        describe: { payload, writer in
            let flags = payload[18]
            Ruuvi.writeClimate(payload, &writer)
            Ruuvi.writeParticles("pm2_5_ug_m3", payload, at: 9, &writer)
            Ruuvi.writeGases(payload, at: 11, flags: flags, &writer)
            Ruuvi.write("luminosity_lux", Ruuvi.luminosity(payload[15]), decimals: 2, &writer)
            // The low octet of a longer counter: 255 is a value like any other.
            Ruuvi.write("sequence", UInt64(payload[17]), &writer)
            Ruuvi.writeFlags(flags, &writer)
            writer.key("mac_ending")
            if payload.bigEndian(19..<22) == 0xFF_FFFF {
                writer.null()
            } else {
                writer.hexadecimal(payload.extracting(19..<22), separator: UInt8(ascii: ":"))
            }
        })

    /// Data format E1 (Ruuvi Air, extended advertising). The length is fixed: drafts of another length put the fields
    /// elsewhere.
    static let ruuviFormatE1 = FormatDefinition(
        name: "ruuvi-e1",
        in: Ruuvi.carrier,
        decode: { payload, format in payload.count == 42 && payload[2] == 0xE1 ? Ruuvi.frame(format) : nil },
        describe: { payload, writer in
            let flags = payload[30]
            Ruuvi.writeClimate(payload, &writer)
            Ruuvi.writeParticles("pm1_ug_m3", payload, at: 9, &writer)
            Ruuvi.writeParticles("pm2_5_ug_m3", payload, at: 11, &writer)
            Ruuvi.writeParticles("pm4_ug_m3", payload, at: 13, &writer)
            Ruuvi.writeParticles("pm10_ug_m3", payload, at: 15, &writer)
            Ruuvi.writeGases(payload, at: 17, flags: flags, &writer)
            Ruuvi.write(
                "luminosity_lux", Ruuvi.number(payload, 21..<24).map { Double($0) / 100 }, decimals: 2, &writer)
            Ruuvi.write("sequence", Ruuvi.number(payload, 27..<30), &writer)
            Ruuvi.writeFlags(flags, &writer)
            Ruuvi.writeMAC(payload, at: 36, &writer)
        })
}

extension Ruuvi {
    /// The logarithmic scale of format 6: code 254 is 65,535 lux, so a step is a factor of 65,536^(1/254) on the value
    /// plus one.
    static func luminosity(_ code: UInt8) -> Double? {
        guard code < 255 else { return nil }
        var value = 1.0
        for _ in 0..<code { value *= 1.0446300614125956 }
        return value - 1
    }
}
