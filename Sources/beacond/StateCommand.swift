// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import LinuxIO

/// `beacond state`: what the running daemon knows.
enum StateCommand {
    static let socket = Option("--socket", "PATH", "the daemon's control socket, where it is not in its usual place")

    static let command = Command(
        name: "state", operands: "", operandCount: 0...0,
        summary: "Tells what the running daemon knows: beacons, regions, adapters, sinks.",
        options: [Option("--json", nil, "the answer of the daemon, one JSON object a line"), socket],
        details: """
            Exit status 69 when no daemon runs, and when it says that it is not well.
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let state: [(text: [UInt8], node: Node)]
        let health: [(text: [UInt8], node: Node)]
        do throws(ControlConnection.Failure) {
            let connection = try ControlConnection(path: arguments["--socket"])
            state = try connection.ask("state")
            health = try connection.ask("health")
        } catch { throw CommandError(error) }
        if arguments.has("--json") {
            for line in state + health { try StandardOutput.write(line.text + [UInt8(ascii: "\n")]) }
        } else {
            try StandardOutput.print(report(state.map(\.node), health.map(\.node)))
        }
        if case .boolean(true) = health.last?.node["healthy"]?.content { return .success }
        return .noRadio
    }

    private static func report(_ state: [Node], _ health: [Node]) -> String {
        let formats = FrameDecoder().catalog
        let now = Clock.now
        var text = ""
        func number(_ key: String) -> String { state.last?[key]?.integer.map(String.init) ?? "-" }
        if let gateway = state.last {
            let uptime = TimeInterval.seconds(Int64(gateway["uptime"]?.number ?? 0))
            text += "gateway  \(gateway["gateway"]?.text ?? "-"), version \(gateway["version"]?.text ?? "-"), "
            text += "up \(DurationText.text(uptime)), \(number("reports")) reports, \(number("present")) present\n"
        }
        if case .object(let counts) = state.last?["malformed"]?.content, !counts.isEmpty {
            let words = counts.map { "\($0.value.integer ?? 0) \($0.key)" }
            text += "packets  malformed: \(words.joined(separator: ", "))\n"
        }
        for trouble in health.last?["troubles"]?.elements ?? [] {
            text += "trouble  \(TerminalText.line(trouble.text ?? ""))\n"
        }
        for adapter in state.compactMap({ $0["adapter"] }) {
            text += "adapter  \(adapter["adapter"]?.text ?? "-")  \(adapter["state"]?.text ?? "-")"
            let words = ["stolen_scans", "restarts", "resets", "suspensions", "dropped_packets", "unknown_packets"]
                .compactMap { key in
                    adapter[key]?.integer.flatMap { $0 > 0 ? "\($0) \(String(key.map { $0 == "_" ? " " : $0 }))" : nil }
                }
            text += words.isEmpty ? "\n" : "; \(words.joined(separator: ", "))\n"
        }
        text += RadioTable.text(state.compactMap { $0["radio"] })
        for sink in state.compactMap({ $0["sink"] }) {
            text += "sink     \(sink["sink"]?.text ?? "-")  \(sink["state"]?.text ?? "-")"
            for role in ["states", "transitions", "sightings"] {
                guard let counts = sink[role] else { continue }
                let words = ["written", "queued", "rejected", "dropped", "conflated"].compactMap { word in
                    counts[word]?.integer.flatMap { $0 > 0 ? "\($0) \(word)" : nil }
                }
                text += "; \(role): \(words.isEmpty ? "none yet" : words.joined(separator: ", "))"
            }
            text += "\n"
        }
        for region in state.compactMap({ $0["region"] }) {
            text += "region   \(TerminalText.column(region["region"]?.text ?? "-", 20))  "
            text += "\(region["state"]?.text ?? "-"), \(region["inside"]?.integer ?? 0) inside\n"
        }
        for beacon in state.compactMap({ $0["beacon"] }) {
            guard let identity = ScanRow.identity(of: beacon, formats) else { continue }
            var row = ScanRow(identity: identity, at: now)
            row.take(beacon, at: now, isFirst: true)
            let cells = ScanTable.cells(row, name: 60, at: now).prefix(6)
            text += "beacon   \(cells.joined(separator: "  ").trimmingEnd)\n"
        }
        return text
    }

}

/// `beacond reload`: the running daemon reads its configuration again.
enum ReloadCommand {
    static let command = Command(
        name: "reload", operands: "", operandCount: 0...0,
        summary: "Makes the running daemon read its configuration again.",
        options: [StateCommand.socket],
        details: """
            A configuration with a mistake changes nothing: what is wrong is printed, and the
            exit status is 78. SIGHUP does the same without an answer.
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let connection: ControlConnection
        do { connection = try ControlConnection(path: arguments["--socket"]) } catch { throw CommandError(error) }
        do throws(ControlConnection.Failure) { _ = try connection.ask("reload") } catch {
            if case .refused(let reason) = error { throw CommandError(.configuration, reason) }
            throw CommandError(error)
        }
        try StandardOutput.print("the configuration was read again\n")
        return .success
    }
}
