// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// A radio world as a value: who advertises, where, when, and who listens. Times count from its beginning.
///
/// The same scenario makes the same bytes on every machine: everything random in it comes from ``seed``.
public struct Scenario: Equatable, Sendable {
    public var seed: UInt64
    /// When the world ends; nothing happens at or after it.
    public var duration: TimeInterval
    /// The radios of one gateway; all of them stand in the same place.
    public var radios: [Radio]
    public var beacons: [Beacon]
    /// How fast the strength falls with the distance: 2 in free space, 2.5 to 4 in buildings.
    public var pathLossExponent: Double
    /// Standard deviation of the strength in dB, drawn anew for each packet and radio. Indoors 3 to 6 dB are usual.
    public var noise: Double
    public var walls: [Wall]

    public init(
        seed: UInt64 = 1, duration: TimeInterval, radios: [Radio] = [Radio()], beacons: [Beacon],
        pathLossExponent: Double = 2, noise: Double = 4, walls: [Wall] = []
    ) {
        self.seed = seed
        self.duration = duration
        self.radios = radios
        self.beacons = beacons
        self.pathLossExponent = pathLossExponent
        self.noise = noise
        self.walls = walls
    }

    /// A radio that scans passively for legacy advertisements.
    public struct Radio: Equatable, Sendable {
        public var name: String
        /// How long it listens out of every ``interval``: at most the interval; equal to it is continuous.
        public var window: TimeInterval
        /// Each interval uses the next of the channels 37, 38 and 39.
        public var interval: TimeInterval
        /// Reports with LE Extended Advertising Report instead of LE Advertising Report.
        public var isExtended: Bool
        /// The weakest strength that is received at all, in dBm.
        public var sensitivity: Double
        /// When it should listen and cannot.
        public var blind: [Range<MonotonicTime>]
        /// When it listens at all; nil for always.
        public var burst: Burst?
        /// Listens as it is told (``RadioWorld/use(_:at:)``) instead of by the times above.
        public var isDirected = false

        public init(
            name: String = "sim0", window: TimeInterval = .milliseconds(100),
            interval: TimeInterval = .milliseconds(100), isExtended: Bool = false, sensitivity: Double = -95,
            blind: [Range<MonotonicTime>] = [], burst: Burst? = nil
        ) {
            self.name = name
            self.window = window
            self.interval = interval
            self.isExtended = isExtended
            self.sensitivity = sensitivity
            self.blind = blind
            self.burst = burst
        }
    }

    /// A schedule that begins with scanning for ``on``, pauses for ``off``, and repeats. Both are longer than zero.
    public struct Burst: Equatable, Sendable {
        public var on: TimeInterval
        public var off: TimeInterval

        public init(on: TimeInterval, off: TimeInterval) {
            self.on = on
            self.off = off
        }
    }

    /// A transmitter of non-connectable legacy advertisements.
    public struct Beacon: Equatable, Sendable {
        /// What people call it; may be empty.
        public var alias: String
        public var advertisement: Advertisement
        /// nil: a random static address that follows from the seed.
        public var address: DeviceAddress?
        /// When given, it takes a new private address this often, and ``address`` is not used.
        public var addressRotation: TimeInterval?
        /// The strength that a radio receives at 1 m, in dBm; also what the frame claims.
        public var measuredPower: Int8
        /// The advertising interval, 20 ms or longer. Up to 10 ms are added to each (advDelay).
        public var interval: TimeInterval
        /// Where it is: straight between the points, in the order of time, resting before the first and after the last.
        /// Empty: 1 m away all the time.
        public var path: [Waypoint]
        /// When it is in the world at all.
        public var visits: [Range<MonotonicTime>]
        /// When it is in the world and does not advertise, as with an empty battery.
        public var silent: [Range<MonotonicTime>]
        /// The share of its packets that each radio misses for no reason that is modelled, 0 to 1.
        public var loss: Double

        public init(
            alias: String = "", advertisement: Advertisement, address: DeviceAddress? = nil,
            addressRotation: TimeInterval? = nil, measuredPower: Int8 = -59, interval: TimeInterval,
            path: [Waypoint] = [], visits: [Range<MonotonicTime>] = [.zero ..< .distantFuture],
            silent: [Range<MonotonicTime>] = [], loss: Double = 0
        ) {
            self.alias = alias
            self.advertisement = advertisement
            self.address = address
            self.addressRotation = addressRotation
            self.measuredPower = measuredPower
            self.interval = interval
            self.path = path
            self.visits = visits
            self.silent = silent
            self.loss = loss
        }

        /// The periods in which it advertises, apart from each other and in the order of time.
        var advertisingPeriods: [Range<MonotonicTime>] {
            merged(visits).flatMap { subtract(silent, from: $0) }
        }
    }

    /// Where a beacon is at a moment.
    public struct Waypoint: Equatable, Sendable {
        public var time: MonotonicTime
        /// Metres from the radios. Nearer than 0.1 m counts as 0.1 m.
        public var distance: Double

        public init(time: MonotonicTime, distance: Double) {
            self.time = time
            self.distance = distance
        }
    }

    /// Something that weakens what comes from behind it: a wall, a door that is closed for a while, a crowd.
    public struct Wall: Equatable, Sendable {
        /// Beacons farther away than this are behind it, in metres.
        public var distance: Double
        /// dB.
        public var attenuation: Double
        /// When it stands there.
        public var period: Range<MonotonicTime>

        public init(
            distance: Double = 0, attenuation: Double, period: Range<MonotonicTime> = .zero ..< .distantFuture
        ) {
            self.distance = distance
            self.attenuation = attenuation
            self.period = period
        }
    }
}

/// A stretch of time in which a beacon was there and advertised, whether or not a radio could hear it.
public struct Visit: Equatable, Sendable {
    /// Index into ``Scenario/beacons``.
    public var beacon: Int
    public var period: Range<MonotonicTime>

    public init(beacon: Int, period: Range<MonotonicTime>) {
        self.beacon = beacon
        self.period = period
    }
}

extension Scenario {
    /// What really happened in the first `duration`: the visits in the order in which they begin, and by beacon where
    /// they begin together. A beacon that falls silent ends its visit; one that speaks again begins another.
    public func truth(within duration: TimeInterval) -> [Visit] {
        let end = MonotonicTime.zero + duration
        guard end > .zero else { return [] }
        return beacons.indices.flatMap { index in
            beacons[index].advertisingPeriods
                .map { $0.clamped(to: .zero..<end) }
                .filter { !$0.isEmpty }
                .map { Visit(beacon: index, period: $0) }
        }
        .sorted { ($0.period.lowerBound, $0.beacon) < ($1.period.lowerBound, $1.beacon) }
    }
}
