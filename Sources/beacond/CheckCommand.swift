// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration
import SinkKit

/// `beacond check`: says everything that is wrong with a configuration.
enum CheckCommand {
    static let command = Command(
        name: "check", operands: "[FILE]", operandCount: 0...1,
        summary: "Checks a configuration and says everything that is wrong with it.", options: [],
        details: """
            FILE is plugins.json in the current folder unless given. Each problem is one line with
            file, line, path and what was expected; the exit status is then 78.
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let path = arguments.operands.first ?? ConfigurationLoading.defaultPath
        let configuration = try ConfigurationLoading.load(path: path, names: NameTable())
        func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
        let warnings = configuration.warnings.map { "warning: \($0)\n" }.joined()
        try StandardOutput.print(
            warnings + "\(path): valid: \(count(configuration.sources.count, "source")), "
                + "\(count(configuration.beacons.count, "beacon")), \(count(configuration.regions.count, "region")), "
                + "\(count(configuration.sinks.filter(\.isEnabled).count, "sink"))\n")
        return .success
    }
}

/// `beacond sample`: a configuration to begin with.
enum SampleCommand {
    static let command = Command(
        name: "sample", operands: "[KIND]", operandCount: 0...1,
        summary: "Prints a commented configuration, with all kinds of sink or with one.", options: [],
        details: """
            Keys that begin with // are comments; the sample is a valid configuration as it stands.
            With KIND it shows no other sink.

            Example:
              beacond sample > plugins.json
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let section = AgentConfiguration.section(formats: ConfigurationLoading.builtinFormats, sinks: builtinSinks)
        let introduction = "Configuration of beacond. Keys that begin with // are comments; every other key may go."
        guard let kind = arguments.operands.first else {
            try StandardOutput.write(
                Sample.text(for: section, introduction: introduction))
            return .success
        }
        guard builtinSinks[kind] != nil else {
            let kinds = builtinSinks.registrations.map(\.descriptor.kind)
            throw arguments.usage("unknown kind \"\(kind)\"; the kinds are \(kinds.joined(separator: ", "))")
        }
        try StandardOutput.write(Sample.text(for: section, introduction: introduction, kinds: [kind]))
        return .success
    }
}

/// `beacond schema`: the JSON Schema for editors and fleet tools.
enum SchemaCommand {
    static let command = Command(
        name: "schema", operands: "", operandCount: 0...0,
        summary: "Prints the JSON Schema of the configuration, for editors and fleet tools.",
        options: [Option("--markdown", nil, "print the tables of docs/configuration.md instead")], details: "",
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let section = AgentConfiguration.section(formats: ConfigurationLoading.builtinFormats, sinks: builtinSinks)
        if arguments.has("--markdown") {
            try StandardOutput.print(Reference.markdown(for: section))
        } else {
            try StandardOutput.write(Schema.json(for: section, title: "Configuration of beacond"))
        }
        return .success
    }
}

/// `beacond sinks`: what this program was built with.
enum SinksCommand {
    static let command = Command(
        name: "sinks", operands: "", operandCount: 0...0, summary: "Lists the kinds of sink.", options: [], details: "",
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let descriptors = builtinSinks.registrations.map(\.descriptor)
        let width = descriptors.map(\.kind.count).max() ?? 0
        var text = ""
        for descriptor in descriptors {
            text += "\(descriptor.kind)\(String(repeating: " ", count: width - descriptor.kind.count + 2))"
            text += "\(descriptor.summary)\n"
        }
        try StandardOutput.print(text)
        return .success
    }
}
