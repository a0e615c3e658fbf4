// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import LinuxIO
import SinkKit

/// What the commands that need a configuration have in common.
enum ConfigurationLoading {
    /// Where the service looks when it is not told.
    static let defaultPath = "plugins.json"

    /// The formats that a configuration adds to.
    static let builtinFormats = FrameDecoder().catalog

    static func load(path: String, names: NameTable) throws(CommandError) -> AgentConfiguration {
        do throws(AgentConfiguration.LoadError) {
            return try reload(path: path, names: names)
        } catch {
            throw commandError(error)
        }
    }

    static func reload(path: String, names: NameTable) throws(AgentConfiguration.LoadError) -> AgentConfiguration {
        try AgentConfiguration.load(path: path, formats: builtinFormats, sinks: builtinSinks, names: names)
    }

    /// The configuration of an empty object: everything at its default.
    static func defaults(names: NameTable) throws(CommandError) -> AgentConfiguration {
        do throws(ConfigurationError) {
            return try AgentConfiguration.load(
                Array("{}".utf8), file: "defaults", formats: builtinFormats, sinks: builtinSinks, names: names)
        } catch {
            throw CommandError(.configuration, error.description)
        }
    }

    /// A sink of this kind with everything at its default, as `--sink KIND` wants it.
    static func sink(_ kind: String) throws(CommandError) -> AgentConfiguration.SinkInstance {
        guard builtinSinks[kind] != nil else {
            let kinds = builtinSinks.registrations.map(\.descriptor.kind)
            let hint = Suggestion.nearest(to: kind, in: kinds).map { "; did you mean \"\($0)\"?" } ?? ""
            throw CommandError(
                .usage, "--sink \(kind): unknown kind\(hint) The kinds are \(kinds.joined(separator: ", ")).")
        }
        return AgentConfiguration.SinkInstance(kind: kind)
    }

    static func commandError(_ error: AgentConfiguration.LoadError) -> CommandError {
        switch error {
        case .unreadable(let error): CommandError(.noInput, error.description)
        case .refused(let error): CommandError(.configuration, error.description)
        }
    }
}
