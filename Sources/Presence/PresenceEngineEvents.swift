// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// What the engine tells, by itself and when it is asked.
extension PresenceEngine {
    /// Beacons that are known and have not left, present or not yet.
    public var trackedCount: Int { table.count - awayCount }

    /// Each present beacon, as the `enter` event that would be right now, or the `unknown` one: `time` is when it entered
    /// or became unknown, the signal is that of the unfinished report, and `lastSeen` is given.
    public func forEachPresent(_ body: (borrowing Event) -> Void) {
        for index in table.beacons.indices where table.beacons[index].isInside {
            let isUnknown = table.beacons[index].state == .unknown
            var event = self.event(isUnknown ? .unknown : .enter, Int32(index))
            event.time = isUnknown ? doubtedAt : table.beacons[index].enteredAt
            event.lastSeen = table.beacons[index].lastSeen
            body(event)
        }
    }

    /// Each region in the order of the configuration, with the number of beacons inside.
    public func forEachRegion(_ body: (Name, UInt32) -> Void) { regions.forEach(body) }

    /// Whether ``takeChangedRegions(_:)`` has something to tell.
    public var hasChangedRegions: Bool { regions.changedCount > 0 }

    /// The state of each region that more or fewer beacons are inside since a transition or this told how many, as the
    /// `region_known` or `region_unknown` event that leads there; `time` is that of the last change. Nothing but the
    /// count is news, so that it is no event.
    public mutating func takeChangedRegions(_ body: (borrowing Event) -> Void) { regions.takeChanged(body) }

    /// What is known of a beacon now; nil when it is not tracked.
    public func insight(of identity: BeaconIdentity) -> BeaconInsight? {
        guard let place = table.place(of: identity) else { return nil }
        let beacon = table.beacons[Int(place)]
        let event = self.event(.sighting, place)
        let rule = rules[beacon.rule]
        let isLearned = rule.exitTime == nil
        let state: BeaconInsight.State =
            switch beacon.state {
            case .free, .away: .away
            case .candidate: .candidate
            case .present: .present
            case .unknown: .unknown
            }
        return BeaconInsight(
            state: state, enteredAt: beacon.isInside ? beacon.enteredAt : nil, lastSeen: beacon.lastSeen,
            signal: event.signal, measuredPower: event.measuredPower, proximity: event.proximity,
            accuracy: event.accuracy, advertisingInterval: beacon.silences.advertisingInterval,
            loss: beacon.silences.loss(chance: clock.chance), hearingChance: clock.isListening ? clock.chance : 0,
            exitTime: rule.exitTime ?? beacon.silences.exitTime,
            deadline: state == .away ? nil : clock.time(of: deadline(of: place)),
            falseExitsAsked: isLearned ? rule.bounds.rate : nil,
            falseExitsExpected: isLearned ? Double(beacon.silences.expectedRate) : nil,
            limit: isLearned ? beacon.silences.limit : .fixed, gapCount: UInt64(beacon.silences.gapCount))
    }

    mutating func report(_ kind: Event.Kind, _ place: Int32, _ emit: (borrowing Event) -> Void) {
        emit(event(kind, place))
        table.beacons[Int(place)].report(at: now)
    }

    mutating func emitExit(_ place: Int32, _ reason: Event.ExitReason, _ emit: (borrowing Event) -> Void) {
        presentCount -= 1
        let beacon = table.beacons[Int(place)]
        let rule = rules[beacon.rule]
        var event = self.event(.exit, place)
        event.lastSeen = beacon.lastSeen
        event.exitReason = reason
        if let exitTime = rule.exitTime {
            event.exitTime = exitTime
        } else {
            event.exitTime = beacon.silences.exitTime
            event.exitLimit = beacon.silences.limit
            event.falseExits = (Float(rule.bounds.rate), beacon.silences.expectedRate)
        }
        emit(event)
    }

    mutating func emitClone(_ place: Int32, _ emit: (borrowing Event) -> Void) {
        var event = event(.clone, place)
        event.otherAddress = table.beacons[Int(place)].senders.other
        emit(event)
    }

    func event(_ kind: Event.Kind, _ place: Int32) -> Event {
        let beacon = table.beacons[Int(place)]
        let rule = rules[beacon.rule]
        var event = Event(kind: kind, time: now)
        event.identity = beacon.identity
        event.name = rule.alias
        event.isConfigured = beacon.standing != .stranger
        event.address = beacon.address
        event.adapter = beacon.adapter
        event.signal = beacon.signal(settings.filter)
        event.payload = table.payload(of: place)
        event.measuredPower = Self.measuredPower(rule, claimed: beacon.claimedPower, settings.assumedMeasuredPower)
        (event.accuracy, event.proximity) = Self.distance(
            strength: event.signal.filtered, event.measuredPower, rule, after: beacon.proximity)
        if kind == .sighting || kind == .ranging, event.accuracy >= 0,
            let deviation = table.beacons[Int(place)].recent.deviationOfMean
        {
            event.accuracyUncertainty = Distance.uncertainty(
                metres: event.accuracy, deviation: deviation, pathLossExponent: rule.pathLossExponent)
        }
        return event
    }

    /// The strength at 1 m that distances are reckoned with, dBm: of the configuration, else as the frame claims it, else
    /// nil.
    static func measuredPower(_ rule: AppliedRule, claimed: Int8?, _ assumed: Int8) -> Int8? {
        rule.measuredPower ?? claimed.map { MeasuredPower.plausible.contains($0) ? $0 : assumed }
    }

    /// How far away a beacon is that is heard so strong, in metres, negative when it is unknown; and its proximity after
    /// the one that was told.
    static func distance(
        strength: Float?, _ measuredPower: Int8?, _ rule: AppliedRule, after before: Proximity
    ) -> (metres: Float, Proximity) {
        guard let strength, let measuredPower else { return (-1, .unknown) }
        let metres = Distance.metres(
            strength: strength, measuredPower: measuredPower, pathLossExponent: rule.pathLossExponent)
        return (metres, Distance.proximity(metres: metres, after: before))
    }
}
