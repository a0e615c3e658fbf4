// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The verbs that want something of the radios, and what is told of them.
@Suite struct ControlVerbsTests {
    private static let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"

    /// Two beacons that are always there and a radio that does as it is told.
    private static let world = """
        { "seed": 7, "duration": "120s", "noise": 0, "radios": [{ "name": "sim0" }], "beacons": [
            { "uuid": "\(uuid)", "major": 1, "minor": 1 }, { "uuid": "\(uuid)", "major": 1, "minor": 2 }] }
        """
    private static let keys = """
        "beacons": [{ "alias": "keys", "uuid": "\(uuid)", "major": 1, "minor": 2 }],
        "regions": [{ "name": "me", "beacons": ["keys"] }], "scan": { "profile": "economy" }
        """

    @Test func thePageNamesTheCountsOfTheOutbox() throws {
        let page = try String(contentsOf: Fixtures.repository.appending(path: "docs/control.md"), encoding: .utf8)
        let table = try #require(
            page.components(separatedBy: "| key of `outbox` |").last?.components(separatedBy: "\n\n").first)
        let named = table.split(separator: "\n").dropFirst(2).flatMap { row in
            row.split(separator: "|").first.map { $0.split(separator: "`").filter { $0.contains(/^[a-z_]+$/) } } ?? []
        }
        let daemon = try Daemon(world: Self.world, configuration: Self.keys)
        let asker = try Asker(daemon.socket)
        try asker.send("{\"verb\":\"state\"}\n")
        let outbox = try #require(try asker.answer().last?["outbox"] as? [String: Any])
        #expect(outbox.keys.sorted() == named.map(String.init).sorted())
    }

    @Test func aScanTellsWhatItHeard() throws {
        let daemon = try Daemon(world: Self.world, configuration: Self.keys)
        let asker = try Asker(daemon.socket)
        try asker.send("{\"verb\":\"scan\",\"id\":5,\"duration\":\"3s\"}\n")
        let other = try Asker(daemon.socket)
        #expect(
            try Daemon.waits {
                try other.send("{\"verb\":\"profile\"}\n")
                let answer = try other.object()
                return answer["profile"] as? String == "continuous" && answer["holders"] as? [String] == ["scan"]
            }, "others are answered meanwhile, and the profile has risen")
        let lines = try asker.answer()
        #expect(lines.allSatisfy { $0["ok"] as? Bool == true && $0["id"] as? Int == 5 })
        let beacons = lines.compactMap { $0["beacon"] as? [String: Any] }
        #expect(beacons.compactMap { $0["minor"] as? Int }.sorted() == [1, 2], "each once")
        #expect(beacons.allSatisfy { $0["event"] as? String == "sighting" && $0["time"] != nil })
        let last = try #require(lines.last)
        #expect(last["found"] as? Int == 2 && last["profile"] as? String == "continuous")
        #expect(last["duration"] as? Double == 3)
        try other.send("{\"verb\":\"profile\"}\n")
        #expect(try other.object()["profile"] as? String == "economy", "the demand has ended with the scan")
    }

    @Test func whatTheConfigurationDoesNotKnowIsDiscovered() throws {
        let daemon = try Daemon(world: Self.world, configuration: Self.keys)
        let asker = try Asker(daemon.socket)
        try asker.send("{\"verb\":\"discover\",\"duration\":\"3s\",\"profile\":\"balanced\"}\n")
        let lines = try asker.answer()
        #expect(lines.compactMap { ($0["beacon"] as? [String: Any])?["minor"] as? Int } == [1])
        #expect(lines.last?["found"] as? Int == 1 && lines.last?["profile"] as? String == "balanced")
    }

    @Test func aRequestDuringAScanGivesItUp() throws {
        let daemon = try Daemon(world: Self.world)
        let asker = try Asker(daemon.socket)
        try asker.send("{\"verb\":\"scan\",\"id\":1,\"duration\":\"1s\"}\n{\"verb\":\"health\",\"id\":2}\n")
        #expect(try asker.object()["id"] as? Int == 2)
        Thread.sleep(forTimeInterval: 1.5)
        try asker.send("{\"verb\":\"health\",\"id\":3}\n")
        #expect(try asker.object()["id"] as? Int == 3, "no answer to what was given up")
    }

    @Test func aProfileIsHeldUntilToldOtherwise() throws {
        let daemon = try Daemon(world: Self.world, configuration: Self.keys)
        let asker = try Asker(daemon.socket)
        func ask(_ members: String) throws -> [String: Any] {
            try asker.send("{\"verb\":\"profile\"\(members)}\n")
            return try asker.object()
        }
        #expect(try ask("")["profile"] as? String == "economy")
        let held = try ask(",\"profile\":\"balanced\"")
        #expect(held["profile"] as? String == "balanced" && held["held"] as? String == "balanced")
        #expect(held["holders"] as? [String] == ["command"])
        #expect(held["held_for"] == nil)
        // The strongest wins, so a weaker one changes nothing.
        let timed = try ask(",\"profile\":\"economy\",\"duration\":\"10m\"")
        #expect(timed["profile"] as? String == "economy")
        #expect(timed["holders"] as? [String] == ["command", "monitoring"])
        #expect(timed["held_for"] as? Double ?? 0 > 500)
        let released = try ask(",\"profile\":\"none\"")
        #expect(released["held"] == nil && released["profile"] as? String == "economy")
        #expect(try ask(",\"profile\":\"balanced\",\"duration\":\"500ms\"")["profile"] as? String == "balanced")
        #expect(try Daemon.waits { try ask("")["profile"] as? String == "economy" }, "it ended by itself")
        #expect((try ask(",\"profile\":\"balance\"")["error"] as? String)?.contains("did you mean") == true)
        #expect((try ask(",\"duration\":\"1s\"")["error"] as? String)?.contains("needs a \"profile\"") == true)
    }

    @Test func theStateOfOneIsTold() throws {
        let daemon = try Daemon(world: Self.world, configuration: Self.keys)
        let asker = try Asker(daemon.socket)
        func ask(_ member: String) throws -> [[String: Any]] {
            try asker.send("{\"verb\":\"state\",\(member)}\n")
            return try asker.answer()
        }
        func minors(_ lines: [[String: Any]]) -> [Int] {
            lines.compactMap { ($0["beacon"] as? [String: Any])?["minor"] as? Int }
        }
        #expect(try Daemon.waits { try minors(ask("\"beacon\":\"keys\"")) == [2] })
        #expect(try Daemon.waits { try minors(ask("\"beacon\":\"\(Self.uuid.uppercased())/1/1\"")) == [1] })
        #expect(try minors(ask("\"beacon\":\"\(Self.uuid)/1/3\"")).isEmpty, "nobody has heard of it")
        #expect(
            try ask("\"beacon\":\"kexs\"").last?["error"] as? String
                == "unknown beacon \"kexs\"; did you mean \"keys\"?")
        let region = try ask("\"region\":\"me\"")
        #expect(region.compactMap { ($0["region"] as? [String: Any])?["inside"] as? Int } == [1])
        #expect(region.count == 2 && region.last?["gateway"] as? String == "test")
        #expect((try ask("\"region\":\"you\"").last?["error"] as? String)?.hasPrefix("unknown region") == true)
    }

    // MARK: What it costs

    /// The profile rises as the beacon comes and falls after it has left, and each has its account.
    @Test func theProfileRisesAndFallsAndItsCostIsPrinted() throws {
        let world = """
            { "seed": 7, "duration": "120s", "noise": 0, "radios": [{ "name": "sim0" }], "beacons": [
                { "uuid": "\(Self.uuid)", "major": 1, "minor": 1, "visits": [{ "from": "4s", "to": "12s" }] }] }
            """
        let daemon = try Daemon(
            world: world,
            configuration: """
                "scan": { "profile": "economy" }, "presence": { "exit_time": "3s" },
                "regions": [{ "name": "hall", "uuid": "\(Self.uuid)", "range": true }]
                """)
        func accounts() throws -> [[String: Any]] {
            try daemon.run("state", "--json").lines.map(Program.object).compactMap { $0["radio"] as? [String: Any] }
        }
        func inForce() throws -> String? {
            try accounts().first { $0["in_force"] as? Bool == true }?["profile"] as? String
        }
        #expect(try Daemon.waits { try inForce() == "economy" })
        #expect(try Daemon.waits { try inForce() == "continuous" })
        #expect(try Daemon.waits { try inForce() == "economy" })
        Thread.sleep(forTimeInterval: 1)
        let all = try accounts()
        let economy = try #require(all.first { $0["profile"] as? String == "economy" })
        let continuous = try #require(all.first { $0["profile"] as? String == "continuous" })
        #expect(economy["holders"] as? [String] == ["monitoring"])
        #expect(continuous["holders"] as? [String] == ["region hall"])
        #expect(abs((economy["radio_share"] as? Double ?? 0) - 27.5 / 272.5) < 0.03, "\(economy)")
        #expect(continuous["radio_share"] as? Double ?? 0 > 0.9, "\(continuous)")
        for account in [economy, continuous] {
            #expect(account["cpu_time"] as? Double ?? 0 > 0)
            #expect(account["time"] as? Double ?? 0 > 2)
        }
        let text = try daemon.run("state").output
        #expect(text.contains("wanted by"), "\(text)")
        #expect(
            text.split(separator: "\n").contains { $0.hasPrefix("radio    *  economy") && $0.hasSuffix("monitoring") },
            "\(text)")
        #expect(
            text.split(separator: "\n").contains {
                $0.hasPrefix("radio       continuous") && $0.hasSuffix("region hall")
            })
    }

    // MARK: Health

    @Test func theGatewayTellsWhenItsHealthChanges() throws {
        let world = """
            { "seed": 7, "duration": "120s", "radios": [{ "name": "sim0", "blind": [{ "from": "2s", "to": "14s" }] }],
              "beacons": [] }
            """
        let daemon = try Daemon(world: world)
        let asker = try Asker(daemon.socket)
        try asker.send("{\"verb\":\"watch\",\"duration\":\"1m\",\"events\":\"transitions\"}\n")
        var health: [[String: Any]] = []
        // Ten seconds pass without a line.
        for _ in 0..<6 where health.count < 2 {
            guard let line = try asker.line() else { continue }
            if let event = try Program.object(line)["event"] as? [String: Any], event["event"] as? String == "health" {
                health.append(event)
            }
        }
        #expect(health.map { $0["healthy"] as? Bool } == [false, true])
        #expect(health.first?["reason"] as? String == "sim0 is blind")
        #expect(health.last?["reason"] == nil)
    }

    @Test func anAdapterThatIsNotThereTellsWhy() throws {
        let folder = try TemporaryFolder()
        let program = try Program(
            ["run", "--source", "unix:\(folder.path("radio"))", "--sink", "json"],
            environment: ["RUNTIME_DIRECTORY": folder.path])
        try program.start()
        defer { if program.process.isRunning { program.process.terminate() } }
        #expect(try Daemon.waits { try program.outputSoFar().contains("\"state\":\"blind\"") })
        let line = try #require(try program.outputSoFar().split(separator: "\n").first { $0.contains("\"blind\"") })
        let reason = try Program.object(String(line))["reason"] as? String
        #expect(reason?.contains("is the other side running?") == true, "\(line)")
        kill(program.process.processIdentifier, SIGTERM)
        #expect(try program.finish().status == 0)
    }
}
