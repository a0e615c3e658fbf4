// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration
import LinuxIO

/// Where live events are shown or gathered.
protocol EventViewer: AnyObject {
    /// - Parameters:
    ///   - line: the event as JSON.
    ///   - event: the same, read.
    func take(_ line: [UInt8], _ event: Node)
    /// No more events wait at the moment.
    func flush()
    /// The loop's tick.
    func tick()
    /// What ends it: the output could not be written.
    var failure: CommandError? { get }
}

/// Events as they happen: from the daemon of this machine when one runs, else from a source that is opened for a while.
struct LiveEvents {
    private let source: String
    private let configuration: String?
    private let reportInterval: TimeInterval
    private let connection: ControlConnection?

    /// - Parameters:
    ///   - source: what to open instead of asking a daemon.
    ///   - configuration: a file with the names of beacons, for a source.
    ///   - socket: the daemon's, where it is not in its usual place; then there must be one.
    ///   - reportInterval: between two sightings of one beacon, from a source. A daemon has its own.
    init(
        source: String?, configuration: String?, socket: String?, reportInterval: TimeInterval = .milliseconds(500)
    ) throws(CommandError) {
        self.source = source ?? "hci:0"
        self.configuration = configuration
        self.reportInterval = reportInterval
        connection = try source == nil ? Self.connect(socket) : nil
    }

    /// For a title.
    var origin: String { connection == nil ? source : "through the daemon" }

    func run(
        for duration: TimeInterval, in loop: CommandLoop, into viewer: some EventViewer
    ) throws(CommandError) {
        if let connection {
            try watch(connection, duration, loop, viewer)
        } else {
            try listen(loop, viewer)
        }
    }

    /// nil when no daemon runs and none was named.
    private static func connect(_ path: String?) throws(CommandError) -> ControlConnection? {
        do { return try ControlConnection(path: path) } catch {
            if path == nil, case .noDaemon = error { return nil }
            throw CommandError(error)
        }
    }

    /// What the daemon sees.
    private func watch(
        _ connection: ControlConnection, _ duration: TimeInterval, _ loop: CommandLoop, _ viewer: some EventViewer
    ) throws(CommandError) {
        var failure: ControlConnection.Failure?
        func ask() throws(ControlConnection.Failure) {
            try connection.send("watch") { writer in
                writer.key("duration")
                // A moment more, so that it is this side that ends first; an hour is the most that one request can have,
                // and then comes another.
                writer.string("\(min(duration.milliseconds + 1000, 3_600_000))ms")
            }
        }
        do { try ask() } catch { throw CommandError(error) }
        do {
            _ = try loop.loop.add(connection.descriptor) {
                guard let lines = connection.receive() else {
                    failure = .lost("the daemon ended")
                    return loop.stop()
                }
                for line in lines {
                    guard let answer = try? Document(line).root else { continue }
                    if let reason = answer["error"]?.text {
                        failure = .refused(reason)
                        return loop.stop()
                    }
                    guard let event = answer["event"] else {
                        do throws(ControlConnection.Failure) { try ask() } catch {
                            failure = error
                            return loop.stop()
                        }
                        continue
                    }
                    // The event is the last member: its text goes up to the brace of the line.
                    viewer.take(Array(line[event.place.offset..<line.count - 1]), event)
                    if viewer.failure != nil { return loop.stop() }
                }
                viewer.flush()
            }
        } catch { throw CommandError(.failure, error.description) }
        try loop.run(tick: { viewer.tick() })
        if let failure { throw CommandError(failure) }
    }

    /// What an opened source brings.
    private func listen(_ loop: CommandLoop, _ viewer: some EventViewer) throws(CommandError) {
        let names = NameTable()
        var configuration =
            if let path = configuration { try ConfigurationLoading.load(path: path, names: names) } else {
                try ConfigurationLoading.defaults(names: names)
            }
        configuration.sources = [source]
        let session: SourceSession
        do throws(AgentError) {
            session = try SourceSession(
                configuration, names: names, reportInterval: reportInterval,
                .events { line in
                    guard let event = try? Document(line).root else { return }
                    viewer.take(line, event)
                })
        } catch { throw CommandError(error) }
        defer { session.stop() }
        do { try session.start(in: loop.loop) } catch { throw CommandError(.failure, error.description) }
        try loop.run(
            deadline: { session.hasEnded || viewer.failure != nil ? .zero : session.nextDeadline },
            due: {
                session.advance()
                viewer.flush()
                if session.hasEnded || viewer.failure != nil { loop.stop() }
            }, tick: { viewer.tick() })
        if let failure = session.failure { throw CommandError(.noRadio, failure) }
    }
}
