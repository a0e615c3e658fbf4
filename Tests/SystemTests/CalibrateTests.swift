// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Foundation
import Glibc
import LinuxIO
import Presence
import SinkKit
import TestSupport
import Testing

/// `beacond calibrate`, run as people run it, in worlds of which the truth is known.
@Suite struct CalibrateTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var environment: [String: String] { ["RUNTIME_DIRECTORY": folder.path, "XDG_RUNTIME_DIR": folder.path] }

    private func run(_ arguments: String...) throws -> Program.Outcome {
        let program = try Program(["calibrate"] + arguments, environment: environment)
        program.process.standardInput = FileHandle.nullDevice
        try program.start()
        return try program.finish()
    }

    /// A world in which −59 dBm at 1 m fall with exponent 3.
    private func world(_ name: String, distances: [Double], noise: Int = 0, interval: String = "50ms") throws -> String
    {
        let beacons = distances.enumerated().map { index, distance in
            """
            { "alias": "b\(index)", "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1, "minor": \(index + 1),
              "interval": "\(interval)", "path": [{ "distance": \(distance) }] }
            """
        }
        return "simulate:"
            + (try folder.file(
                name,
                """
                { "seed": 7, "duration": "60s", "noise": \(noise), "path_loss_exponent": 3,
                  "radios": [{ "name": "sim0", "window": "100ms", "interval": "100ms" }],
                  "beacons": [\(beacons.joined(separator: ", "))] }
                """))
    }

    /// The entry, as the configuration's own reader reads it.
    private func entry(_ text: String) throws -> (alias: String, power: Int8?, exponent: Double?) {
        let names = NameTable()
        let configuration = try AgentConfiguration.load(
            Array(text.utf8), file: "snippet", formats: FrameDecoder().catalog, sinks: SinkRegistry([]), names: names)
        #expect(configuration.beacons.count == 1)
        let rule = try #require(configuration.beacons.first)
        return (names[rule.alias], rule.measuredPower, rule.pathLossExponent)
    }

    @Test func theStrongestBeaconIsMeasuredAtOneMetre() throws {
        let outcome = try run("--source", try world("w", distances: [4, 1]), "--duration", "2s")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.errors.contains("The strongest beacon is ibeacon f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/2."))
        let entry = try entry(outcome.output)
        #expect(entry.power == -59 && entry.exponent == nil)
        #expect(outcome.output.contains("\"minor\": 2"))
        #expect(!outcome.errors.contains("warning"), "\(outcome.errors)")
    }

    @Test func twoDistancesGiveTheExponent() throws {
        let outcome = try run(
            "--point", "1m=\(try world("near", distances: [1]))", "--point", "4=\(try world("far", distances: [4]))",
            "--duration", "2s")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let entry = try entry(outcome.output)
        #expect(entry.power == -59)
        // Strengths are whole decibels: half of one, over 4 m, is 0.08 of an exponent.
        #expect(abs(try #require(entry.exponent) - 3) < 0.17, "\(outcome.output)")
    }

    @Test func capturesAreMeasuredAndTheAliasIsKept() throws {
        for (name, distance) in [("near", 2.0), ("far", 8)] {
            let program = try Program(
                [
                    "record", folder.path("\(name).btsnoop"), "--duration", "2s", "--source",
                    try world(name, distances: [1, distance]),
                ], environment: environment)
            try program.start()
            #expect(try program.finish().status == 0)
        }
        let config = try folder.file(
            "plugins.json",
            """
            { "beacons": [{ "alias": "keys", "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1, "minor": 2 }] }
            """)
        let outcome = try run(
            "--point", "2m=btsnoop:\(folder.path("near.btsnoop"))", "--point",
            "8m=btsnoop:\(folder.path("far.btsnoop"))", "--beacon", "keys", "--config", config)
        #expect(outcome.status == 0, "\(outcome.errors)")
        let entry = try entry(outcome.output)
        #expect(entry.alias == "keys")
        // Neither place is at 1 m; each is right to half a decibel.
        #expect((-60 ... -58).contains(try #require(entry.power)))
        #expect(abs(try #require(entry.exponent) - 3) < 0.17, "\(outcome.output)")
    }

    @Test func aWideSpreadIsWarnedOf() throws {
        let outcome = try run("--source", try world("w", distances: [1], noise: 12), "--duration", "3s")
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains("warning: four of five packets lie within"), "\(outcome.errors)")
        #expect(outcome.errors.contains("measure again"))
    }

    @Test func aRivalIsWarnedOf() throws {
        let outcome = try run("--source", try world("w", distances: [1, 1.2]), "--duration", "2s")
        #expect(outcome.errors.contains("1/2 is only"), "\(outcome.errors)")
        #expect(outcome.errors.contains("--beacon"))
    }

    @Test func itGoesThroughTheDaemon() throws {
        let daemon = try Daemon(configuration: "\"presence\": { \"report_interval\": \"100ms\" }")
        let program = try Program(["calibrate", "--duration", "4s"], environment: daemon.environment)
        program.process.standardInput = FileHandle.nullDevice
        try program.start()
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.errors.contains("through the daemon"))
        #expect(try entry(outcome.output).power == -59)
    }

    @Test func whatCannotBeMeasuredIsSaid() throws {
        let world = try world("w", distances: [1])
        let absent = try run("--source", world, "--duration", "1s", "--beacon", "keys")
        #expect(absent.status == 1)
        #expect(absent.errors.contains("keys was not heard") && absent.errors.contains("beacond scan"))
        let few = try run("--source", try self.world("slow", distances: [1], interval: "1s"), "--duration", "2s")
        #expect(few.status == 1)
        #expect(few.errors.contains("10 are needed; give a longer --duration"), "\(few.errors)")
        let near = try run("--point", "2m=\(world)", "--point", "2.5m=\(world)", "--duration", "1s")
        #expect(near.status == 1)
        #expect(near.errors.contains("too near each other"))
        let wrong = try run("--point", "1m=\(world)", "--point", "5m=\(world)", "--duration", "1s")
        #expect(wrong.status == 1, "a signal that does not fall")
        #expect(wrong.errors.contains("which cannot be"))
        #expect(wrong.output.isEmpty)
    }

    @Test(arguments: [
        (["--point", "1km"], "expected a distance"),
        (["--point", "1m=a:b", "--point", "1=c:d"], "the same distance twice"),
        (["--point", "1m", "--point", "2m"], "need a source each"), (["--duration", "0s"], "expected a time"),
    ])
    func aWrongCommandLineIsSaid(options: [String], words: String) throws {
        let program = try Program(["calibrate"] + options, environment: environment)
        try program.start()
        let outcome = try program.finish()
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains(words), "\(outcome.errors)")
    }

    @Test func aMissingCaptureIsSaid() throws {
        #expect(try run("--point", "1m=btsnoop:\(folder.path("none"))").status == 66)
    }

    /// Guided on a terminal: 1 m, then 4 m, in a world in which the beacon does not move; and a distance that is none.
    @Test func aPersonIsGuided() throws {
        let terminal = try PseudoTerminal(columns: 80, rows: 24)
        let program = try Program(
            ["calibrate", "--source", try world("w", distances: [1]), "--duration", "2s"], environment: environment)
        program.process.standardInput = terminal.program
        program.process.standardError = terminal.program
        try program.start()
        #expect(Daemon.waits { terminal.text.contains("Press Enter when it is there") })
        terminal.type("\n")
        #expect(Daemon.waits { terminal.text.contains("packets") && terminal.text.contains("press Enter to finish") })
        #expect(terminal.text.contains("s of 2 s: "), "it shows the spread while it collects")
        terminal.type("far\n")
        #expect(Daemon.waits { terminal.text.contains("Expected a distance") })
        terminal.type("\n")
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(terminal.text)")
        #expect(try entry(outcome.output).power == -59)
    }

    @Test func ctrlCEndsItAtAQuestion() throws {
        let terminal = try PseudoTerminal(columns: 80, rows: 24)
        let program = try Program(["calibrate", "--source", try world("w", distances: [1])], environment: environment)
        program.process.standardInput = terminal.program
        program.process.standardError = terminal.program
        try program.start()
        #expect(Daemon.waits { terminal.text.contains("Press Enter when it is there") })
        kill(program.process.processIdentifier, SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 1 && outcome.output.isEmpty)
    }
}
