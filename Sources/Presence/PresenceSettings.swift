// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// The rules of presence that hold for every beacon without a rule of its own. `docs/presence.md` explains them.
public struct PresenceSettings: Sendable {
    /// Sightings that make a beacon present, at least 1.
    ///
    /// Two by default: a beacon at the edge of what can be heard, of which one packet a minute comes through, would
    /// otherwise enter and leave once a minute. The second one costs an advertising interval, mostly a second or less.
    public var enterCount = 2
    /// A beacon that is not present yet is forgotten after a silence this long, in listening time, and its count begins
    /// anew: two packets an hour apart are no evidence. At 30 s even a beacon of the longest legacy advertising
    /// interval, 10.24 s (Core 5.4, Vol 4, Part E, 7.8.5), may lose one packet in between.
    public var enterGap = TimeInterval.seconds(30)
    /// A present beacon has left after a silence this long, in listening time; nil to learn the time of each beacon
    /// from its own silences, by ``falseExits``.
    public var exitTime: TimeInterval?
    /// How often a beacon that is always here may be said to have left.
    public var falseExits = FalseExitRate.oncePerDay
    /// Learned exit times are no shorter, in evidence time: below two seconds nobody notices the difference.
    public var shortestExitTime = TimeInterval.seconds(2)
    /// Learned exit times are no longer, in evidence time.
    public var longestExitTime = TimeInterval.seconds(600)
    /// The time between two lists of the beacons inside a region that ranges: as on a phone.
    public var rangingInterval = TimeInterval.seconds(1)
    /// While every radio is blind for this long, states stay as they are; after it they are unknown. Longer than the
    /// recovery ladder of a radio.
    public var blindHold = TimeInterval.seconds(120)
    /// The shortest time between two reports of one beacon: once a second, as ranging on a phone.
    public var reportInterval = TimeInterval.seconds(1)
    /// How many strengths the filtered one is made of, 1 to 16.
    public var averageOver = 5
    /// What is made of them.
    public var filter = SignalFilter.mean
    /// How fast the strength falls with the distance, 1 to 10: 2 in free space, 2.5 to 4 among walls and people.
    /// Anything else counts as 2.
    public var pathLossExponent = 2.0
    /// The strength at 1 m in place of an implausible one, dBm: what most iBeacons are shipped with.
    public var assumedMeasuredPower: Int8 = -59
    /// How near a beacon must be to be present; nil: wherever it is heard.
    public var gate: SignalGate?
    /// Beacons that are tracked at a time, 1 to 1,000,000; about 400 bytes each.
    public var maximumBeacons = 10_000

    public init() {}

    /// With everything in the range that its description gives.
    var inRange: Self {
        var settings = self
        settings.averageOver = min(max(averageOver, 1), RecentStrengths.capacity)
        settings.rangingInterval = max(rangingInterval, .milliseconds(100))
        settings.maximumBeacons = min(max(maximumBeacons, 1), 1_000_000)
        return settings
    }
}

/// What is made of the last strengths of a beacon.
public enum SignalFilter: String, CaseIterable, Sendable {
    case mean
    /// The strongest one: what stands in the way makes a signal weaker, and hardly anything makes it stronger.
    case maximum
}

/// What is different for one beacon.
public struct BeaconRule: Sendable {
    public var identity: BeaconIdentity
    /// What people call it; ``Name/none`` when they do not.
    public var alias: Name
    /// The calibrated strength at 1 m, dBm; nil to believe the frame.
    public var measuredPower: Int8?
    /// Each of these replaces the setting of the same name.
    public var enterCount: Int?
    public var exitTime: TimeInterval?
    public var falseExits: FalseExitRate?
    public var pathLossExponent: Double?
    public var gate: SignalGate?

    public init(
        identity: BeaconIdentity, alias: Name = .none, measuredPower: Int8? = nil, enterCount: Int? = nil,
        exitTime: TimeInterval? = nil, falseExits: FalseExitRate? = nil, pathLossExponent: Double? = nil,
        gate: SignalGate? = nil
    ) {
        self.gate = gate
        self.identity = identity
        self.alias = alias
        self.measuredPower = measuredPower
        self.enterCount = enterCount
        self.exitTime = exitTime
        self.falseExits = falseExits
        self.pathLossExponent = pathLossExponent
    }
}

/// A set of beacons that are watched together: somebody is inside while at least one of them is present.
public struct RegionRule: Sendable {
    public var name: Name
    /// A beacon belongs to the region when any of them matches. A list of beacons is a list of whole identities.
    public var patterns: [IdentityPattern]
    /// Each replaces the setting of the same name for its beacons, unless they have their own. Of several regions of a
    /// beacon the first that says something counts.
    public var exitTime: TimeInterval?
    public var falseExits: FalseExitRate?
    public var gate: SignalGate?
    /// Whether the beacons inside are listed regularly.
    public var isRanged: Bool

    /// Whether it says anything about its beacons.
    var hasRules: Bool { exitTime != nil || falseExits != nil || gate != nil }

    public init(
        name: Name, patterns: [IdentityPattern], exitTime: TimeInterval? = nil, falseExits: FalseExitRate? = nil,
        gate: SignalGate? = nil, isRanged: Bool = false
    ) {
        self.gate = gate
        self.name = name
        self.patterns = patterns
        self.exitTime = exitTime
        self.falseExits = falseExits
        self.isRanged = isRanged
    }
}
