// SPDX-License-Identifier: Apache-2.0

import Configuration

/// The beacon that somebody means on a command line.
struct BeaconSelection {
    /// What may be written.
    static let forms =
        "FORMAT IDENTITY as beacond scan shows it, its identity alone (UUID/MAJOR/MINOR), alias or address"

    let text: String

    /// - Parameters:
    ///   - identity: format and identity, as `beacond scan` shows them.
    ///   - event: what else is known of the beacon.
    func includes(_ identity: String, _ event: Node) -> Bool {
        let wanted = text.lowercased()
        let withoutFormat = identity.split(separator: " ", maxSplits: 1).last.map(String.init)
        let names = [identity, withoutFormat, event["alias"]?.text, event["address"]?.text]
        return names.contains { $0?.lowercased() == wanted }
    }
}
