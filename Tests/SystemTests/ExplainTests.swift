// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// `beacond explain` on captures and runs of which it is known what happened.
@Suite struct ExplainTests {
    private let folder: TemporaryFolder
    private static let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"

    init() throws { folder = try TemporaryFolder() }

    private let capture = Fixtures.path("captures/horizon.btsnoop")

    /// A beacon of that capture: ten advertisements in its first 12 s of 147.
    private static let rock = "494e5445-4c4c-495f-524f-434b535f4857/20594/62207"

    private func run(_ arguments: String...) throws -> Program.Outcome {
        let program = try Program(["explain"] + arguments)
        try program.start()
        return try program.finish()
    }

    /// The words behind the time of each row of the table.
    private func rows(_ outcome: Program.Outcome) -> [String] {
        outcome.lines.filter { $0.contains(#/^\d\d:\d\d:\d\d\.\d{3}  /#) }.map { String($0.dropFirst(14)) }
    }

    private func config(_ presence: String) throws -> String {
        try folder.file(
            "\(UUID().uuidString).json",
            """
            { "presence": { \(presence) },
              "beacons": [{ "alias": "rock", "uuid": "494e5445-4c4c-495f-524f-434b535f4857", "major": 20594, "minor": 62207 }],
              "regions": [{ "name": "hall", "beacons": ["rock"] },
                          { "name": "elsewhere", "uuid": "\(Self.uuid)" }] }
            """)
    }

    @Test func eachDecisionStandsWithItsReason() throws {
        let outcome = try run("rock", capture, "--config", try config("\"exit_time\": \"20s\""))
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.lines.first == "rock  (ibeacon \(Self.rock))")
        let rows = rows(outcome)
        #expect(
            rows.map { $0.split(separator: " ").first } == [
                "first", "enter", "region", "heard", "exit", "region", "the",
            ])
        #expect(rows.count == 7)
        guard rows.count == 7 else { return }
        #expect(rows[0].contains("-49 dBm"))
        #expect(rows[1].contains("20 s (fixed)"))
        #expect(rows[2].contains("region_enter hall, 1 inside"))
        #expect(rows[4].contains("not heard for 20 s, since 03:28:11.888"))
        #expect(rows[5].contains("region_exit hall, 0 inside"))
        #expect(rows[6].contains("away"))
        #expect(!outcome.output.contains("elsewhere"))
    }

    /// The same as a replay: explain decides nothing by itself.
    @Test func aRecordingOfSightingsIsTold() throws {
        func sighting(_ time: Int, rssi: Int) -> String {
            """
            {"t":\(time),"format":"ibeacon","uuid":"494e5445-4c4c-495f-524f-434b535f4857","major":20594,"minor":62207,\
            "rssi":\(rssi),"adapter":"hci1"}
            """
        }
        let lines =
            [#"{"t":1,"adapter":"hci1","window_ms":30,"interval_ms":300}"#]
            + (2...5).map { sighting($0, rssi: -60) } + [#"{"t":6,"adapter":"hci1","listening":null}"#]
            + [#"{"t":16,"adapter":"hci1","listening":true}"#, #"{"t":60}"#]
        let path = try folder.file("walk.jsonl", lines.joined(separator: "\n") + "\n")
        let outcome = try run("rock", path, "--config", try config("\"exit_time\": \"20s\""))
        #expect(outcome.status == 0, "\(outcome.errors)")
        let rows = rows(outcome)
        #expect(rows.contains { $0.contains("hci1 listens 30 ms of 300 ms") }, "\(outcome.output)")
        #expect(rows.contains { $0.contains("hci1 is blind") })
        #expect(rows.contains { $0.contains("enter") && $0.contains("heard often enough") })
        #expect(rows.contains { $0.contains("not heard for 30 s") }, "10 s of them nobody listened")
        #expect(rows.last?.contains("not tracked") == true)
        let broken = try folder.file("broken.jsonl", sighting(2, rssi: -60) + "\n{\"t\":1}\n")
        let refused = try run("rock", broken, "--config", try config("\"exit_time\": \"20s\""))
        #expect(refused.status == 66)
        #expect(refused.errors.contains("broken.jsonl:2: \"t\" is earlier"), "\(refused.errors)")
    }

    @Test func itDecidesAsAReplay() throws {
        for presence in ["\"exit_time\": \"3s\"", "\"exit_time\": \"20s\"", "\"false_exits\": \"1/day\""] {
            let config = try config(presence)
            let replay = try Program.run("replay", capture, "--config", config)
            let transitions = try replay.lines.map(Program.object).filter {
                $0["alias"] as? String == "rock" && ["enter", "exit"].contains($0["event"] as? String)
            }
            let expected = transitions.map {
                "\(($0["time"] as? String ?? "").dropFirst(11).dropLast()) \($0["event"] as? String ?? "")"
            }
            let lines = try run("rock", capture, "--config", config).lines
            let found = lines.compactMap { line in
                line.firstMatch(of: #/^(\d\d:\d\d:\d\d\.\d{3})  (enter|exit) /#).map { "\($0.1) \($0.2)" }
            }
            // A replay ends with its last sighting; packets behind it that are none still let an exit become due.
            #expect(found.starts(with: expected) && !expected.isEmpty, "\(presence): \(found), \(expected)")
            #expect(found.dropFirst(expected.count).allSatisfy { $0.hasSuffix("exit") }, "\(found)")
        }
    }

    @Test func aCandidateThatIsForgottenIsTold() throws {
        let outcome = try run(Self.rock, capture, "--config", try config("\"enter_count\": 50, \"enter_gap\": \"3s\""))
        #expect(outcome.status == 0, "\(outcome.errors)")
        let rows = rows(outcome)
        #expect(rows.contains { $0.hasPrefix("forgotten") && $0.contains("(enter_gap)") }, "\(outcome.output)")
        #expect(!rows.contains { $0.hasPrefix("enter ") || $0.hasPrefix("exit ") })
        #expect(rows.contains { $0.contains("enters with its sighting number 50") })
    }

    @Test func aRecordedRunIsToldAsItWas() throws {
        let path = try folder.file("run.jsonl", Self.recordedRun)
        let outcome = try run("keys", path)
        #expect(outcome.status == 0, "\(outcome.errors)")
        let rows = rows(outcome)
        #expect(
            rows.map { $0.split(separator: " ").first.map(String.init) } == [
                "radio", "enter", "region", "radio", "radio", "exit", "region", "the",
            ], "\(outcome.output)")
        #expect(outcome.output.contains("sim0 blind; no radio listens"))
        #expect(outcome.output.contains("12 s (data)"))
        #expect(outcome.output.contains("at most 1 asked, 0.4 expected"))
        #expect(outcome.output.contains("note: lines that are no events: 1"))
        let plot = folder.path("keys.svg")
        #expect(try run("keys", path, "--plot", plot).status == 0)
        let shapes = try elements(of: plot)
        #expect(shapes.contains { $0.name == "rect" && $0.style == "blind" && $0.width > 50 })
    }

    private static let recordedRun: String = {
        func line(_ event: String, _ time: String, _ rest: String) -> String {
            "{\"event\":\"\(event)\",\"time\":\"2026-11-30T23:59:\(time)Z\",\"v\":1,\"gateway\":\"g\",\(rest)}\n"
        }
        let beacon =
            "\"format\":\"ibeacon\",\"uuid\":\"\(uuid)\",\"major\":1,\"minor\":1,\"alias\":\"keys\",\"address\":null,\"adapter\":\"sim0\",\"rssi\":-60,\"rssi_filtered\":-60.5,\"rssi_min\":-62,\"rssi_max\":-58,\"count\":2"
        let end =
            ",\"last_seen\":\"2026-11-30T23:59:32.000Z\",\"exit_time\":12.000,\"reason\":\"timeout\",\"limited_by\":\"data\",\"false_exits_asked\":1,\"false_exits_expected\":0.4"
        return line("adapter", "00.000", "\"adapter\":\"sim0\",\"state\":\"scanning\"")
            + line("enter", "01.000", beacon)
            + line("region_enter", "01.001", "\"region\":\"hall\",\"inside\":1")
            + line("region_enter", "09.000", "\"region\":\"other\",\"inside\":1")
            + line("adapter", "10.000", "\"adapter\":\"sim0\",\"state\":\"blind\"") + "not an event\n"
            + line("adapter", "30.000", "\"adapter\":\"sim0\",\"state\":\"scanning\"")
            + line("sighting", "32.000", beacon) + line("exit", "44.000", beacon + end)
            + line("region_exit", "44.000", "\"region\":\"hall\",\"inside\":0")
    }()

    // MARK: The plot

    private struct Shape {
        var name: String
        var style: String
        var width: Double
    }

    /// The shapes of a drawing, of which each stands on a line.
    private func elements(of path: String) throws -> [Shape] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").compactMap { line in
            guard let match = line.firstMatch(of: #/^<(\w+) class="([a-z]*)"/#) else { return nil }
            let width = line.firstMatch(of: #/ width="([0-9.]+)"/#).flatMap { Double($0.1) }
            return Shape(name: String(match.1), style: String(match.2), width: width ?? 0)
        }
    }

    @Test func thePlotIsOneFileOfItsOwn() throws {
        let path = folder.path("rock.svg")
        let config = try config("\"exit_time\": \"20s\"")
        #expect(try run("rock", capture, "--config", config, "--plot", path).status == 0)
        let shapes = try elements(of: path)
        #expect(shapes.count { $0.name == "polyline" && $0.style == "filtered" } == 1)
        #expect(shapes.count { $0.name == "polyline" && $0.style == "silence" } == 1)
        #expect(shapes.contains { $0.name == "polyline" && $0.style == "exit" })
        let text = try String(contentsOfFile: path, encoding: .utf8)
        for words in [
            "signal strength (dBm)", "not heard for (s)", "2021-02-01, UTC", ">enter<", ">exit<",
            "prefers-color-scheme",
        ] {
            #expect(text.contains(words), "\(words)")
        }
        #expect(!text.contains("href") && !text.contains("<script"))
        #expect(try run("rock", capture, "--config", config, "--plot", path).status == 74, "it is kept")
        #expect(try run("rock", capture, "--config", config, "--plot", path, "--force").status == 0)
        let page = folder.path("rock.html")
        #expect(try run("rock", capture, "--config", config, "--plot", page).status == 0)
        let html = try String(contentsOfFile: page, encoding: .utf8)
        #expect(html.hasPrefix("<!DOCTYPE html>") && html.contains("<svg") && html.contains("region_exit hall"))
    }

    @Test func aNameIsNoMarkup() throws {
        let run = Self.recordedRun.replacingOccurrences(of: "\"keys\"", with: "\"<b>&keys\\u001b[2J\"")
        let path = try folder.file("run.jsonl", run)
        let plot = folder.path("keys.html")
        let outcome = try self.run("\(Self.uuid)/1/1", path, "--plot", plot)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(!outcome.output.contains("\u{1B}"))
        let html = try String(contentsOfFile: plot, encoding: .utf8)
        #expect(!html.contains("<b>") && html.contains("&lt;b&gt;&amp;keys") && !html.contains("\u{1B}"))
    }

    // MARK: What is wrong

    @Test func whatIsWrongIsSaid() throws {
        let unknown = try run("keys", capture)
        #expect(unknown.status == 1)
        #expect(unknown.errors.contains("no beacon \"keys\" in it; there are ibeacon 494e5445"))
        #expect(try run("keys", folder.path("none")).status == 66)
        let text = try run("keys", try folder.file("text", "hello\nworld\n"))
        #expect(text.status == 66)
        #expect(text.errors.contains("neither a btsnoop capture nor events"))
        #expect(try run("keys", try folder.file("empty", "")).status == 66)
        #expect(try run("keys", try folder.file("cut", "btsnoop\0")).status == 66)
        #expect(try run("keys", capture, "--plot", "a.png").status == 64)
        #expect(try run("keys").status == 64)
    }

    @Test(arguments: ["1e300", "-1e300", "9223372036854775807", "-9223372036854775808", "1e-300"])
    func strangeNumbersAreNoTrap(number: String) throws {
        var lines = Self.recordedRun
        for value in ["-60.5", "-60", "-62", "-58", "12.000", "0.4", "\"count\":2"] {
            lines += Self.recordedRun.replacingOccurrences(
                of: value, with: value.hasPrefix("\"") ? "\"count\":\(number)" : number)
        }
        let outcome = try run("keys", try folder.file("run.jsonl", lines), "--plot", folder.path("a.svg"))
        #expect(outcome.status == 0, "\(outcome.errors)")
    }

    @Test(arguments: [
        "9999-99-99T99:99:99.999Z", "0000-01-01T00:00:00.000Z", "2026-11-30", "é026-11-30T23:59:59.000Z",
        "+999-12-31T23:59:60Z",
    ])
    func strangeTimesAreNoTrap(time: String) throws {
        let lines =
            Self.recordedRun + "{\"event\":\"adapter\",\"time\":\"\(time)\",\"adapter\":\"a\",\"state\":\"scanning\"}\n"
        let outcome = try run("keys", try folder.file("run.jsonl", lines), "--plot", folder.path("a.svg"))
        #expect(outcome.status == 0, "\(outcome.errors)")
    }
}
