// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration
import Glibc
import LinuxIO

/// `beacond scan`: what is in the air, for somebody who looks.
enum ScanCommand {
    static let command = Command(
        name: "scan", operands: "", operandCount: 0...0,
        summary: "Shows the beacons that are heard now: a live table, or lines for a pipe.",
        options: [
            Option("--duration", "TIME", "how long; 10s unless given"),
            Option("--source", "SOURCE", "opens this source itself instead of asking the running daemon"),
            Option("--uuid", "UUID", "only beacons with this UUID"),
            Option("--major", "NUMBER", "only beacons with this major value"),
            Option("--minor", "NUMBER", "only beacons with this minor value"),
            Option("--rssi", "DBM", "only beacons at least this strong, for instance -75"),
            Option("--recent", "TIME", "only beacons heard within this time, in the table; 30s unless given"),
            Option("--json", nil, "every event as a JSON object on a line (docs/events.md)"),
            Option("--config", "FILE", "with --source: a configuration that gives beacons their aliases"),
            Option("--socket", "PATH", "the daemon's control socket, where it is not in its usual place"),
        ],
        details: """
            Speaks to the daemon of this machine when one runs. Otherwise, or with --source, it
            opens the radio itself (hci:0 unless given): that needs the capability CAP_NET_RAW.
            On a terminal it draws a table, strongest beacon first, until the time is over or
            Ctrl-C is pressed. EVERY is the mean time between advertisements that were heard.

            Examples:
              beacond scan
              beacond scan --duration 1m --rssi -70 --json
              sudo beacond scan --source hci:1 --uuid fda50693-a4e2-4fb1-afcf-c6eb07647825
            """,
        run: run)

    /// A scan that nobody limits is easily forgotten, and costs the beacons' batteries nothing but the gateway's radio.
    private static let defaultDuration = TimeInterval.seconds(10)
    private static let defaultRecency = TimeInterval.seconds(30)
    private static let redrawInterval = TimeInterval.milliseconds(500)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let duration = try arguments.interval("--duration") ?? defaultDuration
        var filter = ScanFilter()
        filter.uuid = try arguments.uuid("--uuid").map { octets in
            var text: [UInt8] = []
            UUIDText.append(octets.span, to: &text)
            return String(decoding: text, as: UTF8.self)
        }
        filter.major = try arguments.number("--major")
        filter.minor = try arguments.number("--minor")
        filter.strength = try arguments.number("--rssi", Int8.self).map(Int64.init)
        let recency = try arguments.interval("--recent") ?? defaultRecency
        let source = arguments["--source"]
        if source == nil, arguments.has("--config") { throw arguments.usage("--config goes with --source") }
        let events = try LiveEvents(
            source: source, configuration: arguments["--config"], socket: arguments["--socket"])
        let isTable = !arguments.has("--json") && isatty(STDOUT_FILENO) == 1
        let view = ScanView(
            filter, isTable: isTable, isJSON: arguments.has("--json"),
            table: ScanTable(
                title: "beacond scan \(events.origin)",
                recency: recency, formats: ConfigurationLoading.builtinFormats))
        let loop = try CommandLoop(duration: duration, tickEvery: redrawInterval)
        defer { view.end() }
        try events.run(for: duration, in: loop, into: view)
        if let failure = view.failure { throw failure }
        return .success
    }
}

/// Where the events of a scan are shown.
private final class ScanView: EventViewer {
    private let filter: ScanFilter
    private let isTable: Bool
    private let isJSON: Bool
    private var table: ScanTable
    private var output = ScanOutput()
    private var isDrawn = false
    private(set) var failure: CommandError?

    init(_ filter: ScanFilter, isTable: Bool, isJSON: Bool, table: ScanTable) {
        self.filter = filter
        self.isTable = isTable
        self.isJSON = isJSON
        self.table = table
    }

    func take(_ line: [UInt8], _ event: Node) {
        let isOfBeacon = event["format"] != nil
        guard !isOfBeacon || filter.includes(event) else { return }
        let now = Clock.now
        table.take(event, at: now)
        if isJSON {
            output.append(line)
        } else if !isTable, isOfBeacon {
            output.append(table.line(event))
        }
    }

    func tick() {
        guard isTable else { return }
        let size = Terminal.size(of: STDOUT_FILENO) ?? (columns: 80, rows: 24)
        isDrawn = true
        write(Array(table.frame(at: Clock.now, columns: size.columns, rows: size.rows).utf8))
    }

    func flush() {
        guard !output.bytes.isEmpty else { return }
        write(output.take())
    }

    func end() {
        flush()
        guard isTable else { return }
        tick()
        write(Array(ScanTable.ending.utf8))
    }

    private func write(_ bytes: [UInt8]) {
        do throws(CommandError) { try StandardOutput.write(bytes) } catch { failure = failure ?? error }
    }
}

/// Lines that wait to be written together.
private struct ScanOutput {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ line: [UInt8]) {
        bytes += line
        bytes.append(UInt8(ascii: "\n"))
    }

    mutating func take() -> [UInt8] {
        defer { bytes.removeAll(keepingCapacity: true) }
        return bytes
    }
}
