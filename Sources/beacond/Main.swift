// SPDX-License-Identifier: Apache-2.0

import Configuration
import Glibc

@main
enum Main {
    /// The version of the program; CHANGELOG.md tells what is in it.
    static let version = "0.1.0"

    static let commands = [
        RunCommand.command, ReplayCommand.command, DecodeCommand.command, CheckCommand.command, SampleCommand.command,
        SchemaCommand.command, SinksCommand.command, ScanCommand.command, StateCommand.command, ReloadCommand.command,
        ApproveCommand.command, DisapproveCommand.command,
        AdaptersCommand.command, DoctorCommand.command, RecordCommand.command, AdvertiseCommand.command,
        PlanCommand.command, CalibrateCommand.command, ExplainCommand.command,
    ]

    static func main() {
        // A reader that went away is an error of write(2), not a signal that ends the program unheard.
        signal(SIGPIPE, SIG_IGN)
        do {
            exit(try run(CommandLine.arguments.dropFirst()).rawValue)
        } catch {
            printError(error.message)
            exit(error.status.rawValue)
        }
    }

    private static func run(_ words: ArraySlice<String>) throws(CommandError) -> ExitStatus {
        guard let word = words.first else {
            throw CommandError(.usage, "no command given\n\(overview)")
        }
        switch word {
        case "--version", "version":
            try StandardOutput.print("beacond \(version)\n")
            return .success
        case "--help", "-h", "help":
            guard let topic = words.dropFirst().first else {
                try StandardOutput.print(overview)
                return .success
            }
            try StandardOutput.print(try command(topic).help)
            return .success
        default:
            let command = try command(word)
            let rest = words.dropFirst()
            if rest.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
                try StandardOutput.print(command.help)
                return .success
            }
            return try command.run(try Arguments(rest, for: command))
        }
    }

    private static func command(_ name: String) throws(CommandError) -> Command {
        if let command = commands.first(where: { $0.name == name }) { return command }
        let near = Suggestion.nearest(to: name, in: commands.map(\.name))
        let hint = near.map { "; did you mean \"\($0)\"?" } ?? ""
        throw CommandError(.usage, "unknown command \"\(name)\"\(hint)\n\(overview)")
    }

    private static var overview: String {
        let width = commands.map(\.name.count).max() ?? 0
        var text = """
            Usage: beacond COMMAND [OPTION]...

            A gateway for Bluetooth LE beacons: it scans, knows which beacon is present,
            and tells an MQTT broker, a file or a terminal.

            Commands:

            """
        for command in commands {
            text +=
                "  \(command.name)\(String(repeating: " ", count: width - command.name.count + 2))\(command.summary)\n"
        }
        return text + """

            "beacond COMMAND --help" explains a command; "beacond --version" tells the version.
            Exit status: 0 success, 1 failure, 64 usage, 66 no input, 69 no radio
            or no daemon, 74 output error, 75 in use by another process, 78 configuration.

            """
    }

    private static func printError(_ message: String) {
        let bytes = Array("beacond: \(message)\(message.hasSuffix("\n") ? "" : "\n")".utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
