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

    // Small fields stand behind those that leave some octets of a word: a record is kept for every stranger, too.
    let identity: BeaconIdentity
    var address: DeviceAddress
    var standing: Standing
    var state = State.candidate
    /// Whether any of its regions ranges.
    var isRanged = false
    /// What was told last.
    var proximity = Proximity.unknown
    var last: Int8?
    /// The moment of the newest sighting, on both clocks.
    var lastSeen: MonotonicTime
    var heardAt: ListeningTime
    var evidenceAt: EvidenceTime
    var enteredAt = MonotonicTime.zero
    var reportedAt = MonotonicTime.zero
    var silences = SilenceRecord()
    var claimedPower: Int8?
    /// For how long it has been near enough to enter or, when it is inside, far enough to leave.
    var dwell = Dwell()
    /// Advertisements since the last report.
    var count: UInt32 = 0
    var minimum: Int8?
    var maximum: Int8?
    /// Index of the rule that applies.
    var rule: Int32
    var adapter: Name
    /// Where the table keeps the newest frame that says more than who sent it; negative without one.
    fileprivate(set) var payloadPlace: Int32 = -1
    var senders = SenderWatch()
    var recent = RecentStrengths()
    var ranging = RangingTally()

    /// Whether everybody was told that it is here. As a call it would be handed a copy of the whole record.
    @inline(__always)
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
        fresh.payloadPlace = payloadPlace
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
    private var index = IdentityIndex()
    private var free: [Int32] = []
    /// Apart from the records, because most beacons say no more than who they are.
    private var payloads: [FramePayload] = []
    private var freePayloads: [Int32] = []

    /// Room for `capacity` beacons is made at once: no sighting has to, and the system hands out memory only when it
    /// is used.
    init(capacity: Int) { reserve(capacity) }

    mutating func reserve(_ capacity: Int) {
        beacons.reserveCapacity(capacity)
        let table = beacons
        index.reserve(capacity) { table[Int($0)].identity }
        free.reserveCapacity(capacity)
        payloads.reserveCapacity(capacity)
        freePayloads.reserveCapacity(capacity)
    }

    var count: Int { index.count }

    func place(of identity: BeaconIdentity) -> Int32? {
        index.place(of: identity) { beacons[Int($0)].identity }
    }

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
        let table = beacons
        index.insert(place, of: beacon.identity) { table[Int($0)].identity }
        return place
    }

    mutating func remove(_ place: Int32) {
        forgetPayload(of: place)
        let table = beacons
        index.remove(place, of: table[Int(place)].identity) { table[Int($0)].identity }
        beacons[Int(place)].state = .free
        free.append(place)
    }

    /// The newest frame of a beacon that says more than who sent it.
    func payload(of place: Int32) -> FramePayload? {
        let kept = beacons[Int(place)].payloadPlace
        return kept < 0 ? nil : payloads[Int(kept)]
    }

    mutating func keep(_ payload: FramePayload, of place: Int32) {
        let kept = beacons[Int(place)].payloadPlace
        if kept >= 0 {
            payloads[Int(kept)] = payload
        } else if let reused = freePayloads.popLast() {
            payloads[Int(reused)] = payload
            beacons[Int(place)].payloadPlace = reused
        } else {
            beacons[Int(place)].payloadPlace = Int32(payloads.count)
            payloads.append(payload)
        }
    }

    mutating func forgetPayload(of place: Int32) {
        let kept = beacons[Int(place)].payloadPlace
        guard kept >= 0 else { return }
        beacons[Int(place)].payloadPlace = -1
        freePayloads.append(kept)
    }
}
