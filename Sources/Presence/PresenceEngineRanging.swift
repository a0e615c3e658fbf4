// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// How near the beacons are.
extension PresenceEngine {
    /// Whether nobody can say if a region is occupied, because every radio was blind for too long.
    public func isUnknown(region: Name) -> Bool { regions.isUnknown(region) }

    /// Has the next ranging come at the end of the interval in which a beacon was heard. The intervals follow the clock of
    /// decisions, so that they do not depend on who was heard first.
    mutating func scheduleRanging() {
        guard nextRanging == .distantFuture else { return }
        let interval = settings.rangingInterval.nanoseconds
        let (past, rest) = now.nanoseconds.quotientAndRemainder(dividingBy: interval)
        let index = rest < 0 ? past : past + 1
        nextRanging = .zero + TimeInterval(nanoseconds: index.multipliedReportingOverflow(by: interval).partialValue)
        if nextRanging < now { nextRanging = now }
    }

    /// Lists the beacons inside each region that ranges, nearest first, unknown distances last.
    mutating func range(_ emit: (borrowing Event) -> Void) {
        nextRanging = .distantFuture
        ranked.removeAll(keepingCapacity: true)
        for index in table.beacons.indices where table.beacons[index].isRanged && table.beacons[index].isInside {
            let event = event(.ranging, Int32(index))
            let distance = event.accuracy < 0 ? Float.infinity : event.accuracy
            regions.forEachRanged(table.beacons[index].identity) { ranked.append(($0, distance, Int32(index))) }
        }
        ranked.sort { $0 < $1 }
        var rank: UInt32 = 0
        var region = -1
        for entry in ranked {
            rank = entry.region == region ? rank + 1 : 1
            region = entry.region
            var event = event(.ranging, entry.place)
            let tally = table.beacons[Int(entry.place)].ranging
            event.signal.count = tally.count
            event.signal.minimum = tally.minimum
            event.signal.maximum = tally.maximum
            event.region = regions.name(region)
            event.insideCount = regions.insideCount(region)
            event.rank = rank
            emit(event)
        }
        for entry in ranked { table.beacons[Int(entry.place)].ranging = RangingTally() }
    }

    /// Says so when a present beacon has come nearer or gone farther.
    mutating func followProximity(_ place: Int32, _ emit: (borrowing Event) -> Void) {
        let index = Int(place)
        let before = table.beacons[index].proximity
        let (_, proximity) = distance(of: place)
        guard proximity != before else { return }
        if table.beacons[index].isInside, before != .unknown { emit(event(.proximity, place)) }
        table.beacons[index].proximity = proximity
    }

    /// The distance of a beacon by its filtered strength, in metres; negative when not known.
    func metres(of place: Int32) -> Float { distance(of: place).metres }

    @inline(__always)
    private func distance(of place: Int32) -> (metres: Float, Proximity) {
        let index = Int(place)
        let rule = rules[table.beacons[index].rule]
        return Self.distance(
            strength: table.beacons[index].recent.filtered(settings.filter),
            Self.measuredPower(rule, claimed: table.beacons[index].claimedPower, settings.assumedMeasuredPower), rule,
            after: table.beacons[index].proximity)
    }
}
