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
            "doctor", "record", "advertise",
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
        let vectors = try Fixtures.lines("vectors.jsonl").map(Program.object)
        let lines = try vectors.map { vector in
            String(
                decoding: try JSONSerialization.data(withJSONObject: [
                    "kind": vector["kind"] as Any, "hex": vector["hex"] as Any,
                ]), as: UTF8.self)
        }
        // An empty payload is an empty text, which the JSON form can say.
        let answers = try Program.run("decode", input: lines.joined(separator: "\n")).lines.map(Program.object)
        try #require(answers.count == vectors.count)
        let known = ["ibeacon", "altbeacon", "eddystone-uid", "eddystone-url", "eddystone-tlm"]
        for (vector, answer) in zip(vectors, answers) {
            let expect = try #require(vector["expect"] as? [String: Any])
            let frames = (expect["frames"] as? [[String: Any]] ?? []).filter {
                known.contains($0["format"] as? String ?? "")
            }
            #expect((answer["frames"] as? NSArray) == frames as NSArray, "\(vector["id"] ?? "")")
            if let ad = expect["ad"] as? NSArray { #expect((answer["ad"] as? NSArray) == ad, "\(vector["id"] ?? "")") }
        }
    }
}
