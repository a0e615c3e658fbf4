// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import SinkKit

extension AgentConfiguration {
    /// What sinks are told that there is.
    func inventory(adapters: [Name]) -> Inventory {
        Inventory(
            beacons: beacons.map { Inventory.Beacon(identity: $0.identity, alias: $0.alias) },
            regions: regions.map { Inventory.Region(name: $0.name, patterns: $0.patterns) }, adapters: adapters)
    }
}
