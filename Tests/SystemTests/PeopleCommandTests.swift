// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import Glibc
import LinuxIO
import Scanner
import TestSupport
import Testing

/// The commands for people, run as people run them.
@Suite struct PeopleCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A runtime folder in which no daemon runs.
    private var environment: [String: String] { ["RUNTIME_DIRECTORY": folder.path, "XDG_RUNTIME_DIR": folder.path] }

    private let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"

    private func run(_ arguments: String...) throws -> Program.Outcome {
        let program = try Program(arguments, environment: environment)
        try program.start()
        return try program.finish()
    }

    private func source(beacons: Int = 3, interval: String = "100ms", duration: String = "60s") throws -> String {
        "simulate:"
            + (try folder.file("world.json", Daemon.scenario(beacons: beacons, interval: interval, duration: duration)))
    }

    // MARK: scan

    @Test func aScanOpensItsSource() throws {
        let outcome = try run("scan", "--source", try source(), "--duration", "2s", "--json")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let events = try outcome.lines.map(Program.object)
        #expect(events.first?["event"] as? String == "adapter")
        #expect(Set(events.compactMap { $0["minor"] as? Int }) == [1, 2, 3])
        #expect(!FileManager.default.fileExists(atPath: folder.path("control.sock")))
    }

    @Test func aScanEndsWithItsSource() throws {
        let outcome = try run("scan", "--source", try source(duration: "1s"), "--duration", "1m")
        #expect(outcome.status == 0)
        #expect(outcome.lines.contains { $0.contains("ibeacon f7826da6-4fa2-4e98-8024-bc5b71e0893e/1/3") })
    }

    private static let filters: [(options: [String], minors: Set<Int>)] = [
        (["--minor", "2"], [2]), (["--major", "1"], [1, 2, 3]), (["--major", "2"], []),
        (["--uuid", "F7826DA64FA24E988024BC5B71E0893E", "--minor", "3"], [3]),
        (["--uuid", "00000000-0000-0000-0000-000000000000"], []),
        // At 1 m −59 dBm, at 2 m 6 dB less.
        (["--rssi", "-62"], [1]), (["--rssi", "-128"], [1, 2, 3]),
    ]

    @Test(arguments: filters)
    func aScanIsFiltered(options: [String], minors: Set<Int>) throws {
        let program = try Program(
            ["scan", "--source", try source(), "--duration", "1s", "--json"] + options, environment: environment)
        try program.start()
        let events = try program.finish().lines.map(Program.object)
        #expect(Set(events.compactMap { $0["minor"] as? Int }) == minors)
    }

    @Test func aScanGoesThroughTheDaemon() throws {
        let daemon = try Daemon(
            configuration:
                "\"beacons\": [{ \"alias\": \"keys\", \"uuid\": \"f7826da6-4fa2-4e98-8024-bc5b71e0893e\", \"major\": 1, \"minor\": 2 }]"
        )
        let outcome = try daemon.run("scan", "--duration", "3s", "--json")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let events = try outcome.lines.map(Program.object).filter { $0["event"] as? String == "sighting" }
        #expect(events.allSatisfy { $0["gateway"] as? String == "test" })
        #expect(Set(events.compactMap { $0["minor"] as? Int }) == [1, 2])
        #expect(events.contains { $0["alias"] as? String == "keys" }, "the daemon knows its names")
        let lines = try daemon.run("scan", "--duration", "2s", "--minor", "2").lines
        #expect(!lines.isEmpty && lines.allSatisfy { $0.contains("  keys  ") })
    }

    @Test func aScanSaysThatTheDaemonEnded() throws {
        let daemon = try Daemon()
        let scan = try Program(["scan", "--duration", "1m", "--json"], environment: daemon.environment)
        try scan.start()
        #expect(try Daemon.waits { try scan.outputSoFar().contains("\"sighting\"") })
        #expect(try daemon.stop().status == 0)
        let outcome = try scan.finish()
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("the daemon ended"))
    }

    /// The table on a terminal of 80 columns and 10 rows, ended with Ctrl-C.
    @Test func theTableIsDrawnInPlaceAndTheTerminalGivenBack() throws {
        let terminal = try PseudoTerminal(columns: 80, rows: 10)
        let program = try Program(
            ["scan", "--source", try source(beacons: 20), "--duration", "1m"], environment: environment)
        program.process.standardOutput = terminal.program
        try program.start()
        #expect(Daemon.waits { terminal.text.contains("more") && terminal.text.contains("\u{1B}[") })
        #expect(Daemon.waits { terminal.text.components(separatedBy: "\u{1B}[J").count > 4 })
        kill(program.process.processIdentifier, SIGINT)
        #expect(try program.finish().status == 0)
        let text = terminal.text
        #expect(text.hasPrefix("\u{1B}[?25l"), "the cursor is hidden")
        #expect(text.hasSuffix("\u{1B}[?25h"), "and shown again")
        #expect(text.components(separatedBy: "\u{1B}[?25h").count == 2)
        let frames = text.components(separatedBy: "\u{1B}[J").dropLast()
        let last = try #require(frames.last).components(separatedBy: "\r\n").dropLast()
        #expect(last.count <= 9, "a table that is higher than the terminal cannot be drawn in its place")
        #expect(last.first?.hasPrefix("\u{1B}[\(last.count)F") == true, "it goes back to its first line")
        let lines = last.map { $0.components(separatedBy: "\u{1B}[2K").last ?? "" }
        #expect(lines.allSatisfy { $0.unicodeScalars.count <= 80 })
        for word in ["BEACON", "ADDRESS", "RSSI", "QUALITY", "PROXIMITY", "DIST", "EVERY", "SEEN"] {
            #expect(lines[1].contains(word))
        }
        // The nearest beacon is the strongest one; it advertises each 100 ms and up to 10 ms more.
        let columns = lines[2].split(separator: " ").map(String.init)
        #expect(columns[0] == "f7826da6…/1/1")
        #expect(columns.contains("good") && columns.contains("near") || columns.contains("fair"), "\(lines[2])")
        #expect(lines[2].contains(" 10"), "the interval: \(lines[2])")
        #expect(lines.last?.hasPrefix("… and ") == true)
    }

    @Test(arguments: ["scan", "record", "run"])
    func anAdapterThatIsInUseIsNotOpened(command: String) throws {
        // Somebody holds the lock as a daemon does.
        let path = try folder.file("hci87.lock", "4711\n")
        let file = try FileDescriptor.open(path, O_RDWR)
        try #require(flock(file.number, LOCK_EX | LOCK_NB) == 0)
        let arguments =
            switch command {
            case "run": ["run", "--source", "hci:87", "--sink", "null"]
            case "record": ["record", folder.path("a"), "--source", "hci:87"]
            default: ["scan", "--source", "hci:87"]
            }
        let program = try Program(arguments, environment: environment)
        try program.start()
        let outcome = try program.finish()
        #expect(outcome.status == 75)
        #expect(outcome.errors.contains("hci87: process 4711 of beacond scans with it already"), "\(outcome.errors)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("a")))
        withExtendedLifetime(file) {}
    }

    @Test func aLockOfADeadProcessHoldsNobodyUp() throws {
        _ = try folder.file("hci87.lock", "4711\n")
        let outcome = try run("run", "--source", "hci:87", "--sink", "null")
        #expect(outcome.status == 69, "no such adapter: \(outcome.errors)")
    }

    @Test func anAdapterIsTheSameByIndexAndByAddress() throws {
        let address = "00:1A:7D:DA:71:13"
        let path = try folder.file("\(address).lock", "4711\n")
        let file = try FileDescriptor.open(path, O_RDWR)
        try #require(flock(file.number, LOCK_EX | LOCK_NB) == 0)
        let outcome = try run("scan", "--source", "hci:\(address.lowercased())")
        #expect(outcome.status == 75, "\(outcome.errors)")
        let other = try run("advertise", "--source", "hci:\(address)", "--uuid", uuid, "--major", "1", "--minor", "1")
        #expect(other.status == 69, "to scan is not to advertise, and there is no such adapter: \(other.errors)")
        let adapter = AdapterDescription(index: 3, address: DeviceAddress(text: address, kind: .publicDevice))
        #expect(adapter.identities == ["hci3", address])
        withExtendedLifetime(file) {}
    }

    @Test func socketsOfOneNameInTwoFoldersAreTwoControllers() throws {
        let sockets = ["a", "b"].map { folder.path("\($0)/radio.sock") }
        let name = sockets[0].replacing("/", with: "%2F")
        let path = try folder.file("\(name).lock", "4711\n")
        let file = try FileDescriptor.open(path, O_RDWR)
        try #require(flock(file.number, LOCK_EX | LOCK_NB) == 0)
        let outcome = try run("scan", "--source", "unix:\(sockets[0])")
        #expect(outcome.status == 75, "\(outcome.errors)")
        let other = try run("scan", "--source", "unix:\(sockets[1])", "--duration", "100ms")
        #expect(!other.errors.contains("already"), "\(other.errors)")
        #expect(other.status == 69, "nobody listens there: \(other.errors)")
        withExtendedLifetime(file) {}
    }

    // MARK: state, reload

    @Test func theStateIsPrinted() throws {
        let daemon = try Daemon(
            configuration: "\"regions\": [{ \"name\": \"site\", \"uuid\": \"f7826da6-4fa2-4e98-8024-bc5b71e0893e\" }]")
        #expect(try Daemon.waits { try daemon.run("state").output.contains("2 inside") })
        let outcome = try daemon.run("state")
        #expect(outcome.status == 0)
        for part in ["gateway  test, version ", "adapter  sim0  scanning", "sink     null  open", "region   site"] {
            #expect(outcome.output.contains(part), "\(outcome.output)")
        }
        #expect(outcome.lines.count { $0.hasPrefix("beacon   ibeacon f7826da6") } == 2)
        let objects = try daemon.run("state", "--json").lines.map(Program.object)
        #expect(objects.contains { $0["healthy"] as? Bool == true })
    }

    @Test func aReloadIsAnswered() throws {
        let daemon = try Daemon()
        let outcome = try daemon.run("reload")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output == "the configuration was read again\n")
        _ = try daemon.folder.file("plugins.json", "{ \"presence\": { \"exit_time\": \"nonsense\" } }")
        let refused = try daemon.run("reload")
        #expect(refused.status == 78)
        #expect(refused.errors.contains("$.presence.exit_time"), "\(refused.errors)")
        #expect(try daemon.run("state").status == 0, "the old one goes on")
    }

    @Test(arguments: ["state", "reload"])
    func withoutADaemonItIsSaid(command: String) throws {
        let outcome = try run(command, "--socket", folder.path("control.sock"))
        #expect(outcome.status == 69)
        #expect(outcome.errors.contains("no daemon runs here"))
        #expect(outcome.errors.contains("beacond run"))
    }

    // MARK: adapters, doctor

    @Test func theDoctorNamesTheCause() throws {
        let outcome = try run("doctor", "--socket", folder.path("control.sock"))
        // The daemon that was named does not run, whatever the machine has.
        #expect(outcome.status == 69)
        #expect(outcome.lines.contains { $0.hasPrefix("problem  daemon") })
        #expect(outcome.lines.contains { $0.hasPrefix("ok       kernel         Linux ") })
        let hasBluetooth = socket(AF_BLUETOOTH, Int32(SOCK_RAW.rawValue), 1)
        if hasBluetooth < 0, errno == EAFNOSUPPORT {
            #expect(outcome.output.contains("problem  bluetooth      this kernel has no Bluetooth"))
            #expect(outcome.output.contains("modprobe bluetooth"))
            let adapters = try run("adapters")
            #expect(adapters.status == 69)
            #expect(adapters.errors.contains("this kernel has no Bluetooth"))
        }
        if hasBluetooth >= 0 { close(hasBluetooth) }
        for line in try run("doctor", "--json").lines {
            let finding = try Program.object(line)
            #expect(["ok", "note", "problem"].contains(finding["grade"] as? String))
        }
    }

    @Test func theDoctorReadsTheConfiguration() throws {
        let bad = try folder.file("bad.json", "{ \"presence\": { \"exit_time\": 20 } }")
        let outcome = try run("doctor", "--config", bad)
        #expect(outcome.status == 69)
        #expect(outcome.output.contains("$.presence.exit_time"), "\(outcome.output)")
        let elsewhere = try folder.file("state.json", "{ \"state_directory\": \"\(folder.path("missing"))\" }")
        #expect(try run("doctor", "--config", elsewhere).output.contains("problem  state "))
        let fine = try folder.file("fine.json", "{ \"state_directory\": \"\(folder.path)\" }")
        #expect(try run("doctor", "--config", fine).output.contains("ok       state "))
    }

    @Test func theDoctorAsksTheDaemon() throws {
        let daemon = try Daemon()
        #expect(
            try Daemon.waits { try daemon.run("doctor").output.contains("ok       daemon         it runs and is well") }
        )
    }

    // MARK: record

    @Test func aRecordingIsReplayedAsItWas() throws {
        let source = try source(beacons: 5, duration: "2s")
        let first = folder.path("first.btsnoop")
        let second = folder.path("second.btsnoop")
        for path in [first, second] {
            let outcome = try run("record", path, "--source", source)
            #expect(outcome.status == 0, "\(outcome.errors)")
        }
        // The world is the same each time, so two recordings differ in nothing but their times.
        func reports(_ path: String) throws -> [NSDictionary] {
            try Program.run("replay", "--emit", "reports", path).lines.map { line in
                var report = try Program.object(line)
                report["time"] = nil
                return report as NSDictionary
            }
        }
        let recorded = try reports(first)
        #expect(recorded.count > 50)
        #expect(try reports(second) == recorded)
        // What was recorded once more, from the recording, is the same file to the last bit.
        let copy = folder.path("copy.btsnoop")
        #expect(try run("record", copy, "--source", "btsnoop:\(first)").status == 0)
        #expect(try Data(contentsOf: URL(filePath: copy)) == Data(contentsOf: URL(filePath: first)))
        let times = try Program.run("replay", "--emit", "reports", first).lines.map {
            try #require(try Program.object($0)["time"] as? String)
        }
        #expect(times == times.sorted())
        let year = Calendar(identifier: .gregorian).component(.year, from: .now)
        #expect(times.first?.hasPrefix("\(year)-") == true, "the time on the wall")
    }

    @Test func aFileThatIsThereIsKept() throws {
        let path = try folder.file("walk.btsnoop", "mine")
        let source = try source(duration: "1s")
        let outcome = try run("record", path, "--source", source)
        #expect(outcome.status == 74)
        #expect(outcome.errors.contains("--force replaces it"))
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
        #expect(try run("record", path, "--source", source, "--force").status == 0)
        #expect(try Program.run("replay", path).status == 0)
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func aSignalLosesNothing(signal: Int32) throws {
        let path = folder.path("walk.btsnoop")
        let program = try Program(["record", path, "--source", try source()], environment: environment)
        try program.start()
        #expect(Daemon.waits { ((try? Data(contentsOf: URL(filePath: path)))?.count ?? 0) > 1000 })
        kill(program.process.processIdentifier, signal)
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        let count = try #require(outcome.errors.split(separator: " ").first.flatMap { Int($0) })
        let replay = try Program.run("replay", "--emit", "reports", path)
        #expect(replay.lines.count == count)
        #expect(!replay.errors.contains("middle of a record"))
    }
}
