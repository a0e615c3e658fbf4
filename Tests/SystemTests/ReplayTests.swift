// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import TestSupport
import Testing

@Suite struct ReplayTests {
    private static let captures = ["dart-btsnoop-a", "horizon", "ruuvi-hcidump"]

    /// The capture of the fixtures, report by report, against what tshark read in it.
    @Test(arguments: captures)
    func theIndependentDecoderAgrees(capture: String) throws {
        let outcome = try Program.run("replay", "--emit", "reports", Fixtures.path("captures/\(capture).btsnoop"))
        #expect(outcome.status == 0)
        let expected = try Fixtures.lines("captures/\(capture).tshark.jsonl").map(Program.object)
        let reports = try outcome.lines.map(Program.object)
        try #require(reports.count == expected.count)
        for (report, line) in zip(reports, expected) {
            func first(_ key: String) -> Any? { (line[key] as? [Any])?.first }
            let frame = line["frame"] as? Int ?? -1
            #expect(report["frame"] as? Int == frame)
            #expect(report["event_type"] as? Int == first("event_type") as? Int, "frame \(frame)")
            #expect(report["address_type"] as? Int == first("address_type") as? Int, "frame \(frame)")
            #expect(report["address"] as? String == first("address") as? String, "frame \(frame)")
            let rssi = first("rssi") as? Int
            #expect(report["rssi"] as? Int == (rssi == 127 ? nil : rssi), "frame \(frame)")
            #expect(
                (report["data"] as? String)?.count == (first("data_length") as? Int).map { $0 * 2 }, "frame \(frame)")
            let beacons = (report["frames"] as? [[String: Any]] ?? []).filter { $0["format"] as? String == "ibeacon" }
            let theirs = line["ibeacon"] as? [[String: Any]] ?? []
            try #require(beacons.count == theirs.count, "frame \(frame)")
            for (beacon, their) in zip(beacons, theirs) {
                for key in ["uuid", "major", "minor", "tx_power"] {
                    #expect(beacon[key] as? NSObject == their[key] as? NSObject, "frame \(frame)")
                }
            }
        }
    }

    @Test func eventsAndSightingsOfACapture() throws {
        let path = Fixtures.path("captures/horizon.btsnoop")
        let sightings = try Program.run("replay", "--emit", "sightings", path)
        #expect(sightings.lines.count == 11)
        #expect(try sightings.lines.allSatisfy { try Program.object($0)["event"] as? String == "sighting" })
        #expect(sightings.errors.contains("packets_per_second"))
        let events = try Program.run("replay", path)
        let kinds = try events.lines.map { try Program.object($0)["event"] as? String }
        #expect(kinds.first == "enter")
        for line in events.lines {
            let event = try Program.object(line)
            #expect(event["v"] as? Int == 1)
            #expect((event["time"] as? String)?.hasPrefix("2021-02-01T03:") == true, "the capture's own clock")
        }
        #expect(events.errors.contains("reports             412"))
        #expect(events.errors.contains("malformed           0"))
    }

    @Test(arguments: ["null", "stdout", "json"])
    func aSinkTakesEveryEvent(kind: String) throws {
        let path = Fixtures.path("captures/dart-btsnoop-a.btsnoop")
        let count = try Program.run("replay", path).lines.count
        let outcome = try Program.run("replay", "--sink", kind, path)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.errors.contains("written             \(count)"), "\(outcome.errors)")
        if kind != "null" { #expect(outcome.lines.count == count) }
    }

    /// A cut or changed capture gives what can be read, an explanation, and no trap.
    @Test func damagedCapturesAreReadAsFarAsTheyGo() throws {
        let whole = try Fixtures.bytes("captures/horizon.btsnoop")
        let folder = try TemporaryFolder()
        func replay(_ bytes: [UInt8]) throws -> Program.Outcome {
            let path = folder.path("cut.btsnoop")
            try Data(bytes).write(to: URL(filePath: path))
            return try Program.run("replay", "--emit", "reports", path)
        }
        for length in [0, 7, 15] {
            let outcome = try replay(Array(whole[..<length]))
            #expect(outcome.status == 66)
            #expect(outcome.errors.contains("shorter than a btsnoop header"))
        }
        let cut = try replay(Array(whole[..<(whole.count - 5)]))
        #expect(cut.status == 0)
        #expect(cut.errors.contains("packets             453"))
        #expect(cut.errors.contains("ends in the middle of a record"))
        #expect(try replay(Array(whole[..<16])).status == 0)
        var endless = whole
        for index in 20..<24 { endless[index] = 0xFF }
        let outcome = try replay(endless)
        #expect(outcome.status == 66)
        #expect(outcome.errors.contains("record 1 claims 4294967295 octets"))
    }
}

/// Devices that no frame names: by address, by bind key, by identity resolving key.
@Suite struct DeviceReplayTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A capture of legacy advertisements, a second apart.
    private func capture(_ advertisements: [(address: String, data: String)]) throws -> String {
        func number(_ value: UInt64, _ octets: Int) -> [UInt8] {
            (0..<octets).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64($0 * 8)) }
        }
        var file = Array("btsnoop\0".utf8) + number(1, 4) + number(1002, 4)
        for (index, advertisement) in advertisements.enumerated() {
            let address = try #require(Hexadecimal.octets(advertisement.address))
            let data = try #require(Hexadecimal.octets(advertisement.data))
            let report = [0x00, 0x01] + Array(address.reversed()) + [UInt8(data.count)] + data + [0xC4]
            let packet = [0x04, 0x3E, UInt8(report.count + 2), 0x02, 0x01] + report
            let time = 0x00DC_DDB3_0F2F_8000 + 1_700_000_000_000_000 + UInt64(index) * 1_000_000
            file += number(UInt64(packet.count), 4) + number(UInt64(packet.count), 4) + number(1, 4) + number(0, 4)
            file += number(time, 8) + packet
        }
        let path = folder.path("devices.btsnoop")
        try Data(file).write(to: URL(filePath: path))
        return path
    }

    private func events(
        _ configuration: String, _ advertisements: [(address: String, data: String)]
    ) throws -> [[String: Any]] {
        let config = try folder.file("plugins.json", configuration)
        let outcome = try Program.run("replay", "--config", config, try capture(advertisements))
        #expect(outcome.status == 0, "\(outcome.errors)")
        return try outcome.lines.map(Program.object)
    }

    @Test func sensorValuesReachTheSightingsOfTheirDevice() throws {
        // Temperature 25.06 °C, humidity 50.55 %: the example of the BTHome page.
        let data = "0201060a16d2fc4002ca0903bf13"
        let events = try events(
            """
            { "beacons": [{ "alias": "cellar", "format": "device", "address": "c4:7c:8d:6a:11:22" }] }
            """, Array(repeating: ("c47c8d6a1122", data), count: 4) + [("c47c8d6a1123", data)])
        let enter = try #require(events.first)
        #expect(enter["event"] as? String == "enter")
        #expect(enter["alias"] as? String == "cellar")
        #expect(enter["format"] as? String == "device")
        #expect(enter["frame"] as? String == "bthome-v2")
        let values = try #require(enter["values"] as? [String: Double])
        #expect(values["temperature"] == 25.06)
        #expect(values["humidity"] == 50.55)
        #expect(events.allSatisfy { $0["alias"] as? String == "cellar" }, "one sighting of the other is no enter")
    }

    @Test func aBindKeyOpensWhatItsDeviceSays() throws {
        // The example of the BTHome page: 25.06 °C and 50.55 %, address 54:48:E6:8F:80:A5.
        let data = "0201061216d2fc41e445f3c9962b332211006c7c4519"
        let key = "231d39c1d7cc1ab1aee224cd096db932"
        let open = try events(
            """
            { "bind_keys": [{ "address": "54:48:e6:8f:80:a5", "key": "\(key)", "alias": "attic" }] }
            """, Array(repeating: ("5448e68f80a5", data), count: 3))
        #expect(open.first?["alias"] as? String == "attic")
        #expect((open.first?["values"] as? [String: Double])?["temperature"] == 25.06)
        let closed = try events("{}", Array(repeating: ("5448e68f80a5", data), count: 3))
        #expect(closed.first?["encrypted"] as? Bool == true)
        #expect((closed.first?["values"] as? [String: Double])?.isEmpty == true)
    }

    @Test func aRollingAddressIsOneDeviceByItsKey() throws {
        // The sample of Core 5.4, Vol 3, Part H, D.7: prand 708194, hash 0dfbaa.
        let events = try events(
            """
            { "identity_resolving_keys": [{ "alias": "phone", "key": "ec0234a357c8ad05341010a60a397d9b" }] }
            """, Array(repeating: ("7081940dfbaa", "02011a"), count: 3) + [("7081940dfbab", "02011a")])
        #expect(events.first?["event"] as? String == "enter")
        #expect(events.allSatisfy { $0["alias"] as? String == "phone" && $0["format"] as? String == "irk" })
        #expect((events.first?["irk_id"] as? String)?.count == 16)
        #expect(events.allSatisfy { !"\($0)".contains("ec0234a357c8ad05") })
    }

    @Test func aFormatFromTheConfigurationIsAFormat() throws {
        let data = "1aff180115" + "02" + "0f1e2d3c4b5a4968877a6b5c4d3e2f10" + "0007" + "0008" + "c5"
        let events = try events(
            """
            { "formats": [{ "name": "acme", "layout": "m:2-3=1502,i:4-19,i:20-21,i:22-23,p:24-24" }],
              "beacons": [{ "alias": "cart", "format": "acme", "id1": "0f1e2d3c-4b5a-4968-877a-6b5c4d3e2f10", "id2": 7,
                            "id3": 8 }] }
            """, Array(repeating: ("c00000000001", data), count: 3))
        #expect(events.first?["alias"] as? String == "cart")
        #expect(events.first?["format"] as? String == "acme")
        #expect(events.first?["id3"] as? Int == 8)
        #expect(events.first?["measured_power"] as? Int == -59)
    }
}
