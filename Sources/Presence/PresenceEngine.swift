// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Decides which beacons are here: sightings, what the radios do, and the time go in; events come out.
///
/// It has no clock and does no I/O. The same calls give the same events, extra calls of ``tick(_:emit:)`` change none
/// of them, and the times of events never go back. In the steady state nothing is allocated. `docs/presence.md` has
/// the rules.
public struct PresenceEngine: ~Copyable, Sendable {
    private var settings: PresenceSettings
    private var rules: RuleBook
    private var regions: RegionTracker
    private var table: BeaconTable
    private var timers: TimerHeap
    private var strangers: RecencyLists
    private var clock = ListeningClock()
    private var now = MonotonicTime(nanoseconds: .min)

    /// Beacons that are present.
    public private(set) var presentCount = 0
    /// Sightings that came too late to say anything.
    public private(set) var lateCount: UInt64 = 0
    /// Sightings of beacons for which the full table had no place.
    public private(set) var refusedCount: UInt64 = 0
    /// Beacons that were forgotten to make place for others.
    public private(set) var evictedCount: UInt64 = 0

    /// - Parameters:
    ///   - beacons: of two rules for one identity the later one counts.
    ///   - regions: names should differ.
    public init(settings: PresenceSettings, beacons: [BeaconRule], regions: [RegionRule]) {
        self.settings = settings.inRange
        rules = RuleBook(settings, beacons)
        self.regions = RegionTracker(regions)
        table = BeaconTable(capacity: self.settings.maximumBeacons)
        timers = TimerHeap(capacity: self.settings.maximumBeacons)
        strangers = RecencyLists(capacity: self.settings.maximumBeacons)
    }

    // MARK: What happens

    /// A beacon was heard. What is due before that comes out first.
    ///
    /// A sighting may be older than an earlier call, as when two adapters deliver at their own pace; it then counts
    /// for the moment at which the beacon was last heard, and the event carries the later time.
    public mutating func observe(_ sighting: Sighting, emit: (borrowing Event) -> Void) {
        advance(to: sighting.time, emit)
        clock.hear(sighting.adapter, at: now)
        let heardAt = clock.reading(at: sighting.time)
        guard let place = table.place(of: sighting.identity) ?? admit(sighting, heardAt, emit) else { return }
        let index = Int(place)
        guard table.beacons[index].take(sighting, heardAt: heardAt, averageOver: settings.averageOver) else {
            lateCount += 1
            return
        }
        if table.beacons[index].state == .present {
            if now - table.beacons[index].reportedAt >= settings.reportInterval { report(.sighting, place, emit) }
        } else if table.beacons[index].count >= rules[table.beacons[index].rule].enterCount {
            enter(place, emit)
        }
        if table.beacons[index].standing == .stranger {
            strangers.touch(place, in: table.beacons[index].state == .present ? .present : .candidates)
        }
    }

    /// A radio does something else from `time` on. Until it is told so, a radio listens without pause; silence counts
    /// while at least one of them listens.
    public mutating func radio(
        _ adapter: Name, _ activity: RadioActivity, at time: MonotonicTime, emit: (borrowing Event) -> Void
    ) {
        advance(to: time, emit)
        clock.set(adapter, activity, at: now)
    }

    /// It is `time` now: emits what became due.
    public mutating func tick(_ time: MonotonicTime, emit: (borrowing Event) -> Void) {
        advance(to: time, emit)
    }

    /// When ``tick(_:emit:)`` should be called at the latest; it may find that nothing is due. `distantFuture` when
    /// nothing can become due before the next call of another kind.
    public var nextDeadline: MonotonicTime {
        timers.first.flatMap { clock.time(of: $0.deadline) } ?? .distantFuture
    }

    /// The configuration was read again.
    ///
    /// Beacons that are in the old and in the new one stay as they are. What was configured and no longer is, or was a
    /// stranger and now is not, leaves with the reason `removed` and may enter anew. Regions are compared by name.
    public mutating func reconfigure(
        settings newSettings: PresenceSettings, beacons: [BeaconRule], regions regionRules: [RegionRule],
        at time: MonotonicTime, emit: (borrowing Event) -> Void
    ) {
        advance(to: time, emit)
        let newRules = RuleBook(newSettings, beacons)
        var newRegions = RegionTracker(regionRules)
        let resetsAverage = newSettings.inRange.averageOver != settings.averageOver
        for index in table.beacons.indices where table.beacons[index].state != .free {
            let identity = table.beacons[index].identity
            let standing = Self.standing(of: identity, newRules, newRegions)
            if (standing == .stranger) != (table.beacons[index].standing == .stranger) {
                leave(Int32(index), .removed, emit)
                continue
            }
            table.beacons[index].standing = standing
            table.beacons[index].rule = newRules.index(of: identity)
            if resetsAverage { table.beacons[index].average = MovingAverage() }
            if table.beacons[index].state == .present { newRegions.enter(identity, at: now) { _ in } }
        }
        newRegions.emitChanges(from: regions, at: now, emit: emit)
        settings = newSettings.inRange
        rules = newRules
        regions = newRegions
        fitTables(emit)
        advance(to: now, emit)
    }

    // MARK: What can be asked

    /// Beacons that are known, present or not yet.
    public var trackedCount: Int { table.count }

    /// Each present beacon, as the `enter` event that would be right now: `time` is when it entered, the signal is that
    /// of the unfinished report, and `lastSeen` is given.
    public func forEachPresent(_ body: (borrowing Event) -> Void) {
        for index in table.beacons.indices where table.beacons[index].state == .present {
            var event = self.event(.enter, Int32(index))
            event.time = table.beacons[index].enteredAt
            event.lastSeen = table.beacons[index].lastSeen
            body(event)
        }
    }

    /// What is known of a beacon now; nil when it is not tracked.
    public func insight(of identity: BeaconIdentity) -> BeaconInsight? {
        guard let place = table.place(of: identity) else { return nil }
        let beacon = table.beacons[Int(place)]
        let event = self.event(.sighting, place)
        let isPresent = beacon.state == .present
        let deadline = clock.time(of: self.deadline(of: place))
        return BeaconInsight(
            state: isPresent ? .present : .candidate, enteredAt: isPresent ? beacon.enteredAt : nil,
            lastSeen: beacon.lastSeen, signal: event.signal, measuredPower: event.measuredPower,
            proximity: event.proximity, accuracy: event.accuracy, advertisingInterval: nil, loss: nil,
            hearingChance: deadline == nil ? 0 : 1,
            exitTime: isPresent ? rules[beacon.rule].exitTime : settings.enterGap, deadline: deadline,
            falseExitsAsked: nil, falseExitsExpected: nil, limit: .fixed, gapCount: 0)
    }

    /// Each region in the order of the configuration, with the number of beacons inside.
    public func forEachRegion(_ body: (Name, UInt32) -> Void) { regions.forEach(body) }

    // MARK: Steps

    /// Moves the time on, and stops at each moment at which a silence became too long.
    private mutating func advance(to time: MonotonicTime, _ emit: (borrowing Event) -> Void) {
        while let (deadline, place) = timers.first, let moment = clock.time(of: deadline), moment <= max(time, now) {
            let actual = self.deadline(of: place)
            if actual > deadline {
                timers.set(place, actual)
            } else {
                now = max(now, moment)
                expire(place, emit)
            }
        }
        now = max(now, time)
    }

    private func deadline(of place: Int32) -> ListeningTime {
        let beacon = table.beacons[Int(place)]
        return beacon.heardAt + (beacon.state == .present ? rules[beacon.rule].exitTime : settings.enterGap)
    }

    /// A place for a beacon that was not tracked; nil when it gets none.
    private mutating func admit(
        _ sighting: Sighting, _ heardAt: ListeningTime, _ emit: (borrowing Event) -> Void
    ) -> Int32? {
        let rule = rules.index(of: sighting.identity)
        let silence = rules[rule].enterCount > 1 ? settings.enterGap : rules[rule].exitTime
        guard clock.reading(at: now) < heardAt + silence else {
            lateCount += 1
            return nil
        }
        let standing = Self.standing(of: sighting.identity, rules, regions)
        // A beacon with a rule has a place in any case: there are only as many as somebody wrote down.
        guard table.count < settings.maximumBeacons || evictStranger(emit) || standing == .named else {
            refusedCount += 1
            return nil
        }
        let place = table.insert(TrackedBeacon(sighting, heardAt: heardAt, rule: rule, standing: standing))
        timers.set(place, deadline(of: place))
        return place
    }

    private static func standing(
        of identity: BeaconIdentity, _ rules: RuleBook, _ regions: RegionTracker
    ) -> TrackedBeacon.Standing {
        rules.names(identity) ? .named : regions.contains(identity) ? .member : .stranger
    }

    private mutating func enter(_ place: Int32, _ emit: (borrowing Event) -> Void) {
        table.beacons[Int(place)].state = .present
        table.beacons[Int(place)].enteredAt = now
        presentCount += 1
        timers.set(place, deadline(of: place))
        report(.enter, place, emit)
        regions.enter(table.beacons[Int(place)].identity, at: now, emit: emit)
    }

    private mutating func expire(_ place: Int32, _ emit: (borrowing Event) -> Void) {
        let beacon = table.beacons[Int(place)]
        leave(place, .timeout, emit)
        if beacon.state == .present { regions.leave(beacon.identity, at: now, reason: .timeout, emit: emit) }
    }

    /// Forgets the stranger that was heard the longest ago, at first among those that have not entered; false when
    /// there is none.
    private mutating func evictStranger(_ emit: (borrowing Event) -> Void) -> Bool {
        guard let place = strangers.oldest(.candidates) ?? strangers.oldest(.present) else { return false }
        evictedCount += 1
        leave(place, .evicted, emit)
        return true
    }

    /// Forgets a beacon, and says so if it was present. The regions are left to the caller.
    private mutating func leave(_ place: Int32, _ reason: Event.ExitReason, _ emit: (borrowing Event) -> Void) {
        let beacon = table.beacons[Int(place)]
        if beacon.state == .present {
            presentCount -= 1
            var event = self.event(.exit, place)
            event.lastSeen = beacon.lastSeen
            event.exitTime = rules[beacon.rule].exitTime
            event.exitReason = reason
            emit(event)
        }
        timers.remove(place)
        strangers.remove(place)
        table.remove(place)
    }

    /// Brings tables and timers in line with new settings.
    private mutating func fitTables(_ emit: (borrowing Event) -> Void) {
        while table.count > settings.maximumBeacons, evictStranger(emit) {}
        table.reserve(settings.maximumBeacons)
        timers.reserve(settings.maximumBeacons)
        strangers.reserve(settings.maximumBeacons)
        for index in table.beacons.indices where table.beacons[index].state != .free {
            timers.set(Int32(index), deadline(of: Int32(index)))
        }
    }

    // MARK: Events

    private mutating func report(_ kind: Event.Kind, _ place: Int32, _ emit: (borrowing Event) -> Void) {
        emit(event(kind, place))
        table.beacons[Int(place)].report(at: now)
    }

    private func event(_ kind: Event.Kind, _ place: Int32) -> Event {
        let beacon = table.beacons[Int(place)]
        let rule = rules[beacon.rule]
        var event = Event(kind: kind, time: now)
        event.identity = beacon.identity
        event.name = rule.alias
        event.isConfigured = beacon.standing != .stranger
        event.address = beacon.address
        event.adapter = beacon.adapter
        event.signal = beacon.signal
        event.payload = beacon.payload
        event.measuredPower =
            rule.measuredPower
            ?? beacon.claimedPower.map {
                MeasuredPower.plausible.contains($0) ? $0 : settings.assumedMeasuredPower
            }
        if let strength = event.signal.filtered, let measuredPower = event.measuredPower {
            event.accuracy = Distance.metres(
                strength: strength, measuredPower: measuredPower, pathLossExponent: rule.pathLossExponent)
            event.proximity = Distance.proximity(metres: event.accuracy)
        }
        return event
    }
}
