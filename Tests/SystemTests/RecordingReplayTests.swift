// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// `beacond replay` of JSON lines: sightings, what the radios do, and the time.
@Suite struct RecordingReplayTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let uuid = "fda50693-a4e2-4fb1-afcf-c6eb07647825"

    private func sighting(_ time: Double, minor: Int = 2, adapter: String = "hci0", more: String = "") -> String {
        """
        {"t":\(time),"format":"ibeacon","uuid":"\(Self.uuid)","major":1,"minor":\(minor),"rssi":-70,\
        "adapter":"\(adapter)"\(more)}
        """
    }

    private func replay(
        _ lines: [String], presence: String = #""exit_time": "20s", "enter_count": 1"#, emit: String = "events"
    ) throws -> Program.Outcome {
        let config = try folder.file("plugins.json", "{ \"presence\": { \(presence) } }")
        let path = try folder.file("recording.jsonl", lines.joined(separator: "\n") + "\n")
        return try Program.run("replay", "--config", config, "--emit", emit, path)
    }

    private func transitions(_ lines: [String], presence: String? = nil) throws -> [String] {
        let outcome =
            if let presence { try replay(lines, presence: presence) } else { try replay(lines) }
        #expect(outcome.status == 0, "\(outcome.errors)")
        return try outcome.lines.compactMap {
            let event = try Program.object($0)
            let kind = try #require(event["event"] as? String)
            return kind == "sighting" ? nil : "\(kind) \(try #require(event["t"] as? Double))"
        }
    }

    @Test func theLastLineMovesTheClockToTheEnd() throws {
        let heard = (0..<4).map { sighting(12.5 + Double($0)) }
        #expect(try transitions(heard) == ["enter 12.5"])
        #expect(try transitions(heard + [#"{"t":35.499}"#]) == ["enter 12.5"])
        #expect(try transitions(heard + [#"{"t":35.5}"#]) == ["enter 12.5", "exit 35.5"])
        #expect(try transitions(heard + ["", #"{"t":9000000000}"#]) == ["enter 12.5", "exit 35.5"])
    }

    @Test func aPauseOfTheRadioIsNoSilence() throws {
        let off = #"{"t":10,"adapter":"hci0","listening":0}"#
        let on = #"{"t":110,"adapter":"hci0","listening":1}"#
        #expect(try transitions([sighting(10), off, on, #"{"t":200}"#]) == ["enter 10.0", "exit 130.0"])
        let other = #"{"t":10,"adapter":"hci1","listening":1}"#
        #expect(
            try transitions([sighting(10), other, off, #"{"t":200}"#]) == ["enter 10.0", "exit 30.0"],
            "the other radio listens")
    }

    @Test func whatARadioReportsIsCorrected() throws {
        let config = try folder.file(
            "plugins.json",
            """
            { "sources": ["hci:0", "hci:1"], "presence": { "report_interval": "0s", "enter_count": 1 },
              "adapters": [{ "name": "hci1", "rssi_offset": -6 }] }
            """)
        let lines = [
            sighting(1), sighting(2, adapter: "hci1"), sighting(3, adapter: "hci1").replacing("-70", with: "-125"),
        ]
        let path = try folder.file("recording.jsonl", lines.joined(separator: "\n") + "\n")
        for what in ["events", "sightings"] {
            let outcome = try Program.run("replay", "--config", config, "--emit", what, path)
            #expect(outcome.status == 0, "\(outcome.errors)")
            let heard = try outcome.lines.map(Program.object).filter { $0["event"] as? String != "proximity" }
            #expect(heard.compactMap { $0["rssi"] as? Int } == [-70, -76, -127], "\(what): \(outcome.output)")
        }
    }

    @Test func aBlindRadioSeesNobodyLeave() throws {
        let blind = #"{"t":11,"adapter":"hci0","listening":null}"#
        let sees = #"{"t":71,"adapter":"hci0","listening":true}"#
        #expect(try transitions([sighting(10), blind, #"{"t":70}"#]) == ["enter 10.0"])
        #expect(try transitions([sighting(10), blind, sees, #"{"t":95}"#]) == ["enter 10.0", "exit 90.0"])
    }

    @Test func aWindowIsTakenUpAgainAfterAPause() throws {
        let duty = #"{"t":0,"adapter":"hci0","window_ms":30,"interval_ms":300}"#
        let pause = [#"{"t":5,"adapter":"hci0","listening":0}"#, #"{"t":6,"adapter":"hci0","listening":1}"#]
        let heard = (0..<20).map { sighting(7 + Double($0) * 3) }
        let again = #"{"t":6.5,"adapter":"hci0","window_ms":30,"interval_ms":300}"#
        let end = #"{"t":4000}"#
        let presence = #""false_exits": "1/day""#
        let resumed = try transitions([duty] + pause + heard + [end], presence: presence)
        #expect(try transitions([duty] + pause + [again] + heard + [end], presence: presence) == resumed)
        let unbroken = try transitions(heard + [end], presence: presence)
        #expect(unbroken != resumed, "a radio that listens a tenth of the time learns less of a silence")
    }

    /// Identities are spelled as events and `decode` spell them, and come out as they went in.
    @Test(arguments: [
        #""format":"ibeacon","uuid":"fda50693-a4e2-4fb1-afcf-c6eb07647825","major":1,"minor":65535"#,
        #""format":"altbeacon","id1":"00112233445566778899aabbccddeeff","id2":1,"id3":2"#,
        #""format":"eddystone-uid","namespace":"00112233445566778899","instance":"aabbccddeeff""#,
        #""format":"eddystone-url","url":"https://example.com/""#,
        #""format":"device","address":"c4:7c:8d:6a:11:22""#,
        #""format":"irk","irk_id":"0011223344556677""#,
    ])
    func everyFormatHasItsIdentity(identity: String) throws {
        let outcome = try replay(
            [#"{"t":1,"# + identity + #","rssi":-70,"measured_power":-59,"adapter":"hci0"}"#], emit: "sightings")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let event = try Program.object(try #require(outcome.lines.first))
        for (key, value) in try Program.object("{\(identity)}") {
            let spelled = event[key] as? NSObject
            let isIdentifier = key == "id1"
            if isIdentifier {
                let digits = (spelled as? String)?.replacing("-", with: "")
                #expect(digits == value as? String)
            } else {
                #expect(spelled == value as? NSObject, "\(key)")
            }
        }
        #expect(event["t"] as? Double == 1)
        #expect(event["time"] as? String == "1970-01-01T00:00:01.000Z")
        #expect(event["measured_power"] as? Int == -59)
    }

    @Test(arguments: [
        (#"{"t":0,"#, "column"),
        ("[1]", "expected an object"),
        ("{}", "\"t\": expected seconds"),
        (#"{"t":-1}"#, "\"t\": expected seconds"),
        (#"{"t":1e300}"#, "\"t\": expected seconds"),
        (#"{"t":"1"}"#, "\"t\": expected seconds"),
        (#"{"t":0.5}"#, "earlier than in the line before"),
        (#"{"t":2,"adapter":"hci0"}"#, "nothing is said of \"adapter\""),
        (#"{"t":2,"listening":1}"#, "needs \"adapter\""),
        (#"{"t":2,"adapter":"hci0","listening":2}"#, "\"listening\": expected 1, 0"),
        (#"{"t":2,"adapter":"hci0","window_ms":30}"#, "\"interval_ms\": expected milliseconds"),
        (#"{"t":2,"adapter":"hci0","window_ms":31,"interval_ms":30}"#, "no more than \"interval_ms\""),
        (#"{"t":2,"format":"nobody","adapter":"hci0"}"#, "\"format\": expected one of \"ibeacon\""),
        (#"{"t":2,"format":"eddystone-tlm","adapter":"hci0"}"#, "name no beacon"),
        (#"{"t":2,"format":"ibeacon","adapter":"hci0"}"#, "needs \"uuid\""),
        (#"{"t":2,"format":"device","address":"c4:7c:8d:6a:11:22"}"#, "\"adapter\": expected a name"),
        (#"{"t":2,"format":"device","address":"c4:7c","adapter":"hci0"}"#, "\"address\" is not as beacons"),
        (#"{"t":2,"format":"irk","irk_id":"00","adapter":"hci0"}"#, "\"irk_id\" is not as beacons"),
        (
            #"{"t":2,"format":"device","address":"c4:7c:8d:6a:11:22","adapter":"hci0","rssi":40}"#,
            "\"rssi\": expected dBm"
        ),
    ])
    func aBadLineIsNamed(line: String, message: String) throws {
        let outcome = try replay([sighting(1), line, sighting(3)])
        #expect(outcome.status == 66)
        #expect(outcome.errors.contains("recording.jsonl:2: "), "\(outcome.errors)")
        #expect(outcome.errors.contains(message), "\(outcome.errors)")
        #expect(outcome.lines.count == 1, "what stands before it is replayed")
    }

    @Test func anUnmeasuredStrengthIsAPresentBeacon() throws {
        let line = #"{"t":1,"format":"device","address":"c4:7c:8d:6a:11:22","adapter":"hci0","rssi":127}"#
        let event = try Program.object(try #require(try replay([line]).lines.first))
        #expect(event["event"] as? String == "enter")
        #expect(event["rssi"] is NSNull)
    }

    @Test func aCaptureIsNeededForReports() throws {
        let outcome = try replay([sighting(1)], emit: "reports")
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("needs a capture"))
    }

    /// Lines that were changed at random give events or a message, never a trap.
    @Test(arguments: 1...4 as ClosedRange<UInt64>) func changedLinesNeverTrap(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let good = [
            sighting(1, more: #","measured_power":-59,"address":"c4:7c:8d:6a:11:22""#),
            #"{"t":2,"adapter":"hci0","window_ms":30,"interval_ms":300}"#,
            #"{"t":3,"adapter":"hci0","listening":null}"#,
            sighting(4), #"{"t":5,"adapter":"hci0","listening":1}"#, #"{"t":100}"#,
        ]
        let pieces = Array(#"{}[]",:-0123456789.eEnulltrue\u"#.utf8)
        for _ in 0..<25 {
            var text = Array(good.joined(separator: "\n").utf8)
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0..<text.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text[place] = pieces.randomElement(using: &random) ?? 0
                case 1: text.remove(at: place)
                default: text.insert(UInt8.random(in: 0...255, using: &random), at: place)
                }
            }
            let path = folder.path("changed.jsonl")
            try Data(text).write(to: URL(filePath: path))
            let outcome = try Program.run("replay", path)
            #expect([0, 66].contains(outcome.status), "seed \(seed): \(outcome.errors)")
        }
    }
}
