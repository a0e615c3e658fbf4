// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Glibc
import Synchronization

/// A mosquitto of one's own: on a free loopback port, with its configuration in a folder of its own, gone with this
/// object.
public final class Broker: @unchecked Sendable {
    public enum Failure: Error {
        case didNotStart(String)
        case toolFailed(String)
    }

    /// The port stays the same over every restart.
    public let port: UInt16
    public let folder: URL

    private let configuration: URL
    private let process = Mutex<Process?>(nil)

    /// Starts one.
    ///
    /// - Parameters:
    ///   - settings: lines of mosquitto.conf.
    ///   - users: names and passwords; without any, everybody may come in.
    public init(settings: [String] = [], users: [String: String] = [:]) throws {
        port = try Self.freePort()
        folder = URL.temporaryDirectory.appending(path: "broker-\(port)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        configuration = folder.appending(path: "mosquitto.conf")
        var lines = ["listener \(port) 127.0.0.1", "allow_anonymous \(users.isEmpty)", "persistence false"]
        if geteuid() == 0 { lines.append("user root") }
        if !users.isEmpty {
            let file = folder.appending(path: "passwords")
            try Data().write(to: file)
            for (name, password) in users {
                try Self.run("mosquitto_passwd", ["-b", file.path, name, password])
            }
            lines.append("password_file \(file.path)")
        }
        try (lines + settings).joined(separator: "\n").appending("\n")
            .write(to: configuration, atomically: true, encoding: .utf8)
        try start()
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Starts it again, on the same port; returns when it accepts connections.
    public func start() throws {
        let process = Process()
        process.executableURL = try Self.tool("mosquitto")
        process.arguments = ["-c", configuration.path]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        self.process.withLock { $0 = process }
        let deadline = Date.now.addingTimeInterval(20)
        while !Self.accepts(port) {
            guard process.isRunning, Date.now < deadline else {
                throw Failure.didNotStart("mosquitto does not listen on 127.0.0.1:\(port)")
            }
            usleep(10_000)
        }
    }

    /// SIGKILL; returns when it is gone, whichever thread asked first.
    public func kill() {
        process.withLock { process in
            guard let running = process else { return }
            Self.signal(running, SIGCONT)
            Self.signal(running, SIGKILL)
            running.waitUntilExit()
            process = nil
        }
    }

    /// SIGSTOP: the kernel still takes bytes for it, nobody answers. A black hole.
    public func pause() { process.withLock { $0.map { Self.signal($0, SIGSTOP) } } }

    /// SIGCONT.
    public func resume() { process.withLock { $0.map { Self.signal($0, SIGCONT) } } }

    private static func signal(_ process: Process, _ number: Int32) {
        if process.isRunning { Glibc.kill(process.processIdentifier, number) }
    }

    /// Publishes at QoS 1 with mosquitto_pub; returns when the broker has it.
    public func publish(_ arguments: [String]) throws {
        try Self.run("mosquitto_pub", ["-h", "127.0.0.1", "-p", "\(port)", "-q", "1"] + arguments)
    }

    // MARK: Parts

    /// A port of 127.0.0.1 on which nobody listens now.
    public static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = loopback(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(descriptor, pointer, size) == 0 ? unsafe getsockname(descriptor, pointer, &size) : -1
            }
        }
        guard result == 0 else { throw Failure.didNotStart("no free port") }
        return UInt16(bigEndian: address.sin_port)
    }

    public static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// Whether somebody listens there.
    public static func accepts(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = loopback(port: port)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private static func run(_ name: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = try tool(name)
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure.toolFailed(name) }
    }

    /// Debian has the broker in `sbin`, which is not in everybody's path.
    public static func tool(_ name: String) throws -> URL {
        for folder in ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"] {
            let path = "\(folder)/\(name)"
            if FileManager.default.isExecutableFile(atPath: path) { return URL(filePath: path) }
        }
        throw Failure.didNotStart("\(name) is not installed: run .ci/packages")
    }
}

/// What a client of a broker receives, told by mosquitto_sub.
public final class Subscriber: @unchecked Sendable {
    public struct Message: Sendable {
        public var topic: String
        public var quality: Int
        /// As the publisher set it.
        public var isRetained: Bool
        public var payload: String
        /// The properties of MQTT 5, as mosquitto_sub spells them in JSON.
        public var properties = ""

        /// A member of the payload, which is a flat object of JSON.
        public subscript(key: String) -> String? {
            guard let object = try? JSONSerialization.jsonObject(with: Data(payload.utf8)) as? [String: Any],
                let value = object[key]
            else { return nil }
            return "\(value)"
        }
    }

    private let process = Process()
    private let received = Mutex<(rest: [UInt8], messages: [Message])>(([], []))

    /// Subscribes, and returns when the subscription stands; what the broker retains comes first.
    public convenience init(
        _ broker: Broker, _ topic: String = "#", quality: Int = 1, username: String? = nil, password: String? = nil
    ) throws {
        try self.init(port: broker.port, topic, quality: quality, username: username, password: password)
    }

    /// Subscribes at any broker of 127.0.0.1; with 3.1.1 it cannot tell a retained message that comes live.
    public init(
        port: UInt16, version: String = "5", _ topic: String, quality: Int = 1, username: String? = nil,
        password: String? = nil
    ) throws {
        // Published until it is heard: then the subscription stands, and nothing that comes later is missed.
        let marker = "marker/\(UUID().uuidString)"
        process.executableURL = try Broker.tool("mosquitto_sub")
        var login: [String] = []
        if let username { login += ["-u", username] }
        if let password { login += ["-P", password] }
        process.arguments =
            ["-h", "127.0.0.1", "-p", "\(port)", "-V", version, "-q", "\(quality)"] + login
            + (version == "5" ? ["--retain-as-published"] : [])
            + [
                "-t", topic, "-t", marker, "-F", "%j",
            ]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        pipe.fileHandleForReading.readabilityHandler = { [weak self] handle in
            let data = handle.availableData
            if data.isEmpty { handle.readabilityHandler = nil }
            self?.take(Array(data))
        }
        try process.run()

        let deadline = Date.now.addingTimeInterval(20)
        repeat {
            let beacon = Process()
            beacon.executableURL = try Broker.tool("mosquitto_pub")
            beacon.arguments =
                ["-h", "127.0.0.1", "-p", "\(port)"] + login + ["-t", marker, "-q", "1", "-m", "{}"]
            beacon.standardError = FileHandle.nullDevice
            try beacon.run()
            beacon.waitUntilExit()
            if wait(seconds: 0.2, { $0.contains { $0.topic == marker } }) { break }
        } while Date.now < deadline
        received.withLock { $0.messages.removeAll { $0.topic == marker } }
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    public var messages: [Message] { received.withLock { $0.messages } }

    public func messages(on topic: String) -> [Message] { messages.filter { $0.topic == topic } }

    /// Waits until what has come satisfies `condition`; whether it did in time.
    @discardableResult
    public func wait(seconds: Double = 20, _ condition: ([Message]) -> Bool) -> Bool {
        let deadline = Date.now.addingTimeInterval(seconds)
        while !condition(messages) {
            if Date.now >= deadline { return false }
            usleep(5000)
        }
        return true
    }

    private func take(_ bytes: [UInt8]) {
        received.withLock { state in
            state.rest += bytes
            while let end = state.rest.firstIndex(of: UInt8(ascii: "\n")) {
                if let message = Self.message(state.rest[..<end]) { state.messages.append(message) }
                state.rest.removeSubrange(...end)
            }
        }
    }

    private static func message(_ line: ArraySlice<UInt8>) -> Message? {
        guard let object = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any],
            let topic = object["topic"] as? String, let quality = object["qos"] as? Int,
            let retain = object["retain"] as? Int
        else { return nil }
        let properties = object["properties"].flatMap { try? JSONSerialization.data(withJSONObject: $0) }
        return Message(
            topic: topic, quality: quality, isRetained: retain != 0, payload: object["payload"] as? String ?? "",
            properties: String(decoding: properties ?? Data(), as: UTF8.self))
    }
}
