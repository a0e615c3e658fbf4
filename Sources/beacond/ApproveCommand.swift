// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration

/// `beacond approve`: the running daemon treats a beacon as if its configuration named it.
enum ApproveCommand {
    static let command = Command(
        name: "approve", operands: "[BEACON]", operandCount: 0...1,
        summary: "Makes the running daemon know one more beacon by name; without one, lists those.",
        options: [
            Option("--alias", "NAME", "the name that people know it by"),
            Option("--json", nil, "the answer of the daemon, one JSON object a line"), StateCommand.socket,
        ],
        details: """
            BEACON is FORMAT IDENTITY as beacond scan shows it, or its identity alone when it is
            present or an iBeacon. From then on it is as if it stood in the configuration file: it
            has states, and Home Assistant is told of it. The daemon keeps what is approved, at
            most \(ApprovedBeacons.capacity) beacons, in approved.json in its state directory.

            Examples:
              beacond approve --alias keys fda50693-a4e2-4fb1-afcf-c6eb07647825/10/7
              beacond approve "eddystone-uid 8b0ca750095477cb3e77/0123456789ab"
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        try ask("approve", arguments) { writer in
            if let beacon = arguments.operands.first {
                writer.key("beacon")
                writer.string(beacon)
            }
            if let alias = arguments["--alias"] {
                writer.key("alias")
                writer.string(alias)
            }
        }
    }

    /// Asks, and prints what is approved then.
    static func ask(
        _ verb: String, _ arguments: Arguments, _ parameters: (inout JSONWriter) -> Void
    ) throws(CommandError) -> ExitStatus {
        let answer: [(text: [UInt8], node: Node)]
        do throws(ControlConnection.Failure) {
            answer = try ControlConnection(path: arguments["--socket"]).ask(verb, parameters)
        } catch { throw CommandError(error) }
        if arguments.has("--json") {
            for line in answer { try StandardOutput.write(line.text + [UInt8(ascii: "\n")]) }
            return .success
        }
        let formats = FrameDecoder().catalog
        var text = ""
        for beacon in answer.compactMap({ $0.node["beacon"] }) {
            text += "approved  \(TerminalText.line(ScanRow.identity(of: beacon, formats) ?? "-"))"
            if let alias = beacon["alias"]?.text { text += "  \(TerminalText.line(alias))" }
            text += "\n"
        }
        try StandardOutput.print(text.isEmpty ? "no beacon is approved\n" : text)
        return .success
    }
}

/// `beacond disapprove`: takes an approved beacon out again.
enum DisapproveCommand {
    static let command = Command(
        name: "disapprove", operands: "BEACON", operandCount: 1...1,
        summary: "Takes a beacon out again that was approved.",
        options: [Option("--json", nil, "the answer of the daemon, one JSON object a line"), StateCommand.socket],
        details: """
            BEACON is its alias or its identity. The states that a broker keeps of it are removed,
            and it disappears from Home Assistant.
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        try ApproveCommand.ask("disapprove", arguments) { writer in
            writer.key("beacon")
            writer.string(arguments.operands[0])
        }
    }
}
