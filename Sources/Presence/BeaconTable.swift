// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// A moment on the clocks of silence.
struct Hearing {
    var listening: ListeningTime
    var evidence: EvidenceTime
}

/// What is known of one beacon.
struct TrackedBeacon: Sendable {
    enum State: UInt8 {
        /// The place is empty.
        case free
        /// Heard, but not often enough.
        case candidate
        case present
        /// It was present when every radio failed for too long.
        case unknown
        /// It has left; its record is kept while there is room, for when it comes back.
        case away
    }

    /// How the configuration knows it.
    enum Standing: UInt8 {
        case stranger
        /// It belongs to a region.
        case member
        /// It has a rule of its own.
        case named
    }

    let identity: BeaconIdentity
    var address: DeviceAddress
    /// The moment of the newest sighting, on both clocks.
    var lastSeen: MonotonicTime
    var heardAt: ListeningTime
    var evidenceAt: EvidenceTime
    var silences = SilenceRecord()
    var enteredAt = MonotonicTime.zero
    var reportedAt = MonotonicTime.zero
    var recent = RecentStrengths()
    /// Advertisements since the last report.
    var count: UInt32 = 0
    /// Index of the rule that applies.
    var rule: Int32
    var adapter: Name
    var last: Int8?
    var minimum: Int8?
    var maximum: Int8?
    var claimedPower: Int8?
    var payload: FramePayload?
    var standing: Standing
    var state = State.candidate
    /// Whether any of its regions ranges.
    var isRanged = false
    /// What was told last.
    var proximity = Proximity.unknown
    var ranging = RangingTally()
    var senders = SenderWatch()

    /// Whether everybody was told that it is here.
    var isInside: Bool { state == .present || state == .unknown }

    init(_ sighting: Sighting, _ moment: Hearing, rule: Int32, standing: Standing) {
        identity = sighting.identity
        address = sighting.address
        lastSeen = sighting.time
        heardAt = moment.listening
        evidenceAt = moment.evidence
        self.rule = rule
        adapter = sighting.adapter
        self.standing = standing
    }

    /// A sighting that is this much older than the newest one still counts as part of the signal. Adapters on one
    /// machine deliver within milliseconds of each other; a second means that somebody was stuck.
    static let lateness = TimeInterval.seconds(1)

    /// Takes a sighting in; false when it is too old to say anything.
    mutating func take(_ sighting: Sighting, _ moment: Hearing, keeping length: Int) -> Bool {
        let isOther = senders.isOther(sighting.address, than: address)
        if sighting.time >= lastSeen {
            lastSeen = sighting.time
            heardAt = moment.listening
            evidenceAt = moment.evidence
            if !isOther { address = sighting.address }
            adapter = sighting.adapter
            if !isOther { last = sighting.rssi }
            claimedPower = sighting.measuredPower ?? claimedPower
            payload = sighting.payload ?? payload
        } else if lastSeen - sighting.time > Self.lateness {
            return false
        }
        count = count == .max ? count : count + 1
        // The strengths of two transmitters have no mean that says anything.
        guard !isOther else { return true }
        ranging.add(sighting.rssi)
        if let rssi = sighting.rssi {
            minimum = min(minimum ?? rssi, rssi)
            maximum = max(maximum ?? rssi, rssi)
            recent.add(rssi, over: length)
        }
        return true
    }

    func signal(_ filter: SignalFilter) -> Signal {
        Signal(last: last, filtered: recent.filtered(filter), minimum: minimum, maximum: maximum, count: count)
    }

    /// Comes back after it had left: nothing of its signal counts any more.
    mutating func comeBack(_ sighting: Sighting, _ moment: Hearing) {
        var fresh = TrackedBeacon(sighting, moment, rule: rule, standing: standing)
        fresh.silences = silences
        fresh.isRanged = isRanged
        self = fresh
    }

    /// Begins the next report.
    mutating func report(at time: MonotonicTime) {
        reportedAt = time
        count = 0
        minimum = nil
        maximum = nil
    }
}

/// Beacons by identity, each in a place that it keeps.
struct BeaconTable: Sendable {
    var beacons: [TrackedBeacon] = []
    private var places: [BeaconIdentity: Int32] = [:]
    private var free: [Int32] = []

    /// Room for `capacity` beacons is made at once: no sighting has to, and the system hands out memory only when it
    /// is used.
    init(capacity: Int) { reserve(capacity) }

    mutating func reserve(_ capacity: Int) {
        beacons.reserveCapacity(capacity)
        places.reserveCapacity(capacity)
        free.reserveCapacity(capacity)
    }

    var count: Int { places.count }

    func place(of identity: BeaconIdentity) -> Int32? { places[identity] }

    /// - Precondition: the identity has no place.
    mutating func insert(_ beacon: TrackedBeacon) -> Int32 {
        let place: Int32
        if let reused = free.popLast() {
            place = reused
            beacons[Int(place)] = beacon
        } else {
            place = Int32(beacons.count)
            beacons.append(beacon)
        }
        places[beacon.identity] = place
        return place
    }

    mutating func remove(_ place: Int32) {
        places[beacons[Int(place)].identity] = nil
        beacons[Int(place)].state = .free
        free.append(place)
    }
}
