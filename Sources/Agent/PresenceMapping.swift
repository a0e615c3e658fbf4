// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence

extension AgentConfiguration {
    /// The rules of presence, in the engine's own types.
    var presenceSettings: PresenceSettings {
        var settings = PresenceSettings()
        settings.enterCount = presence.enterCount
        settings.enterGap = presence.enterWithin
        settings.exitTime = presence.exitTime
        settings.reportInterval = presence.reportInterval
        settings.averageOver = presence.averageOver
        settings.pathLossExponent = presence.pathLossExponent
        settings.maximumBeacons = presence.maximumBeacons
        return settings
    }

    var beaconRules: [BeaconRule] {
        beacons.map {
            BeaconRule(
                identity: $0.identity, alias: $0.name, measuredPower: $0.measuredPower, enterCount: $0.enterCount,
                exitTime: $0.exitTime)
        }
    }

    var regionRules: [RegionRule] {
        regions.map { region in
            switch region.members {
            case .pattern(let pattern): RegionRule(name: region.name, patterns: [pattern])
            case .beacons(let identities):
                RegionRule(
                    name: region.name,
                    patterns: identities.map { IdentityPattern(identity: $0, prefix: $0.count) })
            }
        }
    }
}
