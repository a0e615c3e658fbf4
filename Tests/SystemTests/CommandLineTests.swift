// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@Suite struct CommandLineTests {
    // MARK: Help and usage

    @Test func helpIsThereForAStranger() throws {
        let overview = try Program.run("--help")
        #expect(overview.status == 0)
        for command in [
            "run", "replay", "decode", "check", "sample", "schema", "sinks", "scan", "state", "reload", "adapters",
            "doctor", "record", "advertise", "calibrate", "explain",
        ] {
            #expect(overview.output.contains("\n  \(command) "))
            let help = try Program.run(command, "--help")
            #expect(help.status == 0)
            #expect(help.output.hasPrefix("Usage: beacond \(command)"))
            #expect(help.errors.isEmpty)
        }
        #expect(try Program.run("--version").output.hasPrefix("beacond "))
    }

    @Test(arguments: [
        (["nope"], "unknown command \"nope\""),
        (["replai", "x"], "did you mean \"replay\"?"),
        ([], "no command given"),
        (["replay"], "expected FILE"),
        (["replay", "a", "b"], "unexpected \"b\""),
        (["replay", "--emitt", "events", "a"], "did you mean --emit?"),
        (["replay", "--emit", "beacons", "a"], "expected one of reports, sightings, events"),
        (["replay", "--emit"], "--emit needs a value"),
        (["replay", "--emit", "reports", "--sink", "null", "a"], "--sink takes events"),
        (["run", "--duration", "10"], "expected a time with its unit"),
        (["run", "--sink", "mqt", "--source", "hci:0"], "did you mean \"mqtt\"?"),
        (["sample", "mqt"], "unknown kind \"mqt\""),
        (["schema", "--markdown=1"], "--markdown takes no value"),
        (["scan", "--duration", "0s"], "expected a time with its unit"),
        (["scan", "--uuid", "7"], "expected a UUID"),
        (["scan", "--major", "65536"], "expected a whole number from 0 to 65535"),
        (["scan", "--rssi", "-200"], "expected a whole number from -128 to 127"),
        (["record"], "expected FILE"),
        (["advertise", "--major", "1", "--minor", "1"], "--uuid, --major and --minor must be given"),
        (
            [
                "advertise", "--uuid", "fda50693-a4e2-4fb1-afcf-c6eb07647825", "--major", "1", "--minor", "1",
                "--interval", "10ms",
            ], "expected 20ms to 10.24s"
        ),
        (
            [
                "advertise", "--uuid", "fda50693-a4e2-4fb1-afcf-c6eb07647825", "--major", "1", "--minor", "1",
                "--source", "simulate:a",
            ], "only an adapter such as hci:0 can advertise"
        ),
    ])
    func wrongUseIsExplained(arguments: [String], message: String) throws {
        let program = try Program(arguments)
        try program.start()
        let outcome = try program.finish()
        #expect(outcome.status == 64)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors.hasPrefix("beacond: "))
        #expect(outcome.errors.contains(message), "\(outcome.errors)")
    }

    @Test func sinksAreListed() throws {
        let lines = try Program.run("sinks").lines
        #expect(lines.map { $0.prefix { $0 != " " } } == ["stdout", "json", "mqtt", "null"])
    }

    // MARK: Configuration

    @Test func theExampleAtTheTopIsValid() throws {
        let outcome = try Program.run("check", Fixtures.repository.appending(path: "plugins.json").path)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("valid"))
    }

    @Test(arguments: [nil, "stdout", "json", "mqtt", "null"])
    func theSampleIsValid(kind: String?) throws {
        let folder = try TemporaryFolder()
        let sample = try kind.map { try Program.run("sample", $0) } ?? Program.run("sample")
        let outcome = try Program.run("check", try folder.file("plugins.json", sample.output))
        #expect(outcome.status == 0, "\(outcome.errors)")
    }

    @Test func allProblemsAreToldAtOnceWithTheirPlaces() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file(
            "plugins.json",
            """
            {
              "presence": { "exit_time": 20, "entr_count": 1 },
              "sinks": [
                { "kind": "mqtt", "config": { "hots": "a", "port": 70000 } },
                { "kind": "kafka" }
              ]
            }
            """)
        let outcome = try Program.run("check", file)
        #expect(outcome.status == 78)
        let lines = outcome.errors.split(separator: "\n").map(String.init)
        #expect(lines.count == 5, "\(outcome.errors)")
        for (line, part) in zip(
            lines,
            [
                ":2: $.presence.exit_time: ", ":2: $.presence.entr_count: unknown key; did you mean \"enter_count\"?",
                ":4: $.sinks[0].config.hots: unknown key; did you mean \"host\"?", ":4: $.sinks[0].config.port: ",
                ":5: $.sinks[1].kind: ",
            ])
        {
            #expect(line.contains(part), "\(line)")
        }
    }

    @Test func aMissingFileIsMissingInput() throws {
        #expect(try Program.run("check", "/nonexistent/plugins.json").status == 66)
        #expect(try Program.run("replay", "/nonexistent/a.btsnoop").status == 66)
        #expect(try Program.run("run", "--config", "/nonexistent/plugins.json").status == 66)
        let outcome = try Program.run("run", "--source", "btsnoop:/nonexistent/a", "--sink", "null")
        #expect(outcome.status == 66)
        #expect(outcome.errors.contains("/nonexistent/a: No such file or directory"))
    }

    @Test func theTablesOfThePageAreCurrent() throws {
        let page = try String(
            contentsOf: Fixtures.repository.appending(path: "docs/configuration.md"), encoding: .utf8)
        let tables = try Program.run("schema", "--markdown").output
        #expect(page.contains("<!-- keys -->\n\(tables)<!-- end of keys -->"), "run make reference")
    }

    @Test func theSchemaIsJSON() throws {
        let schema = try Program.object(try Program.run("schema").output)
        #expect(schema["$schema"] as? String == "https://json-schema.org/draft/2020-12/schema")
    }

    // MARK: Formats and keys of the configuration

    @Test func formatsOfTheFileAreDecoded() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file(
            "plugins.json", #"{"formats": [{"name": "asset-tag", "layout": "m:2-3=a5a5,i:4-7,p:8-8"}]}"#)
        let frame = "0aff1234a5a500112233c5"
        let outcome = try Program.run("decode", "--config", file, input: "\(frame)\n")
        let frames = try #require(try Program.object(outcome.output)["frames"] as? [[String: Any]])
        #expect(frames.first?["format"] as? String == "asset-tag")
        #expect(frames.first?["id1"] as? String == "00112233")
        let plain = try #require(
            try Program.object(try Program.run("decode", input: frame).output)["frames"] as? [[String: Any]])
        #expect(!plain.contains { $0["format"] as? String == "asset-tag" })
        #expect(try Program.run("decode", "--config", "/nonexistent/plugins.json", input: frame).status == 66)
    }

    @Test func aMistakeInALayoutIsToldWithItsColumn() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file(
            "plugins.json", "{\n\"formats\": [{\"name\": \"tag\", \"layout\": \"m:2-3=a5a5,i:4,p:8-8\"}]}")
        let outcome = try Program.run("check", file)
        #expect(outcome.status == 78)
        #expect(
            outcome.errors.hasSuffix(
                ":2: $.formats[0].layout: column 15: expected \"-\" between the first and the last offset\n"),
            "\(outcome.errors)")
    }

    @Test func aFileWithKeysThatOthersCanReadIsUnwise() throws {
        let folder = try TemporaryFolder()
        let key = "ec0234a357c8ad05341010a60a397d9b"
        let file = try folder.file(
            "plugins.json", #"{"identity_resolving_keys": [{"alias": "phone", "key": "\#(key)"}]}"#)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        let check = try Program.run("check", file)
        #expect(check.status == 0)
        #expect(check.output.hasPrefix("warning: \(file) holds keys"), "\(check.output)")
        #expect(check.output.contains("valid: 1 source, 1 beacon"))
        let run = try Program.run(
            "run", "--config", file, "--source", "btsnoop:\(Fixtures.path("captures/horizon.btsnoop"))", "--sink",
            "null", "--duration", "100ms")
        #expect(run.errors.contains("<4>\(file) holds keys"), "\(run.errors)")
        #expect(!(check.output + run.errors).contains(key))
    }

    /// The numbers of formats hold for the life of the process.
    @Test(arguments: [
        (#"{"name": "tag", "layout": "m:2-3=a5a5,i:4-7,p:8-8"}"#, "the configuration was read again"),
        (#"{"name": "tag", "layout": "m:2-3=a5a5,i:4-6,p:8-8"}"#, "the formats have changed, which needs a restart"),
        (#"{"name": "gat", "layout": "m:2-3=a5a5,i:4-7,p:8-8"}"#, "the formats have changed, which needs a restart"),
    ])
    func changedFormatsNeedARestart(format: String, message: String) throws {
        let folder = try TemporaryFolder()
        func write(_ format: String) throws -> String {
            try folder.file("plugins.json", #"{"gateway": {"id": "g"}, "formats": [\#(format)], "log_level": "info"}"#)
        }
        let file = try write(#"{"name": "tag", "layout": "m:2-3=a5a5,i:4-7,p:8-8"}"#)
        let program = try Program([
            "run", "--config", file, "--source", "simulate:\(Fixtures.path("scenarios/demo.json"))", "--sink", "json",
        ])
        try program.start()
        let deadline = Date(timeIntervalSinceNow: 20)
        while try program.outputSoFar().isEmpty, Date() < deadline { usleep(20_000) }
        _ = try write(format)
        // The lower number is taken first.
        kill(program.process.processIdentifier, SIGHUP)
        kill(program.process.processIdentifier, SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains(message), "\(outcome.errors)")
    }

    // MARK: Decoding

    @Test func decodingGoesOnBehindABadLine() throws {
        let outcome = try Program.run(
            "decode",
            input: """
                1aff4c000215f7826da64fa24e988024bc5b71e0893e00010002c5
                xyz
                123

                {"kind": "hci-event", "hex": "043e0c02010400b30b7c8fe25800d4"}
                {"kind": "hci-event"}
                {"kind": "wav", "hex": "00"}
                {"hex": 7}
                {broken
                {"kind": "hci-sequence", "hex": ["043e0c02010400b30b7c8fe25800d4", "043e02"]}
                02 01
                """)
        #expect(outcome.status == 0)
        let answers = try outcome.lines.map(Program.object)
        try #require(answers.count == 10)
        #expect((answers[0]["frames"] as? [[String: Any]])?.first?["minor"] as? Int == 2)
        #expect(answers[1]["error"] as? String == "expected an even number of hexadecimal digits")
        #expect((answers[3]["reports"] as? [[String: Any]])?.first?["address"] as? String == "58:e2:8f:7c:0b:b3")
        #expect((answers[8]["malformed"] as? [String: Int]) == ["truncated_packet": 1])
        for index in [1, 2, 4, 5, 6, 7, 9] { #expect(answers[index]["error"] is String, "line \(index)") }
    }

    @Test func theVectorsComeOutOfTheProgram() throws {
        let vectors = try ["vectors.jsonl", "vectors-more.jsonl"].flatMap(Fixtures.lines).map(Program.object)
        let lines = try vectors.map { vector in
            String(
                decoding: try JSONSerialization.data(withJSONObject: [
                    "kind": vector["kind"] as Any, "hex": vector["hex"] as Any,
                ]), as: UTF8.self)
        }
        // An empty payload is an empty text, which the JSON form can say.
        let answers = try Program.run("decode", input: lines.joined(separator: "\n")).lines.map(Program.object)
        try #require(answers.count == vectors.count)
        for (vector, answer) in zip(vectors, answers) {
            let expect = try #require(vector["expect"] as? [String: Any])
            let expected = Fixtures.expectedFrames(vector).map(Self.withoutKey)
            let frames = try #require(answer["frames"] as? [[String: Any]]).filter {
                Fixtures.otherFormat(vector) != $0["format"] as? String
            }
            #expect(frames as NSArray == expected as NSArray, "\(vector["id"] ?? "")")
            if let ad = expect["ad"] as? NSArray { #expect((answer["ad"] as? NSArray) == ad, "\(vector["id"] ?? "")") }
        }
    }

    /// Lines are read in place: ends of every kind, lines that the reads of the pipe cut, and one longer than its buffer.
    @Test func linesAreReadWhole() throws {
        let frame = "1aff4c000215f7826da64fa24e988024bc5b71e0893e00010002c5"
        let answer = try Program.run("decode", input: frame).output
        let padded = String(repeating: " ", count: 100_000) + frame
        let lines = ["\r", "\t\(frame)\r", padded, "  "] + Array(repeating: frame, count: 3000) + [frame]
        let outcome = try Program.run("decode", input: lines.joined(separator: "\n"))
        #expect(outcome.status == 0)
        #expect(outcome.output == String(repeating: answer, count: 3003))
        let endless = try Program.run("decode", input: String(repeating: "0", count: 3_000_000))
        #expect(endless.status == 66)
        #expect(endless.errors.contains("a line is longer than"))
    }

    /// The program is given no bind keys: what they open stays out.
    private static func withoutKey(_ frame: [String: Any]) -> [String: Any] {
        guard frame["bindkey"] != nil else { return frame }
        let closed: [String: Any] = ["values": [:], "binary": [:], "events": [:]]
        return frame.filter { !["bindkey", "address"].contains($0.key) }.merging(closed) { $1 }
    }

    @Test func whatIsNoBeaconIsToldToo() throws {
        // A name, a transmit power, Apple's nearby info, and an iBeacon that claims +26 dBm at 1 m.
        let answers = try Program.run(
            "decode",
            input: """
                02011a020a050aff4c0010050a1c77f95b0409466f6f03190003
                1aff4c000215fda50693a4e24fb1afcfc6eb07647825000100021a
                """
        ).lines.map(Program.object)
        try #require(answers.count == 2)
        #expect(
            answers[0]["kinds"] as? NSArray == [["kind": "apple-continuity", "types": ["nearby-info"]]] as NSArray)
        #expect(
            answers[0]["device"] as? NSDictionary == [
                "flags": 26, "name": "Foo", "tx_power_level": 5, "appearance": 768,
                "manufacturer_data": ["004c": "10050a1c77f95b"],
            ])
        #expect(answers[0]["implausible_power"] == nil)
        #expect(answers[1]["kinds"] as? NSArray == [])
        #expect(answers[1]["implausible_power"] as? [Int] == [0])
    }
}
