// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// The settings that apply to one beacon, its own rule and the common ones put together.
struct AppliedRule: Sendable {
    let alias: Name
    let measuredPower: Int8?
    let enterCount: UInt32
    let exitTime: TimeInterval
    let pathLossExponent: Double

    init(_ settings: PresenceSettings, _ rule: BeaconRule? = nil) {
        alias = rule?.alias ?? .none
        measuredPower = rule?.measuredPower
        enterCount = UInt32(clamping: max(rule?.enterCount ?? settings.enterCount, 1))
        exitTime = rule?.exitTime ?? settings.exitTime
        let exponent = rule?.pathLossExponent ?? settings.pathLossExponent
        pathLossExponent = (1...10).contains(exponent) ? exponent : 2
    }
}

/// The applied rule of every beacon.
struct RuleBook: Sendable {
    /// The common rule, then those of single beacons.
    private var rules: [AppliedRule]
    private var indices: [BeaconIdentity: Int32] = [:]

    init(_ settings: PresenceSettings, _ beacons: [BeaconRule]) {
        rules = [AppliedRule(settings)]
        for beacon in beacons {
            indices[beacon.identity] = Int32(rules.count)
            rules.append(AppliedRule(settings, beacon))
        }
    }

    subscript(index: Int32) -> AppliedRule { rules[Int(index)] }

    func index(of identity: BeaconIdentity) -> Int32 { indices[identity] ?? 0 }

    /// Whether the beacon has a rule of its own.
    func names(_ identity: BeaconIdentity) -> Bool { indices[identity] != nil }
}
