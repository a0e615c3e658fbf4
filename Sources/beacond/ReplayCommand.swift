// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Glibc
import HCI
import LinuxIO
import Scanner
import SinkKit

/// `beacond replay`: a capture or a recording of sightings as fast as it can be read, on its own clock.
enum ReplayCommand {
    static let command = Command(
        name: "replay", operands: "FILE", operandCount: 1...1,
        summary: "Reads a capture or a recording at full speed and prints what beacond makes of it.",
        options: [
            Option("--emit", "WHAT", "reports, sightings or events (default), as JSON lines on standard output"),
            Option("--config", "FILE", "formats, beacons, regions and presence settings; the sinks in it are not used"),
            Option("--sink", "KIND", "gives the events to a sink of this kind instead of printing them"),
        ],
        details: """
            FILE is a btsnoop capture; or, when its name ends in .jsonl, JSON lines of sightings, of
            what the radios do, and of the time, in order of "t", in seconds. docs/presence.md has
            their keys. Events then say their "t", too.

            reports: every advertising report, with the frames found in it.
            sightings: every advertisement of a beacon.
            events: what a sink would get: sightings at the report interval, enter, exit, regions.

            A summary follows on standard error.
            """,
        run: run)

    private enum Emission: String, CaseIterable { case reports, sightings, events }

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let names = NameTable()
        let word = try arguments.choice("--emit", of: Emission.allCases.map(\.rawValue))
        let emission = word.flatMap(Emission.init) ?? .events
        let configuration =
            if let path = arguments["--config"] {
                try ConfigurationLoading.load(path: path, names: names)
            } else {
                try ConfigurationLoading.defaults(names: names)
            }
        let decoder = configuration.decoder
        var sink: AgentConfiguration.SinkInstance?
        if let kind = arguments["--sink"] {
            guard emission == .events else {
                throw arguments.usage("--sink takes events; leave out --emit \(emission)")
            }
            sink = try ConfigurationLoading.sink(kind)
        }
        let path = arguments.operands[0]
        let input = Replay.Input(path: path)
        if case .recording = input, emission == .reports {
            throw arguments.usage("--emit reports needs a capture; a recording of sightings has none")
        }
        let beginning = Clock.now
        let summary: ReplaySummary
        switch emission {
        case .reports: summary = try emitReports(path, decoder)
        case .sightings, .events:
            let replay = Replay(configuration, names: names, input: input)
            if let sink {
                summary = try perform { () throws(AgentError) in
                    try replay.run(into: sink, registry: builtinSinks, version: Main.version, log: Log(level: .notice))
                }
            } else {
                summary = try print(replay, input, everySighting: emission == .sightings, decoder, names)
            }
        }
        report(summary, Clock.now - beginning)
        return summary.failure == nil ? .success : .noInput
    }

    private static func perform(
        _ body: () throws(AgentError) -> ReplaySummary
    ) throws(CommandError) -> ReplaySummary {
        do { return try body() } catch {
            if case .input(let text) = error { throw CommandError(.noInput, text) }
            throw CommandError(.failure, error.description)
        }
    }

    /// Events as JSON lines on standard output.
    private static func print(
        _ replay: Replay, _ input: Replay.Input, everySighting: Bool, _ decoder: FrameDecoder, _ names: NameTable
    ) throws(CommandError) -> ReplaySummary {
        var encoder = EventEncoder(gateway: "replay", vocabulary: Vocabulary(formats: decoder.catalog, names: names))
        if case .recording = input { encoder.writesMoment = true }
        var output = StandardOutput()
        var failure: CommandError?
        let summary = try perform { () throws(AgentError) in
            try replay.run(everySighting: everySighting) { event in
                let role: DeliveryRoles = event.isTransition ? .transitions : .sightings
                encoder.encode(Delivery(role: role, event: copy event), stream: "", into: &output.writer)
                do throws(CommandError) { try output.endLine() } catch { failure = failure ?? error }
                return failure == nil
            }
        }
        if let failure { throw failure }
        try output.flush()
        return summary
    }

    /// Every advertising report as a JSON line on standard output.
    private static func emitReports(_ path: String, _ decoder: FrameDecoder) throws(CommandError) -> ReplaySummary {
        var summary = ReplaySummary()
        var output = StandardOutput()
        var failure: CommandError?
        do throws(CaptureReader.CaptureError) {
            try readReports(path, &summary) { frame, time, report, data in
                output.writer.beginObject()
                output.writer.key("frame")
                output.writer.integer(frame)
                output.writer.key("time")
                output.writer.time(WallTime(milliseconds: time.nanoseconds / 1_000_000))
                ReportWriter.write(report, data, &output.writer)
                output.writer.key("frames")
                ReportWriter.writeFrames(data, decoder, &output.writer)
                output.writer.endObject()
                do throws(CommandError) { try output.endLine() } catch { failure = failure ?? error }
            }
        } catch {
            guard summary.packetCount > 0 else { throw CommandError(.noInput, error.description) }
            summary.failure = error.description
        }
        if let failure { throw failure }
        try output.flush()
        return summary
    }

    private static func readReports(
        _ path: String, _ summary: inout ReplaySummary,
        _ body: (Int, MonotonicTime, borrowing AdvertisingReport, Span<UInt8>) -> Void
    ) throws(CaptureReader.CaptureError) {
        var parser = AdvertisingReportParser()
        var reader = try CaptureReader(path: path)
        var packetCount: UInt64 = 0
        defer {
            summary.packetCount = packetCount
            summary.reportCount = parser.reportCount
            summary.malformed = parser.malformed
            summary.endedEarly = reader.endedEarly
        }
        while try reader.next({ frame, time, packet in
            packetCount += 1
            parser.parse(packet, at: time) { report, data in body(frame, time, report, data) }
        }) {}
    }

    private static func report(_ summary: ReplaySummary, _ elapsed: TimeInterval) {
        var lines: [(String, String)] =
            if let count = summary.lineCount {
                [("lines", "\(count)"), ("sightings", "\(summary.sightingCount)")]
            } else {
                [
                    ("packets", "\(summary.packetCount)"), ("reports", "\(summary.reportCount)"),
                    ("malformed", "\(summary.malformed.total)"),
                ]
            }
        for reason in MalformedReason.allCases where summary.malformed[reason] > 0 {
            lines.append(("malformed_\(reason.word)", "\(summary.malformed[reason])"))
        }
        if let beacons = summary.beaconCount { lines.append(("beacons", "\(beacons)")) }
        if let events = summary.eventCount { lines.append(("events", "\(events)")) }
        for (word, count) in summary.counts { lines.append((word, "\(count)")) }
        var writer = JSONWriter()
        writer.decimal(elapsed.seconds, decimals: 3)
        lines.append(("seconds", writer.text))
        let rate = Int(Double(summary.lineCount ?? summary.packetCount) / max(elapsed.seconds, 1e-9))
        lines.append((summary.lineCount == nil ? "packets_per_second" : "lines_per_second", "\(rate)"))
        if summary.endedEarly { lines.append(("note", "the capture ends in the middle of a record")) }
        if let failure = summary.failure { lines.append(("error", failure)) }
        let width = lines.map(\.0.count).max() ?? 0
        let text = lines.map { "\($0)\(String(repeating: " ", count: width - $0.count + 2))\($1)\n" }.joined()
        let bytes = Array(text.utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
