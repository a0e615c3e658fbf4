// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import LinuxIO
import SinkKit

/// Where people and programs on this machine speak to the daemon: a unix stream socket, JSON lines in both directions.
/// `docs/control.md` has the protocol. Everything happens on the loop's thread and nothing waits.
///
/// Who may open the file may ask: there is no other check.
final class ControlSocket {
    /// Clients at a time: people and their scripts, not a service for a crowd.
    static let maximumClients = 8

    let path: String
    private let socket: FileDescriptor
    private let loop: EventLoop
    private let log: Log
    private let encoder: EventEncoder
    private var verbs = VerbTable([])
    private var clients: [ControlSocketClient] = []
    private var writer = JSONWriter()
    private var isOpen = true
    /// The listening socket in the loop; nil while it pauses.
    private var listening: UInt64?
    /// When it listens again after a failure.
    private var resumption = MonotonicTime.distantFuture

    /// After a failure to take a client. The client still waits, and without a pause the loop would turn for nothing
    /// until there are descriptors again.
    private static let pause = TimeInterval.seconds(1)

    /// - Throws: why nobody can listen there; `EADDRINUSE` when another program does.
    init(path: String, encoder: EventEncoder, loop: EventLoop, log: Log) throws(SystemError) {
        self.path = path
        self.encoder = encoder
        self.loop = loop
        self.log = log
        socket = try Self.listen(at: path)
    }

    /// Listens where the configuration says.
    ///
    /// - Parameter path: `none` for nowhere; nil for the runtime folder, where a daemon goes without when there is no
    ///   such folder or another daemon was first: it is not worth the gateway.
    static func open(
        _ path: String?, encoder: EventEncoder, loop: EventLoop, log: Log
    ) throws(AgentError) -> ControlSocket? {
        if path == "none" { return nil }
        if let path {
            do { return try ControlSocket(path: path, encoder: encoder, loop: loop, log: log) } catch {
                guard error.code == EADDRINUSE else { throw .system(error) }
                throw .busy(
                    "\(path): another program listens there, or it is no socket; give control_socket another path, or end that one"
                )
            }
        }
        guard let folder = RuntimeFolder.make() else {
            log(.info, "no runtime folder can be written, so there is no control socket; control_socket names one")
            return nil
        }
        do { return try ControlSocket(path: "\(folder)/control.sock", encoder: encoder, loop: loop, log: log) } catch {
            log(.notice, "no control socket: \(error); control_socket gives this daemon another one")
            return nil
        }
    }

    /// A socket file that a dead daemon left is removed; one at which somebody listens is not.
    private static func listen(at path: String) throws(SystemError) -> FileDescriptor {
        do { return try UnixSocket.listen(at: path) } catch {
            guard error.code == EADDRINUSE else { throw error }
        }
        do {
            _ = try UnixSocket.connect(to: path)
        } catch {
            // A file that is no socket refuses as well; it is somebody's.
            guard error.code == ECONNREFUSED, isSocket(path) else {
                throw SystemError("bind", path, code: EADDRINUSE)
            }
            guard unsafe unlink(path) == 0 else { throw SystemError("unlink", path) }
            return try UnixSocket.listen(at: path)
        }
        throw SystemError("bind", path, code: EADDRINUSE)
    }

    private static func isSocket(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }

    /// Answers from now on.
    func start(_ verbs: VerbTable) throws(SystemError) {
        self.verbs = verbs
        try resume()
    }

    private func resume() throws(SystemError) {
        resumption = .distantFuture
        listening = try loop.add(socket.number) { [unowned self] in acceptClients() }
    }

    private func pause(_ error: SystemError) {
        log(.warning, "control socket: \(error)")
        resumption = Clock.now + Self.pause
        if let listening { loop.remove(listening, descriptor: socket.number) }
        listening = nil
    }

    /// Somebody watches: sightings are worth having although no sink may want them.
    var isWatched: Bool { clients.contains { $0.watch != nil } }

    /// When ``advance(to:)`` is due, on the machine's clock.
    var nextDeadline: MonotonicTime {
        clients.reduce(resumption) { min($0, min($1.watch?.end ?? .distantFuture, $1.awaited?.due ?? .distantFuture)) }
    }

    /// Ends the watches whose time is over, answers what was to be answered later, and listens again after a pause.
    func advance(to now: MonotonicTime) {
        if resumption <= now {
            do { try resume() } catch { pause(error) }
        }
        for client in clients {
            if let awaited = client.awaited, awaited.due <= now {
                client.awaited = nil
                attempt(client) { client throws(ControlSocketClient.Ending) in
                    try send(awaited.lines(), awaited.id, to: client)
                }
                serve(client)
            }
            guard let watch = client.watch, watch.end <= now else { continue }
            client.watch = nil
            attempt(client) { client throws(ControlSocketClient.Ending) in
                try client.send(line(watch.id) { _ in })
            }
            serve(client)
        }
    }

    /// Hands an event to those who watch.
    func offer(_ event: borrowing Event) {
        for client in clients {
            guard let watch = client.watch, watch.wish.includes(event) else { continue }
            let event = copy event
            let octets = line(watch.id, hasMore: true) { writer in
                writer.key("event")
                let role: DeliveryRoles = event.isTransition ? .transitions : .sightings
                encoder.encode(Delivery(role: role, event: event), stream: "", into: &writer)
            }
            attempt(client) { client throws(ControlSocketClient.Ending) in try client.stream(octets) }
        }
    }

    /// Closes every connection and removes the file.
    func close() {
        for client in clients { loop.remove(client.token, descriptor: client.descriptor) }
        clients = []
        removeFile()
    }

    deinit { removeFile() }

    private func removeFile() {
        // Once: by then another daemon may have a socket of that name.
        if isOpen { _ = unsafe unlink(path) }
        isOpen = false
    }

    // MARK: Clients

    private func acceptClients() {
        while true {
            do {
                guard let socket = try UnixSocket.accept(socket) else { return }
                add(ControlSocketClient(socket))
            } catch {
                return pause(error)
            }
        }
    }

    private func add(_ client: ControlSocketClient) {
        guard clients.count < Self.maximumClients else {
            try? client.send(refusal(nil, "\(Self.maximumClients) clients are connected already; try again later"))
            return
        }
        do {
            client.token = try loop.add(client.descriptor) { [unowned self, unowned client] in
                attempt(client) { client throws(ControlSocketClient.Ending) in try client.flush() }
                serve(client)
            }
            clients.append(client)
        } catch {
            log(.warning, "control socket: \(error)")
        }
    }

    private func serve(_ client: ControlSocketClient) {
        guard clients.contains(where: { $0 === client }) else { return }
        attempt(client) { client throws(ControlSocketClient.Ending) in
            while let request = try client.nextRequest() {
                // One that waits and speaks again wants something else.
                client.watch = nil
                client.awaited = nil
                try answer(request, client)
            }
        }
    }

    private func answer(_ request: [UInt8], _ client: ControlSocketClient) throws(ControlSocketClient.Ending) {
        let request = verbs.answer(request)
        switch request.answer {
        case .failed(let reason): try client.send(refusal(request.id, reason))
        case .lines(let bodies):
            try send(bodies, request.id, to: client)
        case .events(let wish, let time):
            client.watch = (wish, request.id, Clock.now + time)
        case .later(let time, let lines):
            client.awaited = (lines, request.id, Clock.now + time)
        }
    }

    private func send(
        _ bodies: [(inout JSONWriter) -> Void], _ id: Int64?, to client: ControlSocketClient
    ) throws(ControlSocketClient.Ending) {
        var octets: [UInt8] = []
        for (index, body) in bodies.enumerated() {
            octets += line(id, hasMore: index < bodies.count - 1, body)
        }
        try client.send(octets)
    }

    private func attempt(
        _ client: ControlSocketClient, _ body: (ControlSocketClient) throws(ControlSocketClient.Ending) -> Void
    ) {
        do {
            try body(client)
            if client.isWaitingToWrite != client.isWatchedForWriting {
                client.isWatchedForWriting.toggle()
                loop.wait(
                    for: client.isWatchedForWriting ? .writing : .reading, client.token, descriptor: client.descriptor)
            }
        } catch {
            switch error {
            case .lineTooLong:
                try? client.send(refusal(nil, "a line is longer than \(ControlSocketClient.maximumLine) bytes"))
            case .tooSlow: log(.notice, "control socket: a client did not read what it watches, and was dropped")
            case .closed, .failed: break
            }
            loop.remove(client.token, descriptor: client.descriptor)
            clients.removeAll { $0 === client }
        }
    }

    // MARK: Lines

    /// One line of an answer: `id` if the request had one, `ok`, `more` unless it is the last one, and the members that
    /// `body` writes.
    private func line(_ id: Int64?, hasMore: Bool = false, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
        begin(id, isFine: true)
        if hasMore {
            writer.key("more")
            writer.boolean(true)
        }
        body(&writer)
        return end()
    }

    private func refusal(_ id: Int64?, _ reason: String) -> [UInt8] {
        begin(id, isFine: false)
        writer.key("error")
        writer.string(reason)
        return end()
    }

    private func begin(_ id: Int64?, isFine: Bool) {
        writer.reset()
        writer.beginObject()
        if let id {
            writer.key("id")
            writer.integer(id)
        }
        writer.key("ok")
        writer.boolean(isFine)
    }

    private func end() -> [UInt8] {
        writer.endObject()
        writer.newline()
        return writer.bytes
    }
}
