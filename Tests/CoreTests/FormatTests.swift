// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Foundation
import HCI
import TestSupport
import Testing

/// What the vectors do not show: both sides of signs and byte orders, lengths on either side of the right one, and what
/// `docs/formats.md` says where a layout leaves it open.
@Suite struct FormatTests {
    /// One AD structure.
    private func structure(_ type: UInt8, _ hexadecimal: String) throws -> [UInt8] {
        let octets = try #require(Hexadecimal.octets(hexadecimal))
        return [UInt8(octets.count + 1), type] + octets
    }

    private func frame(_ type: UInt8, _ hexadecimal: String) throws -> [String: Any]? {
        let frames = try decodedFrames(try structure(type, hexadecimal))
        #expect(frames.count <= 1)
        return try frames.first.flatMap { try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
    }

    private func first(_ data: [UInt8]) -> Frame? {
        var first: Frame?
        FrameDecoder().forEachFrame(in: data.span) { frame, _ in first = first ?? frame }
        return first
    }

    // MARK: Signs, byte order, length

    @Test(arguments: [("80", -128), ("9c", -100), ("ff", -1), ("00", 0), ("01", 1), ("7f", 127)])
    func measuredPowerIsSigned(octet: String, power: Int) throws {
        let iBeacon = try frame(0xFF, "4c000215" + String(repeating: "11", count: 16) + "0102fffe" + octet)
        #expect(iBeacon?["tx_power"] as? Int == power)
        #expect(iBeacon?["major"] as? Int == 0x0102)
        #expect(iBeacon?["minor"] as? Int == 0xFFFE)
        let altBeacon = try frame(0xFF, "1801beac" + String(repeating: "11", count: 16) + "0102fffe" + octet + "00")
        #expect(altBeacon?["tx_power"] as? Int == power)
        #expect(altBeacon?["id2"] as? Int == 0x0102)
        #expect(altBeacon?["id3"] as? Int == 0xFFFE)
        for type in ["00", "10", "30"] {
            let eddystone = try frame(0x16, "aafe" + type + octet + "03" + String(repeating: "61", count: 15))
            #expect(eddystone?["tx_power"] as? Int == power)
        }
    }

    /// An Eddystone frame gives the strength at 0 m; a power of −128 has no room for the 41 dB.
    @Test(arguments: [("00", -41), ("ed", -60), ("80", -128)])
    func strengthAtOneMetreFromThatAtNone(octet: String, power: Int8) throws {
        let data = try structure(0x16, "aafe00" + octet + String(repeating: "61", count: 16))
        #expect(first(data)?.measuredPower == power)
    }

    @Test(arguments: [
        ("c4", false), ("9c", false), ("9b", true), ("ec", false), ("ed", true), ("1a", true), ("80", true),
    ])
    func implausiblePowerIsAFact(octet: String, isImplausible: Bool) throws {
        let data = try structure(0xFF, "4c000215" + String(repeating: "11", count: 20) + octet)
        #expect(first(data)?.claimsImplausiblePower == isImplausible)
    }

    @Test(arguments: [
        ("8000", nil), ("8001", -127.996_093_75), ("ffff", -0.003_906_25), ("0000", 0), ("7fff", 127.996_093_75),
    ])
    func telemetryTemperature(octets: String, celsius: Double?) throws {
        let frame = try frame(0x16, "aafe20000bb8" + octets + "0000000100000002")
        #expect(frame?["temperature_c"] as? Double == celsius)
        #expect(frame?["battery_mv"] as? Int == 0x0BB8)
        #expect(frame?["adv_count"] as? Int == 1)
        #expect(frame?["uptime_ds"] as? Int == 2)
    }

    @Test(
        arguments: [
            (0xFF, "4c000215" + String(repeating: "00", count: 21), "ibeacon"),
            (0xFF, "1801beac" + String(repeating: "00", count: 22), "altbeacon"),
            (0x16, "aafe0000" + String(repeating: "00", count: 16), "eddystone-uid"),
            (0x16, "aafe2000" + String(repeating: "00", count: 12), "eddystone-tlm"),
            (0x16, "aafe2001" + String(repeating: "00", count: 16), "eddystone-etlm"),
            (0x16, "aafe3000" + String(repeating: "00", count: 8), "eddystone-eid"),
            (0x16, "6ffd" + String(repeating: "00", count: 20), "exposure-notification"),
            (0xFF, "990403" + String(repeating: "00", count: 13), "ruuvi-df3"),
            (0xFF, "990405" + String(repeating: "00", count: 23), "ruuvi-df5"),
            (0xFF, "990406" + String(repeating: "00", count: 19), "ruuvi-df6"),
            (0xFF, "9904e1" + String(repeating: "00", count: 39), "ruuvi-e1"),
            (0x16, "d2fc40", "bthome-v2"),
            (0x16, "d2fc42" + String(repeating: "00", count: 6), "bthome-v2"),
        ] as [(UInt8, String, String)])
    func theShortestFrameAndOneOctetLess(type: UInt8, hexadecimal: String, format: String) throws {
        #expect(try frame(type, hexadecimal)?["format"] as? String == format)
        #expect(try frame(type, String(hexadecimal.dropLast(2))) == nil)
        // Where the length is fixed one more is none either; elsewhere the rest is left alone.
        let isFixed = ["altbeacon", "exposure-notification", "ruuvi-e1"].contains(format)
        #expect((try frame(type, hexadecimal + "00") == nil) == isFixed)
    }

    // MARK: Identity

    /// Zeros and ones are identities like all others: nothing in the layouts reserves them.
    @Test(arguments: ["00", "ff"])
    func noIdentityIsAWildcard(octet: String) throws {
        let iBeacon = try frame(0xFF, "4c000215" + String(repeating: octet, count: 20) + "c5")
        #expect(iBeacon?["major"] as? Int == (octet == "00" ? 0 : 0xFFFF))
        #expect((iBeacon?["uuid"] as? String)?.hasPrefix(octet + octet) == true)
        let uid = try frame(0x16, "aafe00e7" + String(repeating: octet, count: 16))
        #expect(uid?["namespace"] as? String == String(repeating: octet, count: 10))
    }

    @Test func onlyBeaconsHaveAnIdentityAndOnlySensorsStandForTheirDevice() {
        let sensors = ["ruuvi-df3", "ruuvi-df5", "ruuvi-df6", "ruuvi-e1", "bthome-v2"]
        let beacons = ["ibeacon", "altbeacon", "eddystone-uid", "eddystone-url"]
        var seen: Set<String> = []
        for vector in Vector.all where vector.kind == "adv-data" {
            for data in vector.packets {
                let decoder = FrameDecoder()
                decoder.forEachFrame(in: data.span) { frame, _ in
                    let name = decoder.catalog[frame.format]?.name ?? ""
                    seen.insert(name)
                    #expect((frame.identity != nil) == beacons.contains(name), "\(name)")
                    #expect(frame.standsForDevice == sensors.contains(name), "\(name)")
                }
            }
        }
        // Devices are known by their address and need no frame.
        let framed = Set(FrameDecoder().catalog.formats.map(\.name)).subtracting(["device", "irk"])
        #expect(seen == framed)
    }

    // MARK: BTHome

    private func btHome(_ hexadecimal: String) throws -> [String: Any]? { try frame(0x16, "d2fc" + hexadecimal) }

    @Test func versionsOfBTHomeOtherThanTwoAreNone() throws {
        for version in 0..<8 as Range<UInt8> where version != 2 {
            #expect(try btHome(Hexadecimal.text([version << 5]) + "0161") == nil)
        }
    }

    /// Objects of one key are numbered in their section, whatever their ids; an unknown one ends the list.
    @Test func numberingAndTheEndOfWhatIsKnown() throws {
        let frame = try #require(try btHome("400601000702002e32" + "15012e33" + "65ff0161"))
        #expect(
            frame["values"] as? NSDictionary == ["mass_1": 0.01, "mass_2": 0.02, "humidity_1": 50, "humidity_2": 51])
        #expect(frame["binary"] as? NSDictionary == ["battery": true])
    }

    @Test func anObjectThatDoesNotFitEndsTheList() throws {
        for rest in ["02ca", "530361", "54", "3b04", "3b0503", "3c01", "50000000"] {
            let frame = try #require(try btHome("400161" + rest))
            #expect(frame["values"] as? NSDictionary == ["battery": 0x61])
            #expect(frame["events"] as? NSDictionary == [:])
        }
    }

    @Test func aDimmerTurnsUpTo255Steps() throws {
        #expect(try btHome("403c01c8")?["events"] as? NSDictionary == ["dimmer": ["rotate_left", ["steps": 200]]])
    }
}
