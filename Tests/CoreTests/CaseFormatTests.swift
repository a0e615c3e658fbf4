// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Foundation
import HCI
import TestSupport
import Testing

/// The bug reports of `Tests/Fixtures/cases.jsonl` that hold a payload: what others got wrong comes out right.
@Suite struct CaseFormatTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let id: String
        let kind: String
        let packets: [[UInt8]]
        /// The right answer as JSON.
        let right: String

        var testDescription: String { id }

        static let all: [Case] = {
            do { return try Fixtures.lines("cases.jsonl").compactMap(Case.init) } catch { return [] }
        }()

        init?(line: String) throws {
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let input = try #require(object["input"] as? [String: Any])
            guard let kind = input["kind"] as? String, ["adv-data", "hci-event", "hci-sequence"].contains(kind) else {
                return nil
            }
            self.kind = kind
            id = try #require(object["id"] as? String)
            let texts = input["hex"] as? [String] ?? (input["hex"] as? String).map { [$0] } ?? []
            packets = try texts.map { try #require(Hexadecimal.octets($0)) }
            right = try canonical(try #require(object["right"]))
        }
    }

    @Test func allAreRead() { #expect(Case.all.count == 8) }

    @Test(arguments: Case.all)
    func isRight(_ item: Case) throws {
        let right = try #require(try JSONSerialization.jsonObject(with: Data(item.right.utf8)) as? [String: Any])
        var found = try findings(item)
        if let expected = right["reports"] as? [[String: Any]] {
            let reports = try #require(found["reports"] as? [[String: Any]])
            #expect(reports as NSArray == expected as NSArray)
            return
        }
        // Two of the answers are spelled in another unit or place than ours.
        if let tenths = found["uptime_ds"] as? Double { found["uptime_s"] = tenths / 10 }
        for (key, value) in right {
            #expect(found[key] as? NSObject == value as? NSObject, "\(key)")
        }
    }

    /// The members of the first frame, and what there is to know of reports and devices around it.
    private func findings(_ item: Case) throws -> [String: Any] {
        var advertisements: [[UInt8]] = []
        var reports: [[String: Any]] = []
        var parser = AdvertisingReportParser()
        for packet in item.packets {
            guard item.kind != "adv-data" else {
                advertisements.append(packet)
                continue
            }
            parser.parse(packet.span, at: .zero) { report, data in
                let octets = data.indices.map { data[$0] }
                advertisements.append(octets)
                var writer = JSONWriter()
                writer.address(report.address)
                reports.append([
                    "event_type": Int(report.eventType.rawValue), "address_type": Int(report.address.kind.rawValue),
                    "address": String(writer.text.dropFirst().dropLast()), "rssi": Int(report.rssi ?? 127),
                    "data": Hexadecimal.text(octets),
                ])
            }
        }
        let frames = try advertisements.flatMap { try decodedFrames($0) }
        var found: [String: Any] = ["reports": reports]
        if let first = frames.first {
            #expect(frames.count == 1)
            found.merge(
                try #require(try JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any])
            ) { $1 }
        }
        found["address"] = reports.first?["address"]
        found["rssi"] = reports.first?["rssi"]
        var companies: [String] = []
        for data in advertisements {
            var writer = JSONWriter()
            DeviceInformation.write(data.span, into: &writer)
            let device = try #require(try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String: Any])
            companies += ((device["manufacturer_data"] as? [String: String]) ?? [:]).keys
            if let power = device["tx_power_level"] { found["tx_power_level"] = power }
        }
        found["both_manufacturer_entries"] = companies
        return found
    }
}
