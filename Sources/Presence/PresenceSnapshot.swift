// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// What survives a restart, one opaque record for each beacon.
///
/// | field | octets, little-endian |
/// | --- | --- |
/// | version; 1 when it is inside, 2 when that is unknown, else 0 | 1, 1 |
/// | entered, heard last: milliseconds of wall-clock time | 8, 8 |
/// | what was learned: ``SilenceRecord`` | 72 |
/// | FNV-1a of everything before | 4 |
extension PresenceEngine {
    private static let snapshotVersion: UInt8 = 1
    private static let snapshotLength = 18 + SilenceRecord.encodedLength + 4

    /// Gives the record of each configured beacon that is present, or of which enough was learned to be worth keeping.
    /// Strangers come and go, and there may be thousands of them.
    ///
    /// - Parameter wallTime: the world's time of a moment on the clock of decisions.
    public func snapshot(
        wallTime: (MonotonicTime) -> WallTime, _ body: (BeaconIdentity, [UInt8]) -> Void
    ) {
        for beacon in table.beacons where beacon.state != .free && beacon.standing != .stranger {
            if let record = Self.record(of: beacon, wallTime) { body(beacon.identity, record) }
        }
    }

    /// The same for one beacon; nil when there is nothing to keep of it.
    public func snapshot(of identity: BeaconIdentity, wallTime: (MonotonicTime) -> WallTime) -> [UInt8]? {
        guard let place = table.place(of: identity), table.beacons[Int(place)].standing != .stranger else { return nil }
        return Self.record(of: table.beacons[Int(place)], wallTime)
    }

    private static func record(of beacon: TrackedBeacon, _ wallTime: (MonotonicTime) -> WallTime) -> [UInt8]? {
        guard beacon.isInside || beacon.silences.gapCount >= SilenceRecord.leastCount else { return nil }
        let isInside: UInt8 = beacon.state == .unknown ? 2 : beacon.isInside ? 1 : 0
        var record: [UInt8] = [snapshotVersion, isInside]
        record.reserveCapacity(snapshotLength)
        record.append(littleEndian: UInt64(bitPattern: wallTime(beacon.enteredAt).milliseconds))
        record.append(littleEndian: UInt64(bitPattern: wallTime(beacon.lastSeen).milliseconds))
        beacon.silences.encode(into: &record)
        record.append(littleEndian: check(record[...]))
        return record
    }

    /// Takes back the record of a beacon, before anything was heard. What was present is present, without an enter, and
    /// what was unknown is unknown; it leaves when its exit time of listening has passed from now on. Regions are
    /// occupied without an enter as well.
    ///
    /// - Parameters:
    ///   - record: as ``snapshot(wallTime:_:)`` gave it; one that is damaged or of another version changes nothing.
    ///   - time: now, on the clock of decisions.
    ///   - wallTime: now, in the world's time. If the record claims to be from the future, it is as old as nothing.
    /// - Returns: whether it was taken; that of a stranger is not.
    @discardableResult
    public mutating func restore(
        _ identity: BeaconIdentity, _ record: [UInt8], at time: MonotonicTime, wallTime: WallTime
    ) -> Bool {
        guard record.count == Self.snapshotLength, record[0] == Self.snapshotVersion, record[1] <= 2 else {
            return false
        }
        let end = record.count - 4
        guard record.littleEndian(UInt32.self, at: end) == Self.check(record[..<end]),
            let silences = SilenceRecord(decoding: record[18..<end]), table.place(of: identity) == nil,
            table.count < settings.maximumBeacons || rules.names(identity)
        else { return false }
        let standing = Self.standing(of: identity, rules, regions)
        guard standing != .stranger else { return false }
        now = max(now, time)
        func moment(at offset: Int) -> MonotonicTime {
            let then = Int64(bitPattern: record.littleEndian(UInt64.self, at: offset))
            let (age, overflow) = wallTime.milliseconds.subtractingReportingOverflow(then)
            return now + TimeInterval.milliseconds(overflow ? 0 : -max(age, 0))
        }
        let listening = clock.reading(at: now)
        let rule = rules.index(of: identity)
        let sighting = Sighting(
            time: moment(at: 10), identity: identity, address: .anonymous, rssi: nil, measuredPower: nil,
            adapter: .none)
        var beacon = TrackedBeacon(
            sighting, Hearing(listening: listening, evidence: clock.evidence(at: listening)), rule: rule,
            standing: standing)
        beacon.silences = silences
        beacon.isRanged = isRanged(identity)
        beacon.enteredAt = moment(at: 2)
        beacon.reportedAt = now
        beacon.state = record[1] == 1 ? .present : record[1] == 2 ? .unknown : .away
        silences.contribute(to: &pool)
        let place = table.insert(beacon)
        determineExitTime(of: place)
        guard beacon.isInside else {
            awayCount += 1
            recency.touch(place, in: .away)
            return true
        }
        presentCount += 1
        timers.set(place, deadline(of: place))
        if beacon.state == .unknown { doubtedAt = now }
        regions.restore(identity, isUnknown: beacon.state == .unknown)
        return true
    }

    private static func check(_ octets: ArraySlice<UInt8>) -> UInt32 {
        octets.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 }
    }
}

extension SilenceRecord {
    static let encodedLength = 6 * 4 + SilenceBins.count * 2

    func encode(into record: inout [UInt8]) {
        for value in [interval, meanSilence, meanDuration, meanMultiple, margin] {
            record.append(littleEndian: value.bitPattern)
        }
        record.append(littleEndian: gapCount)
        for bin in 0..<SilenceBins.count { record.append(littleEndian: counts[bin]) }
    }

    /// nil when the octets hold what cannot have been learned.
    init?(decoding octets: ArraySlice<UInt8>) {
        let octets = Array(octets)
        guard octets.count == Self.encodedLength else { return nil }
        self.init()
        let values = (0..<5).map { Float(bitPattern: octets.littleEndian(UInt32.self, at: $0 * 4)) }
        guard values.allSatisfy({ $0.isFinite && $0 >= 0 && $0 < 1e9 }), Self.margins.contains(values[4]),
            values[3] >= 1
        else { return nil }
        (interval, meanSilence, meanDuration, meanMultiple, margin) = (
            values[0], values[1], values[2], values[3], values[4]
        )
        gapCount = octets.littleEndian(UInt32.self, at: 20)
        var sum = 0
        for bin in 0..<SilenceBins.count {
            counts[bin] = octets.littleEndian(UInt16.self, at: 24 + bin * 2)
            sum += Int(counts[bin])
        }
        guard sum < Int(Self.capacity) else { return nil }
        total = UInt16(sum)
    }

    /// Gives what this beacon had to the pool, once after a restart.
    func contribute(to pool: inout SilencePool) {
        let index = SilencePool.index(usualSilence)
        for bin in 0..<SilenceBins.count { pool.add(bin, count: UInt32(counts[bin]), to: index) }
    }
}

extension [UInt8] {
    fileprivate mutating func append(littleEndian value: some FixedWidthInteger) {
        for shift in stride(from: 0, to: value.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    fileprivate func littleEndian<Integer: FixedWidthInteger>(_ type: Integer.Type, at offset: Int) -> Integer {
        var value: Integer = 0
        for index in 0..<Integer.bitWidth / 8 {
            value |= Integer(truncatingIfNeeded: self[offset + index]) << Integer(index * 8)
        }
        return value
    }
}
