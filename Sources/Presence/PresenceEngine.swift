// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Decides which beacons are here: sightings, what the radios do, and the time go in; events come out.
///
/// It has no clock and does no I/O. The same calls give the same events, extra calls of ``tick(_:emit:)`` change none
/// of them, and the times of events never go back. In the steady state nothing is allocated. `docs/presence.md` has
/// the rules.
public struct PresenceEngine: ~Copyable, Sendable {
    var settings: PresenceSettings
    var rules: RuleBook
    var regions: RegionTracker
    var table: BeaconTable
    var timers: TimerHeap
    var recency: RecencyLists
    var pool = SilencePool()
    var clock = ListeningClock()
    var schedules = ScheduleBounds()
    var now = MonotonicTime(nanoseconds: .min)
    /// Whether all radios have been blind for so long that nobody can vouch for anything.
    var isInDoubt = false
    /// When that was said last.
    var doubtedAt = MonotonicTime.zero
    /// When the regions that range are listed next; `distantFuture` when none of their beacons was heard.
    var nextRanging = MonotonicTime.distantFuture
    /// The room in which they are put in order.
    var ranked: [(region: Int, distance: Float, place: Int32)] = []
    /// Records of beacons that have left.
    var awayCount = 0

    /// Beacons that are present, those of unknown state among them.
    public internal(set) var presentCount = 0
    /// Sightings that came too late to say anything.
    public internal(set) var lateCount: UInt64 = 0
    /// Sightings of beacons for which the full table had no place.
    public internal(set) var refusedCount: UInt64 = 0
    /// Beacons that were forgotten to make place for others.
    public internal(set) var evictedCount: UInt64 = 0

    /// - Parameters:
    ///   - beacons: of two rules for one identity the later one counts.
    ///   - regions: names should differ.
    public init(settings: PresenceSettings, beacons: [BeaconRule], regions: [RegionRule]) {
        self.settings = settings.inRange
        rules = RuleBook(self.settings, beacons, regions)
        self.regions = RegionTracker(regions)
        table = BeaconTable(capacity: self.settings.maximumBeacons)
        timers = TimerHeap(capacity: self.settings.maximumBeacons)
        recency = RecencyLists(capacity: self.settings.maximumBeacons)
    }

    // MARK: What happens

    /// A beacon was heard. What is due before that comes out first.
    ///
    /// A sighting may be older than an earlier call, as when two adapters deliver at their own pace; it then counts
    /// for the moment at which the beacon was last heard, and the event carries the later time.
    public mutating func observe(_ sighting: Sighting, emit: (borrowing Event) -> Void) {
        advance(to: sighting.time, emit)
        radiosChanged(clock.hear(sighting.adapter, at: now))
        let listening = clock.reading(at: sighting.time)
        let moment = Hearing(listening: listening, evidence: clock.evidence(at: listening))
        guard let place = tracked(sighting, moment, emit) ?? admit(sighting, moment, emit) else { return }
        let index = Int(place)
        learn(sighting, moment, place)
        let wasClone = table.beacons[index].senders.areTwo
        guard table.beacons[index].take(sighting, moment, keeping: settings.averageOver) else {
            lateCount += 1
            return
        }
        if let payload = sighting.payload, sighting.time == table.beacons[index].lastSeen {
            table.keep(payload, of: place)
        }
        followProximity(place, emit)
        let isFitting = !rules.hasGates || fits(place, emit)
        if table.beacons[index].isInside {
            if table.beacons[index].state == .unknown { confirm(place, emit) }
            if now - table.beacons[index].reportedAt >= settings.reportInterval { report(.sighting, place, emit) }
        } else if isFitting, table.beacons[index].count >= rules[table.beacons[index].rule].enterCount {
            enter(place, emit)
        }
        if table.beacons[index].senders.areTwo, !wasClone { emitClone(place, emit) }
        if table.beacons[index].isRanged, table.beacons[index].isInside { scheduleRanging() }
        if table.beacons[index].standing == .stranger {
            recency.touch(place, in: table.beacons[index].isInside ? .present : .candidates)
        }
    }

    /// A radio does something else from `time` on. Until it is told so, a radio listens without pause; silence counts
    /// while at least one of them listens, and as much as the best one hears.
    public mutating func radio(
        _ adapter: Name, _ activity: RadioActivity, at time: MonotonicTime, emit: (borrowing Event) -> Void
    ) {
        advance(to: time, emit)
        radiosChanged(clock.set(adapter, activity, at: now))
    }

    /// It is `time` now: emits what became due.
    public mutating func tick(_ time: MonotonicTime, emit: (borrowing Event) -> Void) {
        advance(to: time, emit)
    }

    /// When ``tick(_:emit:)`` should be called at the latest; it may find that nothing is due. `distantFuture` when
    /// nothing can become due before the next call of another kind.
    public var nextDeadline: MonotonicTime {
        let timer = timers.first.flatMap { clock.time(of: $0.deadline) } ?? .distantFuture
        return min(timer, nextRanging, presentCount > 0 ? doubtDeadline : .distantFuture)
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
        let newRules = RuleBook(newSettings.inRange, beacons, regionRules)
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
            table.beacons[index].dwell.reset()
            if resetsAverage { table.beacons[index].recent = RecentStrengths() }
            if table.beacons[index].isInside {
                newRegions.restore(identity, isUnknown: table.beacons[index].state == .unknown)
            }
        }
        newRegions.emitChanges(from: regions, at: now, emit: emit)
        settings = newSettings.inRange
        rules = newRules
        regions = newRegions
        for index in table.beacons.indices where table.beacons[index].state != .free {
            table.beacons[index].isRanged = isRanged(table.beacons[index].identity)
        }
        fitTables(emit)
        advance(to: now, emit)
    }
}
