// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration
import LinuxIO

/// `beacond run`: the daemon.
enum RunCommand {
    static let command = Command(
        name: "run", operands: "", operandCount: 0...0,
        summary: "Scans, tracks who is present, and feeds the sinks, until it is told to end.",
        options: [
            Option("--config", "FILE", "the configuration; plugins.json in the current folder if there is one"),
            Option("--source", "SOURCE", "replaces the configured sources; may be given several times"),
            Option(
                "--sink", "KIND", "replaces the configured sinks by one at its defaults; may be given several times"),
            Option("--duration", "TIME", "ends by itself after this time, for instance 10s"),
        ],
        details: """
            Sources: hci:0 (an adapter), btsnoop:FILE (a capture, at its own pace),
            simulate:FILE (a scenario). An adapter needs the capability CAP_NET_RAW.

            SIGTERM and SIGINT end it; SIGHUP reads the configuration again; SIGUSR1 reopens
            files; SIGUSR2 turns the debug log on and off.

            Examples:
              beacond run --source hci:0 --sink stdout
              beacond run --config /etc/beacond/plugins.json
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let names = NameTable()
        var duration: TimeInterval?
        if let text = arguments["--duration"] {
            duration = DurationText.interval(text)
            if duration == nil { throw arguments.usage("--duration \(text): expected a time with its unit, as in 10s") }
        }
        let sources = arguments.all("--source")
        var sinks: [AgentConfiguration.SinkInstance] = []
        for kind in arguments.all("--sink") {
            let sink = try ConfigurationLoading.sink(kind)
            if !sinks.contains(where: { $0.kind == kind }) { sinks.append(sink) }
        }
        // Without a file, what is on the command line must be enough to run.
        let path = arguments["--config"] ?? (sources.isEmpty || sinks.isEmpty ? ConfigurationLoading.defaultPath : nil)
        func apply(_ configuration: AgentConfiguration) -> AgentConfiguration {
            var configuration = configuration
            if !sources.isEmpty { configuration.sources = sources }
            if !sinks.isEmpty { configuration.sinks = sinks }
            return configuration
        }
        let configuration =
            if let path { try ConfigurationLoading.load(path: path, names: names) } else {
                try ConfigurationLoading.defaults(names: names)
            }
        var reload: (() throws(AgentConfiguration.LoadError) -> AgentConfiguration)?
        if let path {
            reload = { () throws(AgentConfiguration.LoadError) in
                apply(try ConfigurationLoading.reload(path: path, names: names))
            }
        }
        let log = Log(level: configuration.logLevel)
        do throws(AgentError) {
            let agent = try Agent(
                Agent.Setup(
                    configuration: apply(configuration), reload: reload, duration: duration, version: Main.version),
                registry: builtinSinks, names: names, log: log)
            try agent.run()
        } catch {
            throw CommandError(error)
        }
        return .success
    }
}
