// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The daemon as a whole: a simulated world in, sinks out.
@Suite struct RunTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Two beacons: `still` is there all the time, `guest` from 1 s to 3 s.
    private func scenario(duration: String = "8s") throws -> String {
        try folder.file(
            "world.json",
            """
            {
              "seed": 7, "duration": "\(duration)",
              "radios": [{ "name": "sim0", "window": "100ms", "interval": "100ms" }],
              "beacons": [
                { "alias": "still", "format": "ibeacon", "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1,
                  "minor": 1, "interval": "200ms", "path": [{ "distance": 2 }] },
                { "alias": "guest", "format": "ibeacon", "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1,
                  "minor": 2, "interval": "200ms", "path": [{ "distance": 2 }], "visits": [{ "from": "1s", "to": "3s" }] }
              ]
            }
            """)
    }

    private func configuration(exitTime: String = "2s", sinks: String, beacons: Int = 2) throws -> String {
        let listed = (1...beacons).map {
            "{ \"alias\": \"b\($0)\", \"uuid\": \"f7826da6-4fa2-4e98-8024-bc5b71e0893e\", \"major\": 1, \"minor\": \($0) }"
        }
        return try folder.file(
            "plugins.json",
            """
            {
              "gateway": { "id": "test" }, "presence": { "exit_time": "\(exitTime)" },
              "beacons": [\(listed.joined(separator: ", "))],
              "regions": [{ "name": "site", "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e" }],
              "sinks": [\(sinks)]
            }
            """)
    }

    private func started(_ arguments: [String]) throws -> Program {
        let program = try Program(["run"] + arguments)
        try program.start()
        return program
    }

    /// Waits until a condition holds; false when it does not within 20 s.
    private func waits(for condition: () throws -> Bool) rethrows -> Bool {
        for _ in 0..<400 {
            if try condition() { return true }
            Thread.sleep(forTimeInterval: 0.05)
        }
        return try condition()
    }

    private func transitions(_ lines: [String]) throws -> [String] {
        try lines.map(Program.object).compactMap { event in
            guard let word = event["event"] as? String, word != "sighting" else { return nil }
            switch word {
            case "adapter": return "adapter \(event["state"] ?? "")"
            case "region_enter", "region_exit": return "\(word) \(event["region"] ?? "")"
            default: return "\(word) \(event["minor"] ?? "")"
            }
        }
    }

    @Test func aScenarioComesOutAsItWas() throws {
        let config = try configuration(sinks: "{ \"kind\": \"stdout\" }")
        let program = try started(["--config", config, "--source", "simulate:\(try scenario())"])
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(
            try transitions(outcome.lines) == [
                "adapter scanning", "enter 1", "region_enter site", "enter 2", "exit 2", "adapter ended",
            ])
        let exit = try #require(try outcome.lines.map(Program.object).first { $0["event"] as? String == "exit" })
        #expect(exit["exit_time"] as? Double == 2)
        #expect(exit["alias"] as? String == "b2")
        #expect(exit["gateway"] as? String == "test")
    }

    @Test func itEndsWhenItIsTold() throws {
        for signal in [SIGTERM, SIGINT] {
            let program = try started(["--source", "simulate:\(try scenario(duration: "60s"))", "--sink", "stdout"])
            #expect(try waits { try program.outputSoFar().contains("\"enter\"") })
            let told = Date()
            kill(program.process.processIdentifier, signal)
            let outcome = try program.finish()
            #expect(outcome.status == 0)
            #expect(Date().timeIntervalSince(told) < 5)
        }
    }

    @Test func aDurationEndsIt() throws {
        let outcome = try Program.run(
            "run", "--source", "simulate:\(try scenario(duration: "60s"))", "--sink", "null", "--duration", "500ms")
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains("counted"), "\(outcome.errors)")
    }

    @Test func theOutboxIsWhereTheServiceManagerSays() throws {
        let state = folder.path("state")
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: false)
        let outcome = try Program.run(
            "run", "--source", "simulate:\(try scenario())", "--sink", "null", "--duration", "300ms",
            environment: ["STATE_DIRECTORY": state])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(FileManager.default.fileExists(atPath: state + "/outbox.sqlite"))
        let missing = try Program.run(
            "run", "--source", "simulate:\(try scenario())", "--sink", "null",
            environment: ["STATE_DIRECTORY": folder.path("nowhere")])
        #expect(missing.status == 74)
        #expect(missing.errors.contains("nowhere"), "\(missing.errors)")
    }

    /// However it ended: who stayed neither leaves nor enters again, and who left meanwhile is told to have left.
    @Test(arguments: [SIGKILL, SIGTERM])
    func presenceSurvivesARestart(signal: Int32) throws {
        let state = folder.path("state")
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: false)
        // With a sink that reads the outbox, presence is kept with each transition; without one, within a minute.
        let broker = try Broker()
        let config = try configuration(
            exitTime: "3s",
            sinks: """
                { "kind": "stdout" }, { "kind": "mqtt", "config": { "host": "127.0.0.1", "port": \(broker.port) } }
                """)
        func run(_ world: String, until isDone: ([String]) throws -> Bool) throws -> [String] {
            let program = try Program(
                ["run", "--config", config, "--source", "simulate:\(world)"], environment: ["STATE_DIRECTORY": state])
            try program.start()
            func told() throws -> [String] {
                let lines = try program.outputSoFar().split(separator: "\n", omittingEmptySubsequences: false)
                return try transitions(lines.dropLast().map(String.init))
            }
            #expect(try waits { try isDone(told()) })
            // The commit of the last transition, at most a second later.
            Thread.sleep(forTimeInterval: 1.5)
            let result = try told()
            kill(program.process.processIdentifier, signal)
            _ = try program.finish()
            return result
        }
        let world = try String(contentsOfFile: scenario(duration: "60s"), encoding: .utf8)
        let first = try run(
            try folder.file("both.json", world.replacing("\"to\": \"3s\"", with: "\"to\": \"50s\""))
        ) { $0.contains("enter 1") && $0.contains("enter 2") }
        #expect(first.contains("region_enter site") && !first.contains("exit 2"), "\(first)")
        let second = try run(
            try folder.file("one.json", world.replacing("\"from\": \"1s\", \"to\": \"3s\"", with: "\"from\": \"50s\""))
        ) { $0.contains("exit 2") }
        #expect(second.filter { !$0.hasPrefix("adapter") && !$0.hasPrefix("health") } == ["exit 2"], "\(second)")
    }

    @Test func aReaderThatGoesAwayEndsItQuietly() throws {
        let source = try scenario(duration: "60s")
        let script =
            "'\(Program.path)' run --source 'simulate:\(source)' --sink stdout | head -n 1; echo ${PIPESTATUS[0]}"
        let shell = try Program(["-c", script], executable: "/bin/bash")
        try shell.start()
        let outcome = try shell.finish()
        #expect(outcome.lines.last == "0")
        #expect(outcome.errors.split(separator: "\n").allSatisfy { $0.hasPrefix("<6>") }, "\(outcome.errors)")
    }

    @Test func aConfigurationIsReadAgainAndABadOneChangesNothing() throws {
        let events = folder.path("events.jsonl")
        let sink = "{ \"kind\": \"json\", \"config\": { \"path\": \"\(events)\" } }"
        let config = try configuration(exitTime: "60s", sinks: sink, beacons: 1)
        let program = try started(["--config", config, "--source", "simulate:\(try scenario(duration: "60s"))"])
        func lines() throws -> [String] {
            String(decoding: (try? Data(contentsOf: URL(filePath: events))) ?? Data(), as: UTF8.self)
                .split(separator: "\n").map(String.init)
        }
        #expect(try waits { try lines().contains { $0.contains("\"enter\"") } })
        #expect(try lines().contains { $0.contains("\"alias\":\"b1\"") })

        _ = try folder.file("plugins.json", "{ \"presence\": { \"exit_time\": \"nonsense\" } }")
        kill(program.process.processIdentifier, SIGHUP)
        Thread.sleep(forTimeInterval: 0.5)
        let count = try lines().count
        #expect(try waits { try lines().count > count }, "the old configuration goes on")

        // A short exit time that was read again makes the guest leave.
        _ = try configuration(exitTime: "1s", sinks: sink, beacons: 2)
        kill(program.process.processIdentifier, SIGHUP)
        #expect(try waits { try transitions(try lines()).contains("exit 2") })
        kill(program.process.processIdentifier, SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains("$.presence.exit_time"), "\(outcome.errors)")
        #expect(outcome.errors.contains("the configuration was read again"), "\(outcome.errors)")
    }

    @Test func filesAreReopenedForRotation() throws {
        let events = folder.path("events.jsonl")
        let moved = folder.path("events.jsonl.1")
        let config = try configuration(sinks: "{ \"kind\": \"json\", \"config\": { \"path\": \"\(events)\" } }")
        let program = try started(["--config", config, "--source", "simulate:\(try scenario(duration: "60s"))"])
        func size(_ path: String) -> Int { (try? Data(contentsOf: URL(filePath: path)))?.count ?? 0 }
        #expect(waits { size(events) > 0 })
        try FileManager.default.moveItem(atPath: events, toPath: moved)
        kill(program.process.processIdentifier, SIGUSR1)
        #expect(waits { size(events) > 0 })
        kill(program.process.processIdentifier, SIGTERM)
        #expect(try program.finish().status == 0)
        let all = try [moved, events].flatMap { path in
            try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
        }
        #expect(try all.map(Program.object).count == all.count, "no line was torn")
    }

    @Test func aCaptureIsPlayedOnItsOwnClock() throws {
        let program = try started([
            "--source", "btsnoop:\(Fixtures.path("captures/horizon.btsnoop"))", "--sink", "stdout", "--duration", "1s",
        ])
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        let first = try Program.object(try #require(outcome.lines.first))
        #expect((first["time"] as? String)?.hasPrefix("2021-02-01T03:2") == true)
    }

    @Test func aMissingRadioIsExplained() throws {
        let outcome = try Program.run("run", "--source", "hci:87", "--sink", "null")
        #expect(outcome.status == 69)
        #expect(outcome.errors.hasPrefix("beacond: hci87: "), "\(outcome.errors)")
    }

    @Test func wrongSourcesAreExplained() throws {
        #expect(try Program.run("run", "--source", "usb:0", "--sink", "null").status == 78)
        let scenario = try folder.file("bad.json", "{ \"beacons\": [{ \"alias\": \"a\", \"intervall\": \"1s\" }] }")
        let outcome = try Program.run("run", "--source", "simulate:\(scenario)", "--sink", "null")
        #expect(outcome.status == 78)
        #expect(outcome.errors.contains("did you mean \"interval\"?"), "\(outcome.errors)")
        let capture = Fixtures.path("captures/horizon.btsnoop")
        let both = try Program.run(
            "run", "--source", "btsnoop:\(capture)", "--source", "simulate:\(try self.scenario())", "--sink", "null")
        #expect(both.status == 78)
        #expect(both.errors.contains("a capture has its own clock"), "\(both.errors)")
    }

    @Test func statesReachABrokerAndStay() throws {
        let broker = try Broker()
        let config = try configuration(
            sinks: "{ \"kind\": \"mqtt\", \"config\": { \"host\": \"127.0.0.1\", \"port\": \(broker.port) } }")
        let program = try started(["--config", config, "--source", "simulate:\(try scenario())"])
        #expect(try program.finish().status == 0)
        let subscriber = try Subscriber(broker)
        func state(_ topic: String) throws -> String? {
            try subscriber.messages.last { $0.topic == "beacond/test/\(topic)" }
                .map { try Program.object($0.payload)["state"] as? String ?? "" }
        }
        let beacon = "ibeacon/f7826da6-4fa2-4e98-8024-bc5b71e0893e/1"
        #expect(try waits { try state("\(beacon)/1/presence") == "present" })
        #expect(try waits { try state("\(beacon)/2/presence") == "absent" })
        #expect(try waits { try state("region/site/presence") == "inside" })
    }
}
