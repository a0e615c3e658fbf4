// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration
import Glibc
import LinuxIO
import Scanner

/// `beacond doctor`: why scanning does not work here, and the cure.
enum DoctorCommand {
    static let command = Command(
        name: "doctor", operands: "", operandCount: 0...0,
        summary: "Says why scanning does not work on this machine, with the cure.",
        options: [
            Option(
                "--config", "FILE", "a configuration to look at; plugins.json in the current folder if there is one"),
            Option("--json", nil, "one JSON object for each finding, on a line"),
            StateCommand.socket,
        ],
        details: """
            Each line begins with ok, note or problem; a cure stands below. An adapter that nobody
            of beacond uses is asked a harmless question and listened to for a second.

            Exit status 0 when scanning should work, 69 when there is a problem.
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        var doctor = Doctor()
        doctor.isInUse = { AdapterLocks.holder(of: $0, for: .scanning) != nil }
        var findings = doctor.examine()
        findings.append(clock)
        findings += daemon(arguments["--socket"])
        findings += configuration(arguments["--config"])
        var output = StandardOutput()
        for finding in findings {
            if arguments.has("--json") {
                write(finding, &output.writer)
                try output.endLine()
            } else {
                try StandardOutput.print(text(finding))
            }
        }
        try output.flush()
        let problems = findings.count { $0.grade == .problem }
        if !arguments.has("--json") {
            try StandardOutput.print(
                problems == 0
                    ? "\nScanning should work.\n" : "\n\(problems) problem\(problems == 1 ? "" : "s").\n")
        }
        return problems == 0 ? .success : .noRadio
    }

    private static var clock: Finding {
        Clock.isSynchronized
            ? Finding(.ok, "clock", "the system clock is synchronised")
            : Finding(
                .note, "clock", "the system clock is not synchronised; events say so until it is",
                cure: "timedatectl set-ntp true, or install chrony")
    }

    // MARK: The daemon

    private static func daemon(_ path: String?) -> [Finding] {
        let connection: ControlConnection
        do throws(ControlConnection.Failure) { connection = try ControlConnection(path: path) } catch {
            if case .noDaemon = error {
                return [Finding(path == nil ? .ok : .problem, "daemon", path == nil ? "none runs" : error.description)]
            }
            return [Finding(.note, "daemon", error.description)]
        }
        do throws(ControlConnection.Failure) {
            let answer = try connection.ask("health")
            var troubles: [Finding] = []
            if case .list(let list) = answer.last?.node["troubles"]?.content {
                troubles = list.compactMap(\.text).map { Finding(.problem, "daemon", $0) }
            }
            return troubles.isEmpty ? [Finding(.ok, "daemon", "it runs and is well (\(connection.path))")] : troubles
        } catch {
            return [
                Finding(
                    .problem, "daemon", error.description,
                    cure: "systemctl restart beacond; its log (journalctl -u beacond) may tell why")
            ]
        }
    }

    // MARK: The configuration

    private static func configuration(_ path: String?) -> [Finding] {
        guard let path = path ?? (isThere(ConfigurationLoading.defaultPath) ? ConfigurationLoading.defaultPath : nil)
        else {
            return [
                Finding(.ok, "configuration", "no \(ConfigurationLoading.defaultPath) here; name one with --config")
            ]
        }
        let configuration: AgentConfiguration
        do throws(CommandError) {
            configuration = try ConfigurationLoading.load(path: path, names: NameTable())
        } catch {
            return [Finding(.problem, "configuration", error.message, cure: "mend the file; beacond check \(path)")]
        }
        var findings = [Finding(.ok, "configuration", "\(path) is valid")]
        if let folder = configuration.stateDirectory {
            findings.append(
                unsafe access(folder, W_OK | X_OK) == 0
                    ? Finding(.ok, "state", "\(folder) can be written")
                    : Finding(
                        .problem, "state", "\(folder): \(SystemError.text(errno))",
                        cure: "make it and give it to the user that runs beacond (the service does so by itself: "
                            + "StateDirectory=)"))
        }
        return findings
    }

    private static func isThere(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    // MARK: Spelling

    private static func text(_ finding: Finding) -> String {
        var text = "\(TerminalText.column(finding.grade.rawValue, 7))  \(TerminalText.column(finding.subject, 13))  "
        // The problems of a configuration are several lines.
        let lines = finding.text.split(separator: "\n").map { TerminalText.line(String($0)) }
        text += lines.joined(separator: "\n" + String(repeating: " ", count: 24)) + "\n"
        if let cure = finding.cure { text += "\(String(repeating: " ", count: 24))\(cure)\n" }
        return text
    }

    private static func write(_ finding: Finding, _ writer: inout JSONWriter) {
        writer.beginObject()
        for (key, value) in [
            ("grade", finding.grade.rawValue), ("subject", finding.subject), ("text", finding.text),
        ] {
            writer.key(key)
            writer.string(value)
        }
        if let cure = finding.cure {
            writer.key("cure")
            writer.string(cure)
        }
        writer.endObject()
    }
}
