// SPDX-License-Identifier: Apache-2.0

/// The keys of a plugin that every kind has.
enum PluginKey {
    static let kind = "kind"
    static let config = "config"
}

extension Section {
    /// The keys of a plugin, when this section has the common ones.
    ///
    /// - Parameter chosen: the kind whose keys stand under `config`; nil leaves `config` out.
    func pluginSection(kinds: [String], of chosen: Shape.PluginKind?) -> Section {
        let kind = AnyKey(PluginKey.kind, .choice(kinds), isRequired: true, "Which plugin it is.")
        let config = chosen.map {
            AnyKey(PluginKey.config, .section($0.section), "The keys of the \($0.name) plugin.")
        }
        return Section([kind] + keys + (config.map { [$0] } ?? []), checks: checks)
    }
}
