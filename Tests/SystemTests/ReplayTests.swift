// SPDX-License-Identifier: Apache-2.0

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
