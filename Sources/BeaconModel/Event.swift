// SPDX-License-Identifier: Apache-2.0

/// One thing that beacond tells the world: a fixed-size value without references, made on the loop's thread without
/// touching the heap. `docs/events.md` is the contract of how it is spelled.
public struct Event: Sendable {
    /// What happened. The raw values are stored in the outbox: never renumber them.
    public enum Kind: UInt8, Sendable, CaseIterable {
        case sighting = 0
        case enter = 1
        case exit = 2
        case regionEnter = 3
        case regionExit = 4
        case adapter = 5
        case gap = 6
        /// Nobody can say any more whether the region is occupied.
        case regionUnknown = 10
        /// It can be said again, and nothing has changed.
        case regionKnown = 11
        /// Nobody can say any more whether a beacon is here.
        case unknown = 15
        /// It can be said again, and nothing has changed.
        case known = 16
        /// A beacon came nearer or went farther.
        case proximity = 12
        /// One of the beacons inside a region, at its place in their order.
        case ranging = 13
        /// Two devices send one identity.
        case clone = 14
        /// The gateway as a whole does its work again, or something keeps it from it.
        case health = 7
        /// More strangers than there is room for; at most once a minute.
        case flood = 8

        /// The value of the key `event`.
        public var word: String {
            switch self {
            case .sighting: "sighting"
            case .enter: "enter"
            case .exit: "exit"
            case .regionEnter: "region_enter"
            case .regionExit: "region_exit"
            case .adapter: "adapter"
            case .gap: "gap"
            case .regionUnknown: "region_unknown"
            case .regionKnown: "region_known"
            case .unknown: "unknown"
            case .known: "known"
            case .proximity: "proximity"
            case .ranging: "ranging"
            case .clone: "clone"
            case .health: "health"
            case .flood: "flood"
            }
        }
    }

    /// Why a beacon or a region was left.
    public enum ExitReason: UInt8, Sendable, CaseIterable {
        /// Not heard for the whole exit time, while at least one radio listened.
        case timeout = 0
        /// Forgotten because the table was full and this one was the oldest.
        case evicted = 1
        /// No longer in the configuration.
        case removed = 2
        /// Farther away for a while than the configuration allows.
        case far = 3

        public var word: String {
            switch self {
            case .timeout: "timeout"
            case .evicted: "evicted"
            case .removed: "removed"
            case .far: "far"
            }
        }
    }

    /// What determined the exit time of a beacon.
    public enum ExitLimit: UInt8, Sendable, CaseIterable {
        /// The beacon's own silences.
        case data = 0
        /// Something that allows no shorter exit time, though it makes less than a tenth of the false exits that were
        /// asked for: the shortest time that is allowed, the windows of the radio, or silences of nearly one length.
        case floor = 1
        /// The longest exit time that is allowed.
        case ceiling = 2
        /// The silences of other beacons, as this one is too new.
        case prior = 3
        /// The configuration, which says the time.
        case fixed = 4

        public var word: String {
            switch self {
            case .data: "data"
            case .floor: "floor"
            case .ceiling: "ceiling"
            case .prior: "prior"
            case .fixed: "fixed"
            }
        }
    }

    /// State of an adapter, from absent to scanning.
    public enum AdapterState: UInt8, Sendable, CaseIterable {
        case absent = 0
        case starting = 1
        case scanning = 2
        case blind = 3
        case failed = 4
        /// A capture or a scenario that has come to its end.
        case ended = 5

        public var word: String {
            switch self {
            case .absent: "absent"
            case .starting: "starting"
            case .scanning: "scanning"
            case .blind: "blind"
            case .failed: "failed"
            case .ended: "ended"
            }
        }
    }

    public var kind: Kind
    /// When it happened, on the clock of decisions.
    public var time: MonotonicTime
    /// When it happened, in the world's time; stamped on the way out.
    public var wallTime = WallTime(milliseconds: 0)
    /// Whether the system clock was synchronised when `wallTime` was stamped.
    public var isClockSynchronized = true

    /// The beacon of `sighting`, `enter`, `exit`, `unknown`, `known`, `proximity`, `ranging` and `clone`.
    public var identity: BeaconIdentity?
    /// The beacon's alias, the region, or the adapter that the event is about; ``Name/none`` for an unnamed beacon.
    public var name = Name.none
    /// Whether the configuration names the beacon, or a region that it belongs to.
    public var isConfigured = false
    public var address = DeviceAddress.anonymous
    /// The radio that heard it last.
    public var adapter = Name.none
    public var signal = Signal()
    /// The newest frame that said more than who sent it. It is not kept in the outbox.
    public var payload: FramePayload?
    /// The strength at 1 m that the distance was reckoned with, dBm.
    public var measuredPower: Int8?
    public var proximity = Proximity.unknown
    /// Estimated distance in metres; negative when it could not be determined.
    public var accuracy: Float = -1
    /// For sightings and `ranging`: how far ``accuracy`` is off by the spread of the strengths alone, one standard
    /// deviation in metres; negative when not known. It is not kept in the outbox.
    public var accuracyUncertainty: Float = -1
    /// For exits: since when nobody heard it.
    public var lastSeen: MonotonicTime?
    /// ``lastSeen`` in the world's time; stamped on the way out.
    public var lastSeenWallTime: WallTime?
    /// For exits: the exit time that applied.
    public var exitTime = TimeInterval.zero
    public var exitReason = ExitReason.timeout
    /// For exits: what determined ``exitTime``.
    public var exitLimit = ExitLimit.fixed
    /// For exits: false exits a second that the configuration allows, and that ``exitTime`` is expected to make; nil
    /// when the configuration says the time.
    public var falseExits: (asked: Float, expected: Float)?
    /// For the events of regions and `ranging`: beacons inside now; for `flood`, beacons that are tracked.
    public var insideCount: UInt32 = 0
    /// For `ranging`: the region, and the place of the beacon in it, from 1 for the nearest.
    public var region = Name.none
    public var rank: UInt32 = 0
    /// For `clone`: the other device that sends the identity.
    public var otherAddress = DeviceAddress.anonymous
    /// For `adapter`: what became of it.
    public var adapterState = AdapterState.absent
    /// For `adapter` and `health`: why it is not well, a sentence; ``Name/none`` when it is well, or nobody knows.
    public var trouble = Name.none
    /// For `health`: whether everything is as it should be.
    public var isHealthy = true
    /// For `gap`: the first and last missing sequence number of the stream.
    public var gap: (first: UInt64, last: UInt64) = (0, 0)
    /// For `flood`: sightings for whose beacons there was no place, and beacons that were forgotten for others, since the
    /// last one. Kept where a gap is, because nothing is both.
    public var flood: (refused: UInt64, evicted: UInt64) {
        get { (gap.first, gap.last) }
        set { gap = (newValue.refused, newValue.evicted) }
    }

    public init(kind: Kind, time: MonotonicTime) {
        self.kind = kind
        self.time = time
    }

    /// Whether it is delivered at least once and in order; a sighting is worth only its newest value.
    public var isTransition: Bool { kind != .sighting && kind != .ranging }
}
