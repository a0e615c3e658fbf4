// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import Configuration
import Glibc
import LinuxIO

/// A connection to the daemon that runs on this machine, from the other side: what `beacond state` and its like use.
public final class ControlConnection {
    /// Why the daemon could not be asked.
    public enum Failure: Error, CustomStringConvertible {
        /// There is no daemon, or its socket is elsewhere.
        case noDaemon(String)
        /// The socket may not be used.
        case refused(String)
        /// The daemon went away, or did not answer.
        case lost(String)

        public var description: String {
            switch self {
            case .noDaemon(let text), .refused(let text), .lost(let text): text
            }
        }
    }

    /// The daemon answers from its loop at once; only a machine that swaps takes longer.
    private static let patience = TimeInterval.seconds(10)

    public let path: String
    private let socket: FileDescriptor
    private var incoming: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    /// Connects to the daemon at a path, or to the first one that listens in a runtime folder.
    public init(path: String? = nil) throws(Failure) {
        let paths = path.map { [$0] } ?? RuntimeFolder.candidates.map { "\($0)/control.sock" }
        var forbidden: SystemError?
        for candidate in paths {
            do {
                socket = try UnixSocket.connect(to: candidate)
                self.path = candidate
                return
            } catch {
                if error.code == EACCES || error.code == EPERM { forbidden = forbidden ?? error }
                if path != nil, error.code != ENOENT, error.code != ECONNREFUSED, error.code != EACCES {
                    throw .refused(error.description)
                }
            }
        }
        if let forbidden { throw .refused("\(forbidden); the daemon belongs to another user: try with sudo") }
        throw .noDaemon(
            "no daemon runs here (nobody listens at \(paths.joined(separator: ", ")));"
                + " start it with \"beacond run\" or \"systemctl start beacond\"")
    }

    public var descriptor: Int32 { socket.number }

    /// Sends a request.
    ///
    /// - Parameter parameters: writes the members behind the verb.
    public func send(_ verb: String, _ parameters: (inout JSONWriter) -> Void = { _ in }) throws(Failure) {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("verb")
        writer.string(verb)
        parameters(&writer)
        writer.endObject()
        writer.newline()
        do { _ = try socket.write(writer.bytes) } catch { throw .lost("\(path): \(error)") }
    }

    /// Lines that have come, without waiting; nil when the daemon has closed the connection.
    public func receive() -> [[UInt8]]? {
        var isAtEnd = false
        while true {
            let count: Int?
            do { count = try socket.read(into: &buffer) } catch { count = 0 }
            guard let count else { break }
            guard count > 0 else {
                isAtEnd = true
                break
            }
            incoming += buffer[..<count]
        }
        var lines: [[UInt8]] = []
        var start = 0
        while let newline = incoming[start...].firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(Array(incoming[start..<newline]))
            start = newline + 1
        }
        incoming.removeFirst(start)
        return isAtEnd && lines.isEmpty ? nil : lines
    }

    /// Asks and waits for the whole answer: its lines, the last one without `more`.
    ///
    /// - Parameter parameters: writes the members behind the verb.
    public func ask(
        _ verb: String, _ parameters: (inout JSONWriter) -> Void = { _ in }
    ) throws(Failure) -> [(text: [UInt8], node: Node)] {
        try send(verb, parameters)
        var answer: [(text: [UInt8], node: Node)] = []
        let deadline = Clock.now + Self.patience
        while true {
            var descriptor = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
            let left = (deadline - Clock.now).milliseconds
            guard left > 0 else { throw .lost("\(path): the daemon does not answer") }
            guard unsafe poll(&descriptor, 1, Int32(clamping: left)) > 0 else { continue }
            guard let lines = receive() else { throw .lost("\(path): the daemon closed the connection") }
            for line in lines {
                guard let node = try? Document(line).root else { throw .lost("\(path): no JSON came back") }
                if case .boolean(false) = node["ok"]?.content {
                    guard case .text(let reason) = node["error"]?.content else { throw .lost("\(path): refused") }
                    throw .refused(reason)
                }
                answer.append((line, node))
                if node["more"] == nil { return answer }
            }
        }
    }
}
