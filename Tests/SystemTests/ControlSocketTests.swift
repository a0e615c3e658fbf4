// SPDX-License-Identifier: Apache-2.0

import Foundation
import LinuxIO
import TestSupport
import Testing

/// The control socket of a daemon that runs.
@Suite struct ControlSocketTests {
    @Test func theStateIsTold() throws {
        let daemon = try Daemon(
            configuration: """
                "beacons": [{ "alias": "keys", "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1, "minor": 2 }],
                "regions": [{ "name": "me", "beacons": ["keys"] },
                            { "name": "elsewhere", "uuid": "00000000-0000-0000-0000-000000000001" }]
                """)
        let asker = try Asker(daemon.socket)
        func state() throws -> [[String: Any]] {
            try asker.send("{\"verb\":\"state\",\"id\":7}\n")
            return try asker.answer()
        }
        #expect(try Daemon.waits { try state().last?["present"] as? Int == 2 })
        let lines = try state()
        #expect(lines.allSatisfy { $0["id"] as? Int == 7 && $0["ok"] as? Bool == true })
        let beacons = lines.compactMap { $0["beacon"] as? [String: Any] }
        #expect(beacons.map { $0["minor"] as? Int } == [2, 1], "configured beacons come first")
        #expect(beacons.allSatisfy { $0["state"] as? String == "present" })
        #expect(beacons.map { $0["alias"] as? String } == ["keys", nil])
        let regions = lines.compactMap { $0["region"] as? [String: Any] }
        #expect(regions.map { $0["region"] as? String } == ["me", "elsewhere"])
        #expect(regions.map { $0["inside"] as? Int } == [1, 0])
        #expect(regions.map { $0["state"] as? String } == ["inside", "outside"])
        let adapter = try #require(lines.compactMap { $0["adapter"] as? [String: Any] }.first)
        #expect(adapter["adapter"] as? String == "sim0" && adapter["state"] as? String == "scanning")
        let sink = try #require(lines.compactMap { $0["sink"] as? [String: Any] }.first)
        #expect(sink["state"] as? String == "open")
        let counts = try #require(sink["transitions"] as? [String: Int])
        let rest = ["written", "rejected", "dropped", "conflated", "in_flight", "queued"].compactMap { counts[$0] }
        #expect(counts["offered"] == rest.reduce(0, +))
        let gateway = try #require(lines.last)
        #expect(gateway["gateway"] as? String == "test")
        #expect(gateway["reports"] as? Int ?? 0 >= 4)
        #expect((gateway["version"] as? String)?.isEmpty == false)
        try asker.send("{\"verb\":\"state\",\"beacons\":1}\n")
        let cut = try asker.answer().compactMap { $0["beacon"] as? [String: Any] }
        #expect(cut.map { $0["alias"] as? String } == ["keys"])
        #expect(try daemon.stop().status == 0)
        #expect(!FileManager.default.fileExists(atPath: daemon.socket))
    }

    @Test(arguments: [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "expected an object with \\\"verb\\\""),
        ("{\"verb\":7}", "expected an object with \\\"verb\\\""),
        ("{\"verb\":\"stat\",\"id\":3}", "did you mean state?"),
        ("{\"verb\":\"fly\"}", "the verbs are state, health, watch, reload, scan, discover, profile"),
        ("{\"verb\":\"state\",\"bacons\":3}", "$.bacons: unknown key; did you mean \\\"beacons\\\"?"),
        ("{\"verb\":\"state\",\"beacons\":-1}", "$.beacons: expected a whole number from 0 to 10000"),
        ("{\"verb\":\"state\",\"id\":\"a\"}", "$.id: expected a whole number"),
        ("{\"verb\":\"watch\",\"duration\":\"5\"}", "$.duration: expected a length of time"),
        ("{\"verb\":\"watch\",\"events\":\"sighting\"}", "did you mean \\\"sightings\\\"?"),
        ("{\"verb\":\"state\",\"verb\":\"state\"}", "duplicate key"),
    ])
    func aMistakeIsAnswered(request: String, message: String) throws {
        let daemon = try Daemon()
        let asker = try Asker(daemon.socket)
        try asker.send(request + "\n")
        let line = try #require(try asker.line())
        #expect(line.contains("\"ok\":false"))
        #expect(line.contains(message), "\(line)")
        if request.contains("\"id\":3") { #expect(line.contains("\"id\":3")) }
        // The connection goes on.
        try asker.send("{\"verb\":\"health\"}\n")
        #expect(try asker.object()["ok"] as? Bool == true)
    }

    @Test func healthIsTold() throws {
        let daemon = try Daemon(
            configuration: "\"log_level\": \"error\"")
        let asker = try Asker(daemon.socket)
        #expect(
            try Daemon.waits {
                try asker.send("{\"verb\":\"health\"}\n")
                return try asker.object()["healthy"] as? Bool == true
            })
    }

    @Test func eventsAreWatchedForATime() throws {
        let daemon = try Daemon()
        let asker = try Asker(daemon.socket)
        try asker.send("{\"verb\":\"watch\",\"id\":1,\"duration\":\"2s\",\"events\":\"sightings\"}\n")
        let lines = try asker.answer()
        #expect(lines.count >= 3, "two beacons, once a second, and the end")
        for line in lines.dropLast() {
            let event = try #require(line["event"] as? [String: Any])
            #expect(event["event"] as? String == "sighting")
            #expect(event["gateway"] as? String == "test")
        }
        #expect(lines.last?["event"] == nil)
        try asker.send("{\"verb\":\"health\",\"id\":2}\n")
        #expect(try asker.object()["id"] as? Int == 2)
    }

    @Test func requestsInOneWriteAndInPiecesAreAnsweredInOrder() throws {
        let daemon = try Daemon()
        let asker = try Asker(daemon.socket)
        try asker.send("{\"verb\":\"health\",\"id\":1}\n{\"verb\":\"health\",\"id\":2}\n{\"verb\":\"hea")
        #expect(try asker.object()["id"] as? Int == 1)
        #expect(try asker.object()["id"] as? Int == 2)
        try asker.send("lth\",\"id\":3}\n")
        #expect(try asker.object()["id"] as? Int == 3)
    }

    @Test func anEndlessLineEndsTheConnection() throws {
        let daemon = try Daemon()
        let asker = try Asker(daemon.socket)
        // Just short enough; it is no JSON, and that is the answer.
        try asker.send([UInt8](repeating: UInt8(ascii: "x"), count: 65_536) + [UInt8(ascii: "\n")])
        #expect(try asker.line()?.contains("no JSON") == true)
        try? asker.send([UInt8](repeating: UInt8(ascii: "x"), count: 200_000))
        #expect(try asker.line()?.contains("longer than 65536 bytes") == true)
        #expect(try asker.line() == nil)
        #expect(try daemon.stop().status == 0)
    }

    @Test func anyOctetsAreSurvived() throws {
        let daemon = try Daemon()
        var generator = SeededGenerator("anyOctetsAreSurvived")
        let words = ["{", "}", "\"verb\"", ":", "\"state\"", ",", "\"id\"", "1e999", "[", "]", "\\u0000", "null", "\n"]
        for _ in 0..<50 {
            let asker = try Asker(daemon.socket)
            var octets: [UInt8] = []
            for _ in 0..<generator.below(60) {
                if generator.below(3) == 0 {
                    octets.append(UInt8(generator.below(256)))
                } else {
                    octets += Array(words[generator.below(words.count)].utf8)
                }
            }
            try asker.send(octets + [UInt8(ascii: "\n")])
            #expect(try asker.line() != nil)
        }
        #expect(try daemon.stop().status == 0)
    }

    @Test func aNinthClientIsTurnedAway() throws {
        let daemon = try Daemon()
        // The daemon has seen that the one who waited for it is gone.
        let clients = try (0..<8).map { _ in
            let asker = try Asker(daemon.socket)
            try asker.send("{\"verb\":\"health\"}\n")
            #expect(try asker.object()["ok"] as? Bool == true)
            return asker
        }
        let ninth = try Asker(daemon.socket)
        #expect(try ninth.line()?.contains("8 clients are connected already") == true)
        #expect(try ninth.line() == nil)
        withExtendedLifetime(clients) {}
    }

    /// A client that cannot be taken waits in the kernel, and must not make the loop turn for nothing meanwhile.
    @Test func withoutDescriptorsTheDaemonStaysCalm() throws {
        let daemon = try Daemon()
        let process = daemon.program.process.processIdentifier
        let used = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
        let limit = Process()
        limit.executableURL = URL(filePath: "/usr/bin/prlimit")
        limit.arguments = ["--pid", "\(process)", "--nofile=\(used + 2)"]
        try limit.run()
        limit.waitUntilExit()
        try #require(limit.terminationStatus == 0)
        /// In ticks of 10 ms.
        func time() throws -> Int {
            let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            let fields = text.split(separator: " ")
            return (Int(fields[13]) ?? 0) + (Int(fields[14]) ?? 0)
        }
        var clients = try (0..<6).map { _ in try Asker(daemon.socket) }
        let before = try time()
        Thread.sleep(forTimeInterval: 3)
        #expect(try time() - before < 100, "a third of a processor would be far too much")
        clients.removeFirst(4)
        for client in clients {
            try client.send("{\"verb\":\"health\"}\n")
            #expect(try client.object()["ok"] as? Bool == true, "served as soon as there is room")
        }
        #expect(try daemon.stop().errors.contains("Too many open files"))
    }

    @Test func aWatcherThatDoesNotReadIsDropped() throws {
        let daemon = try Daemon(
            beacons: 60, interval: "20ms", configuration: "\"presence\": { \"report_interval\": \"0s\" }")
        let slow = try Asker(daemon.socket)
        try slow.send("{\"verb\":\"watch\",\"duration\":\"1h\"}\n")
        let other = try Asker(daemon.socket)
        // The daemon's answers to others are not held up meanwhile.
        for _ in 0..<16 {
            try other.send("{\"verb\":\"health\"}\n")
            #expect(try other.object()["ok"] as? Bool == true)
            Thread.sleep(forTimeInterval: 0.5)
        }
        // What the kernel and the daemon kept, and then the end instead of the last line of the watch.
        var count = 0
        while let line = try slow.line() {
            count += 1
            #expect(line.contains("\"more\":true"))
            if count > 100_000 { break }
        }
        #expect(count > 100)
        let outcome = try daemon.stop()
        #expect(outcome.errors.contains("a client did not read what it watches"), "\(outcome.errors)")
    }

    // MARK: The file

    @Test func aFileThatADeadDaemonLeftIsReplaced() throws {
        let daemon = try Daemon()
        kill(daemon.program.process.processIdentifier, SIGKILL)
        _ = try daemon.program.finish()
        #expect(FileManager.default.fileExists(atPath: daemon.socket))
        let scenario = daemon.folder.path("world.json")
        let second = try Program(
            ["run", "--source", "simulate:\(scenario)", "--sink", "null"], environment: daemon.environment)
        try second.start()
        #expect(Daemon.waits { (try? UnixSocket.connect(to: daemon.socket)) != nil })
        kill(second.process.processIdentifier, SIGTERM)
        #expect(try second.finish().status == 0)
    }

    @Test func aDaemonThatListensIsLeftAlone() throws {
        let daemon = try Daemon()
        let scenario = "simulate:\(daemon.folder.path("world.json"))"
        // Without a path of its own the second daemon goes without.
        let second = try daemon.run("run", "--source", scenario, "--sink", "null", "--duration", "300ms")
        #expect(second.status == 0)
        #expect(second.errors.contains("no control socket"), "\(second.errors)")
        // With that very path it cannot do what it was told.
        let config = try daemon.folder.file(
            "second.json", Daemon.configuration("\"control_socket\": \"\(daemon.socket)\""))
        let third = try daemon.run("run", "--config", config, "--source", scenario, "--duration", "300ms")
        #expect(third.status == 75)
        #expect(third.errors.contains("another program listens there"), "\(third.errors)")
        #expect((try? UnixSocket.connect(to: daemon.socket)) != nil)
    }

    @Test func aStateDirectoryIsOfOneDaemon() throws {
        let state = try TemporaryFolder()
        let daemon = try Daemon(configuration: "\"state_directory\": \"\(state.path)\"")
        let config = daemon.folder.path("plugins.json")
        let world = daemon.folder.path("world.json")
        let second = try daemon.run("run", "--config", config, "--source", "simulate:\(world)")
        #expect(second.status == 75, "it may work later")
        #expect(second.errors.contains("\(state.path)/outbox.sqlite"), "\(second.errors)")
        #expect(second.errors.contains("another process uses it"), "\(second.errors)")
        #expect(try daemon.stop().status == 0)
        withExtendedLifetime(state) {}
    }

    @Test func aFileThatIsNoSocketIsLeftAlone() throws {
        let folder = try TemporaryFolder()
        let path = try folder.file("precious", "mine")
        let config = try folder.file("plugins.json", Daemon.configuration("\"control_socket\": \"\(path)\""))
        let scenario = try folder.file("world.json", Daemon.scenario(beacons: 1, interval: "1s"))
        let outcome = try Program.run("run", "--config", config, "--source", "simulate:\(scenario)", "--duration", "1s")
        #expect(outcome.status != 0)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
    }

    @Test func nobodyElseMayOpenIt() throws {
        let daemon = try Daemon()
        let attributes = try FileManager.default.attributesOfItem(atPath: daemon.socket)
        let mode = try #require(attributes[.posixPermissions] as? Int)
        #expect(mode & 0o117 == 0, "not for others, not to be executed: \(String(mode, radix: 8))")
        #expect(mode & 0o600 == 0o600)
    }

    @Test func itCanBeElsewhereOrNowhere() throws {
        let folder = try TemporaryFolder()
        let daemon = try Daemon(
            configuration: "\"control_socket\": \"\(folder.path("here.sock"))\"", socket: folder.path("here.sock"))
        #expect(try daemon.run("state", "--socket", folder.path("here.sock")).status == 0)
        let scenario = "simulate:\(daemon.folder.path("world.json"))"
        let config = try folder.file("none.json", Daemon.configuration("\"control_socket\": \"none\""))
        #expect(
            try daemon.run("run", "--config", config, "--source", scenario, "--duration", "300ms").status == 0)
        #expect(!FileManager.default.fileExists(atPath: daemon.socket))
    }
}
