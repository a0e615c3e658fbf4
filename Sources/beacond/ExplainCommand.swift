// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import Glibc
import LinuxIO

/// `beacond explain`: why beacond said of a beacon what it said.
enum ExplainCommand {
    static let command = Command(
        name: "explain", operands: "BEACON FILE", operandCount: 2...2,
        summary: "Tells the story of one beacon in a capture or a recorded run: each decision and why.",
        options: [
            Option("--config", "FILE", "presence settings, beacons and regions, as the daemon has them"),
            Option("--plot", "FILE", "also draws it: signal, silences and exit time, as .svg or .html"),
            Option("--force", nil, "replaces a plot that is there"),
        ],
        details: """
            FILE is a btsnoop capture (beacond record, btmon -w) or a recording of sightings (the
            lines with "t" that beacond replay reads), which go down the same road as in the
            daemon; or what the sink json wrote, whose decisions are shown as they were.

            BEACON is \(BeaconSelection.forms).

            Examples:
              beacond explain keys walk.btsnoop --config /etc/beacond/plugins.json
              beacond explain fda50693-a4e2-4fb1-afcf-c6eb07647825/10/7 events.jsonl --plot keys.html
            """,
        run: run)

    /// A day of a busy gateway; what is larger is better cut with grep first.
    private static let maximumRun = 1 << 29
    /// Of a recording's first line.
    private static let longestLine = 4096
    private static let captureMagic = Array("btsnoop\0".utf8)

    private enum PlotFormat { case svg, html }

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let selection = BeaconSelection(text: arguments.operands[0])
        let path = arguments.operands[1]
        let plot = try plotFormat(arguments)
        let names = NameTable()
        let configuration =
            if let path = arguments["--config"] { try ConfigurationLoading.load(path: path, names: names) } else {
                try ConfigurationLoading.defaults(names: names)
            }
        let timeline: BeaconTimeline
        let isRecording = try isRecording(path)
        let isCapture = try isCapture(path)
        if isRecording || isCapture {
            let capture = CaptureTimeline(configuration, names: names, path: path, isRecording: isRecording)
            timeline = try capture.timeline(of: selection)
        } else {
            let text: [UInt8]
            do { text = try FileDescriptor.contents(of: path, limit: maximumRun) } catch {
                throw CommandError(.noInput, error.description)
            }
            var recorded = RecordedTimeline(formats: configuration.decoder.catalog, path: path)
            timeline = try recorded.timeline(of: selection, in: text)
        }
        let table = TimelineText(timeline).text
        try StandardOutput.print(table)
        if let plot, let path = arguments["--plot"] {
            let svg = TimelinePlot(timeline).svg
            let text = plot == .svg ? svg : TimelinePlot.page(svg, table)
            try write(text, to: path, replaces: arguments.has("--force"))
            StandardError.print("the plot is in \(path)\n")
        }
        return .success
    }

    private static func plotFormat(_ arguments: Arguments) throws(CommandError) -> PlotFormat? {
        guard let path = arguments["--plot"] else { return nil }
        if path.hasSuffix(".svg") { return .svg }
        if path.hasSuffix(".html") { return .html }
        throw arguments.usage("--plot \(path): expected a file that ends in .svg or .html")
    }

    /// Whether the first line that is one has a "t", which no event has.
    private static func isRecording(_ path: String) throws(CommandError) -> Bool {
        var beginning = [UInt8](repeating: 0, count: longestLine)
        do {
            let file = try FileDescriptor.open(path, O_RDONLY)
            let count = try file.read(into: &beginning) ?? 0
            let line = beginning[..<count].split(separator: UInt8(ascii: "\n")).first ?? []
            return (try? Document(Array(line)).root)?["t"] != nil
        } catch { throw CommandError(.noInput, SystemError("read", path, code: error.code).description) }
    }

    private static func isCapture(_ path: String) throws(CommandError) -> Bool {
        var beginning = [UInt8](repeating: 0, count: captureMagic.count)
        do {
            let file = try FileDescriptor.open(path, O_RDONLY)
            return try file.read(into: &beginning) == captureMagic.count && beginning == captureMagic
        } catch { throw CommandError(.noInput, SystemError("read", path, code: error.code).description) }
    }

    private static func write(_ text: String, to path: String, replaces: Bool) throws(CommandError) {
        do {
            let file = try FileDescriptor.open(path, O_WRONLY | O_CREAT | (replaces ? O_TRUNC : O_EXCL), mode: 0o644)
            let octets = Array(text.utf8)
            var written = 0
            while written < octets.count { written += try file.write(octets, from: written) ?? 0 }
        } catch {
            let hint = error.code == EEXIST ? "; --force replaces it" : ""
            throw CommandError(.inputOutput, SystemError("write", path, code: error.code).description + hint)
        }
    }

    /// The beacon is not in the file.
    static func unknown(_ selection: BeaconSelection, among others: [String], in path: String) -> CommandError {
        let shown = others.prefix(8).map { TerminalText.line($0) }
        var text = "\(path): no beacon \"\(TerminalText.line(selection.text))\" in it"
        if shown.isEmpty { text += ", nor any other" } else { text += "; there are " + shown.joined(separator: ", ") }
        if others.count > shown.count { text += " and \(others.count - shown.count) more" }
        return CommandError(.failure, text)
    }
}
