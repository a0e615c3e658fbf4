// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import LinuxIO
import Presence
import SinkKit

/// `beacond calibrate`: how strong a beacon is at a known distance, and how its signal falls.
enum CalibrateCommand {
    static let command = Command(
        name: "calibrate", operands: "", operandCount: 0...0,
        summary: "Measures how strong a beacon is at 1 m, and writes it for plugins.json.",
        options: [
            Option("--beacon", "BEACON", "the beacon; the strongest one unless given"),
            Option(
                "--point", "DISTANCE[=SOURCE]", "measures at this distance, as in 1m or 3m=btsnoop:FILE; repeatable"),
            Option("--duration", "TIME", "how long at each distance; 30s unless given"),
            Option("--source", "SOURCE", "opens this source itself instead of asking the running daemon"),
            Option("--config", "FILE", "gives beacons their aliases and formats"),
            Option("--socket", "PATH", "the daemon's control socket, where it is not in its usual place"),
        ],
        details: """
            On a terminal it guides: put the beacon 1 m from the radio, then, if you like, at
            more distances. Without a terminal, and with --point, it asks nothing: one distance
            by radio, or several that each name a source. The entry for plugins.json goes to
            standard output, all else to standard error.

            BEACON is \(BeaconSelection.forms).

            Examples:
              beacond calibrate
              beacond calibrate --beacon keys --point 1m --duration 1m > keys.json
              beacond calibrate --point 1m=btsnoop:near.btsnoop --point 4m=btsnoop:far.btsnoop
            """,
        run: run)

    private static let defaultDuration = TimeInterval.seconds(30)

    private struct Point {
        var distance: Double
        /// nil for the daemon, or the source of the command line.
        var source: String?
    }

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let names = NameTable()
        let path = arguments["--config"]
        let configuration =
            if let path { try ConfigurationLoading.load(path: path, names: names) } else {
                try ConfigurationLoading.defaults(names: names)
            }
        var session = CalibrateSession(
            configuration, names: names, path: path, source: arguments["--source"], socket: arguments["--socket"],
            selection: arguments["--beacon"].map(BeaconSelection.init),
            duration: try arguments.interval("--duration") ?? defaultDuration)
        let points = try points(arguments)
        if points.isEmpty, TerminalPrompt.isPossible {
            try session.guide()
        } else {
            for point in points.isEmpty ? [Point(distance: 1)] : points {
                try session.measure(at: point.distance, from: point.source)
            }
        }
        try session.finish()
        return .success
    }

    private static func points(_ arguments: Arguments) throws(CommandError) -> [Point] {
        var points: [Point] = []
        for text in arguments.all("--point") {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let distance = Calibration.distance(parts[0]) else {
                throw arguments.usage("--point \(text): expected a distance from 0.1m to 100m, as in 1m or 2.5m")
            }
            guard !points.contains(where: { $0.distance == distance }) else {
                throw arguments.usage("--point \(text): the same distance twice; the distances must differ")
            }
            points.append(Point(distance: distance, source: parts.count > 1 ? parts[1] : nil))
        }
        if points.count > 1, points.contains(where: { $0.source == nil }) {
            throw arguments.usage(
                "several distances need a source each, as in --point 3m=btsnoop:FILE; "
                    + "or leave --point out and be guided")
        }
        return points
    }
}

/// One calibration from the first distance to the entry.
private struct CalibrateSession {
    private let configuration: AgentConfiguration
    private let names: NameTable
    private let path: String?
    private let source: String?
    private let socket: String?
    private var selection: BeaconSelection?
    private let duration: TimeInterval
    private var calibration = Calibration()

    private static let captureScheme = "btsnoop:"
    private static let redrawInterval = TimeInterval.milliseconds(500)

    init(
        _ configuration: AgentConfiguration, names: NameTable, path: String?, source: String?, socket: String?,
        selection: BeaconSelection?, duration: TimeInterval
    ) {
        self.configuration = configuration
        self.names = names
        self.path = path
        self.source = source
        self.socket = socket
        self.selection = selection
        self.duration = duration
    }

    private var formats: FormatCatalog { configuration.decoder.catalog }

    /// Leads a person from place to place.
    mutating func guide() throws(CommandError) {
        StandardError.print(
            """
            Put the beacon 1 m from the radio, in sight of it, off the floor and away from metal,
            the way it will hang later. Stand aside: a body takes 10 dB.

            """)
        _ = try TerminalPrompt.ask("Press Enter when it is there. ")
        try measureUntilGood(at: 1)
        while true {
            let text = try TerminalPrompt.ask(
                "Put it at another distance and type how many metres (3 to 5 are good), or press Enter to finish: ")
            guard !text.isEmpty else { return }
            if let distance = Calibration.distance(text) {
                try measureUntilGood(at: distance)
            } else {
                StandardError.print("Expected a distance from 0.1 to 100, in metres.\n")
            }
        }
    }

    private mutating func measureUntilGood(at distance: Double) throws(CommandError) {
        while try !measure(at: distance, from: nil) {
            guard try TerminalPrompt.ask("Press Enter to measure again, or type k to keep it: ").isEmpty else { return }
        }
    }

    /// Measures at one distance; false when the spread is too wide.
    @discardableResult
    mutating func measure(at distance: Double, from own: String?) throws(CommandError) -> Bool {
        let source = own ?? source
        let collector = StrengthCollector(
            selection, formats: formats, duration: duration, showsProgress: TerminalPrompt.isPossible)
        if let source, source.hasPrefix(Self.captureScheme) {
            try read(String(source.dropFirst(Self.captureScheme.count)), collector)
        } else {
            let events = try LiveEvents(source: source, configuration: path, socket: socket, reportInterval: .zero)
            StandardError.print(
                "Listening for \(DurationText.text(duration)) at \(Calibration.words(distance)), \(events.origin).\n")
            let loop = try CommandLoop(duration: duration, tickEvery: Self.redrawInterval)
            defer { collector.end() }
            try events.run(for: duration, in: loop, into: collector)
            guard !loop.wasInterrupted else { throw CommandError(.failure, "ended before it was done") }
        }
        let (beacon, spread) = try choose(collector.ranked)
        StandardError.print("At \(Calibration.words(distance)): \(spread.words).\n")
        calibration.add(beacon, spread, at: distance)
        guard let warning = Calibration.warning(spread) else { return true }
        StandardError.print(warning)
        return false
    }

    private func read(_ path: String, _ collector: StrengthCollector) throws(CommandError) {
        let encoder = EventEncoder(gateway: "", vocabulary: Vocabulary(formats: formats, names: names))
        var writer = JSONWriter()
        do throws(AgentError) {
            let summary = try Replay(configuration, names: names, input: .capture(path: path)).run(everySighting: true)
            { event in
                writer.reset()
                encoder.encode(Delivery(role: .sightings, event: copy event), stream: "", into: &writer)
                if let node = try? Document(writer.bytes).root { collector.take(writer.bytes, node) }
                return true
            }
            if let failure = summary.failure { StandardError.print("warning: \(failure)\n") }
        } catch { throw CommandError(error) }
    }

    /// The beacon that is meant, and from then on that one.
    private mutating func choose(
        _ ranked: [StrengthCollector.Beacon]
    ) throws(CommandError) -> (StrengthCollector.Beacon, StrengthSpread) {
        guard let beacon = ranked.first, let spread = beacon.spread else {
            let what = selection.map { "\($0.text) was" } ?? "no beacon was"
            let cure = "; see what is in the air with beacond scan"
            throw CommandError(.failure, selection == nil ? "\(what) heard\(cure)" : "\(what) not heard\(cure)")
        }
        guard spread.count >= Calibration.leastCount else {
            throw CommandError(
                .failure,
                "only \(spread.count) packets of \(beacon.identity) were heard, \(Calibration.leastCount) are needed; "
                    + "give a longer --duration")
        }
        if selection == nil {
            StandardError.print("The strongest beacon is \(TerminalText.line(beacon.identity)).\n")
            if ranked.count > 1, let other = ranked[1].spread, other.count >= Calibration.leastCount,
                spread.center - other.center < 6
            {
                let difference = TerminalText.number(spread.center - other.center, decimals: 1)
                StandardError.print(
                    "warning: \(TerminalText.line(ranked[1].identity)) is only \(difference) dB weaker; name yours with --beacon.\n"
                )
            }
            selection = BeaconSelection(text: beacon.identity)
        } else if calibration.beacon == nil {
            StandardError.print("The beacon is \(TerminalText.line(beacon.identity)).\n")
        }
        return (beacon, spread)
    }

    func finish() throws(CommandError) {
        let fit = try calibration.fit(assuming: configuration.presence.pathLossExponent)
        let snippet = try calibration.snippet(fit, formats)
        StandardError.print(calibration.words(fit) + "For plugins.json (in \"beacons\"):\n")
        try StandardOutput.print(snippet)
    }
}
