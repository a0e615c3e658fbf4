// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// The verbs that change which beacons are configured.
extension Agent {
    private enum Keys {
        /// As long as the longest identity with the longest name of a format in front.
        private static let rule = Shape.TextRule(maximumBytes: 512)

        static let stranger = Key<String?>.optionalText(
            "beacon", rule, example: "\"ibeacon fda50693-a4e2-4fb1-afcf-c6eb07647825/1/2\"",
            "The beacon: its format and its identity, as beacond scan shows them.")
        static let approved = Key<String>.requiredText(
            "beacon", rule, example: "\"keys\"", "The beacon, by its alias or its identity.")
    }

    var approvalVerbs: [Verb] {
        [
            Verb(
                "approve",
                "Has a beacon treated as if the configuration named it, from now on; then tells all approved ones.",
                [Keys.stranger.declaration, AgentConfigurationKeys.Beacon.alias.declaration]
            ) { [unowned self] values in
                approve(values[Keys.stranger], alias: values[AgentConfigurationKeys.Beacon.alias])
            },
            Verb(
                "disapprove", "Takes an approved beacon out again, with the states that are kept of it elsewhere.",
                [Keys.approved.declaration]
            ) { [unowned self] values in
                change { approved throws(ApprovedBeacons.Refusal) in
                    try approved.disapprove(values[Keys.approved], beside: fileConfiguration, vocabulary.names)
                }
            },
        ]
    }

    private func approve(_ text: String?, alias: String?) -> VerbAnswer {
        guard let text else {
            return alias == nil ? approvedLines : .failed("$.alias: needs a \"beacon\" to approve")
        }
        guard let identity = presentIdentity(text) ?? vocabulary.formats.identity(text) else {
            return .failed(
                "$.beacon: expected a format and a whole identity, such as \"ibeacon UUID/MAJOR/MINOR\"")
        }
        return change { approved throws(ApprovedBeacons.Refusal) in
            try approved.approve(identity, alias: alias, beside: fileConfiguration, vocabulary.names)
        }
    }

    /// The identity of a present beacon whose format the text does not name.
    private func presentIdentity(_ text: String) -> BeaconIdentity? {
        var found: BeaconIdentity?
        road.forEachPresent { event in
            if found == nil, let identity = event.identity, vocabulary.formats.isText(text, of: identity) {
                found = identity
            }
        }
        return found
    }

    private func change(
        _ body: (inout ApprovedBeacons) throws(ApprovedBeacons.Refusal) -> Void
    ) -> VerbAnswer {
        do throws(ApprovedBeacons.Refusal) { try changeApproved(body) } catch { return .failed(error.reason) }
        return approvedLines
    }

    private var approvedLines: VerbAnswer {
        let lines = approved.beacons.map { beacon in
            { [approved] (writer: inout JSONWriter) in
                writer.key("beacon")
                writer.beginObject()
                approved.write(beacon, into: &writer)
                writer.endObject()
            }
        }
        return .lines(
            lines + [
                { [count = approved.beacons.count] writer in
                    writer.key("approved")
                    writer.integer(count)
                }
            ])
    }
}
