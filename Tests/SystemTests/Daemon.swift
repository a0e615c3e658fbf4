// SPDX-License-Identifier: Apache-2.0

import Foundation
import LinuxIO
import TestSupport
import Testing

/// A daemon with a runtime folder of its own, a simulated world in front and no sink that matters behind.
final class Daemon {
    let folder: TemporaryFolder
    let program: Program
    let environment: [String: String]

    var socket: String { folder.path("control.sock") }

    /// - Parameters:
    ///   - beacons: each heard every `interval`.
    ///   - configuration: members of the configuration beside `sinks` and `gateway`.
    ///   - world: a scenario instead of those beacons.
    init(
        beacons: Int = 2, interval: String = "100ms", world: String? = nil, configuration: String = "",
        socket: String? = nil
    ) throws {
        folder = try TemporaryFolder()
        environment = ["RUNTIME_DIRECTORY": folder.path, "XDG_RUNTIME_DIR": folder.path]
        let scenario = try folder.file(
            "world.json", world ?? Self.scenario(beacons: beacons, interval: interval))
        let config = try folder.file("plugins.json", Self.configuration(configuration))
        program = try Program(
            ["run", "--config", config, "--source", "simulate:\(scenario)"], environment: environment)
        try program.start()
        let path = socket ?? folder.path("control.sock")
        try #require(Self.waits { (try? UnixSocket.connect(to: path)) != nil })
    }

    deinit {
        if program.process.isRunning { kill(program.process.processIdentifier, SIGKILL) }
    }

    static func configuration(_ members: String) -> String {
        "{ \"gateway\": { \"id\": \"test\" }, \"sinks\": [{ \"kind\": \"null\" }]\(members.isEmpty ? "" : ", \(members)") }"
    }

    static func scenario(beacons: Int, interval: String, duration: String = "60s") -> String {
        let list = (1...beacons).map {
            """
            { "alias": "b\($0)", "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1, "minor": \($0),
              "interval": "\(interval)", "path": [{ "distance": \($0) }] }
            """
        }
        return """
            { "seed": 7, "duration": "\(duration)", "noise": 0,
              "radios": [{ "name": "sim0", "window": "100ms", "interval": "100ms" }],
              "beacons": [\(list.joined(separator: ", "))] }
            """
    }

    func run(_ arguments: String...) throws -> Program.Outcome {
        let program = try Program(arguments, environment: environment)
        try program.start()
        return try program.finish()
    }

    func stop() throws -> Program.Outcome {
        kill(program.process.processIdentifier, SIGTERM)
        return try program.finish()
    }

    /// Waits until a condition holds; false when it does not within 20 s.
    static func waits(for condition: () throws -> Bool) rethrows -> Bool {
        for _ in 0..<400 {
            if try condition() { return true }
            Thread.sleep(forTimeInterval: 0.05)
        }
        return try condition()
    }
}

/// Somebody at a control socket who speaks octets.
final class Asker {
    private let socket: FileDescriptor
    private var incoming: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    init(_ path: String) throws { socket = try UnixSocket.connect(to: path) }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ octets: [UInt8]) throws {
        var sent = 0
        while sent < octets.count {
            if let count = try socket.write(octets, from: sent) {
                sent += count
            } else {
                Thread.sleep(forTimeInterval: 0.002)
            }
        }
    }

    /// The next line; nil when the daemon closed the connection, or nothing came for 10 s.
    func line() throws -> String? {
        for _ in 0..<5000 {
            if let newline = incoming.firstIndex(of: UInt8(ascii: "\n")) {
                defer { incoming.removeSubrange(...newline) }
                return String(decoding: incoming[..<newline], as: UTF8.self)
            }
            let count: Int?
            do { count = try socket.read(into: &buffer) } catch { return nil }
            if count == 0 { return nil }
            if let count { incoming += buffer[..<count] } else { Thread.sleep(forTimeInterval: 0.002) }
        }
        return nil
    }

    func object() throws -> [String: Any] { try Program.object(try #require(try line())) }

    /// All lines of one answer.
    func answer() throws -> [[String: Any]] {
        var lines: [[String: Any]] = []
        repeat { lines.append(try object()) } while lines.last?["more"] as? Bool == true
        return lines
    }
}
