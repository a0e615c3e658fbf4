// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Configuration
import Scanner

/// What the configuration knows of a radio.
public struct AdapterRule: Equatable, Sendable {
    /// As events name it.
    public var name: Name
    /// What is added to the strengths that it reports, in dB.
    public var rssiOffset: Int
}

extension AgentConfigurationKeys {
    /// The keys of an entry of `adapters`.
    enum Adapter {
        static let name = Key<String>.requiredText(
            "name", Shape.TextRule(maximumBytes: 108), example: "\"hci0\"", "The radio, as events name it.")
        static let rssiOffset = Key<Int64>.integer(
            "rssi_offset", default: 0, in: -40...40,
            "What is added to the strengths that it reports, in dB, so that radios with other antennas agree.")

        static let section = Section([name.declaration, rssiOffset.declaration])
    }

    static let adapters = Key<[Values]>.sections(
        "adapters", of: Adapter.section, count: 0...16, example: #"[{"name": "hci0", "rssi_offset": -4}]"#,
        "What is known of the radios.")

    /// Each is one of the sources, as far as their names are known here.
    static func checkAdapters(_ values: Values, _ complaints: inout Complaints) {
        let entries = values[adapters]
        checkUnique(
            entries.enumerated().map {
                (
                    path: ["adapters", .index($0), "name"] as [PathStep], name: $1[Adapter.name] as String?,
                    line: $1.line
                )
            }, "name", &complaints)
        var known: [String] = []
        for source in values[sources] {
            // The radios of a scenario have names of their own.
            guard let source = try? SourceSpecification(source) else { return }
            if case .simulation = source { return }
            known.append(source.adapterName)
        }
        for (index, entry) in entries.enumerated() where !known.contains(entry[Adapter.name]) {
            complaints.add(
                at: ["adapters", .index(index), "name"],
                Suggestion.complaint(about: entry[Adapter.name], kind: "adapter", in: known))
        }
    }
}
