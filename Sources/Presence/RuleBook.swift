// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// The settings that apply to one beacon, its own rule and the common ones put together.
struct AppliedRule: Sendable {
    let alias: Name
    let measuredPower: Int8?
    let enterCount: UInt32
    /// nil to learn it.
    let exitTime: TimeInterval?
    let bounds: SilenceRecord.Bounds
    let pathLossExponent: Double

    /// - Parameter region: a region that says something about the exits of its beacons.
    init(_ settings: PresenceSettings, _ rule: BeaconRule? = nil, region: RegionRule? = nil) {
        alias = rule?.alias ?? .none
        measuredPower = rule?.measuredPower
        enterCount = UInt32(clamping: max(rule?.enterCount ?? settings.enterCount, 1))
        let choices = [
            (rule?.exitTime, rule?.falseExits), (region?.exitTime, region?.falseExits),
            (settings.exitTime, settings.falseExits),
        ]
        // What is nearest to the beacon counts; a fixed time is more definite than a bound.
        let choice = choices.first { $0.0 != nil || $0.1 != nil }
        exitTime = choice?.0
        let allowed = choice?.1 ?? settings.falseExits
        let floor = max(settings.shortestExitTime, .milliseconds(100))
        bounds = SilenceRecord.Bounds(
            rate: allowed.perSecond, floor: floor, ceiling: max(settings.longestExitTime, floor))
        let exponent = rule?.pathLossExponent ?? settings.pathLossExponent
        pathLossExponent = (1...10).contains(exponent) ? exponent : 2
    }
}

/// The applied rule of every beacon.
struct RuleBook: Sendable {
    /// The common rule, then those of single beacons.
    private var rules: [AppliedRule]
    private var indices: [BeaconIdentity: Int32] = [:]
    /// Regions that say something about their beacons, which is looked up once for each beacon without a rule of its own.
    private var regionRules: [(patterns: [IdentityPattern], rule: Int32)] = []
    /// By rule, apart from the rules, which are read for each sighting; empty when nobody wants any.
    private var gates: [SignalGate?] = []

    init(_ settings: PresenceSettings, _ beacons: [BeaconRule], _ regions: [RegionRule]) {
        rules = [AppliedRule(settings)]
        gates = [settings.gate]
        for region in regions where region.hasRules {
            regionRules.append((region.patterns, Int32(rules.count)))
            rules.append(AppliedRule(settings, region: region))
            gates.append(region.gate ?? settings.gate)
        }
        for beacon in beacons {
            indices[beacon.identity] = Int32(rules.count)
            let region = regions.first { region in
                region.hasRules && region.patterns.contains { $0.matches(beacon.identity) }
            }
            rules.append(AppliedRule(settings, beacon, region: region))
            gates.append(beacon.gate ?? region?.gate ?? settings.gate)
        }
        if gates.allSatisfy({ $0 == nil }) { gates = [] }
    }

    subscript(index: Int32) -> AppliedRule { rules[Int(index)] }

    /// Whether any beacon must be near.
    var hasGates: Bool { !gates.isEmpty }

    /// How near a beacon of that rule must be.
    func gate(of index: Int32) -> SignalGate? { hasGates ? gates[Int(index)] : nil }

    func index(of identity: BeaconIdentity) -> Int32 {
        if let index = indices[identity] { return index }
        for (patterns, rule) in regionRules where patterns.contains(where: { $0.matches(identity) }) { return rule }
        return 0
    }

    /// Whether the beacon has a rule of its own.
    func names(_ identity: BeaconIdentity) -> Bool { indices[identity] != nil }
}
