// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// How the engine goes from moment to moment and from state to state.
extension PresenceEngine {
    /// Moves the time on, and stops at each moment at which a silence became too long.
    mutating func advance(to time: MonotonicTime, _ emit: (borrowing Event) -> Void) {
        let end = max(time, now)
        while nextRanging <= end, nextRanging < .distantFuture {
            leaveUntil(nextRanging, emit)
            now = max(now, nextRanging)
            range(emit)
        }
        leaveUntil(end, emit)
        let doubted = doubtDeadline
        if doubted <= end, doubted < .distantFuture {
            now = max(now, doubted)
            doubt(emit)
        }
        now = max(now, time)
    }

    private mutating func leaveUntil(_ end: MonotonicTime, _ emit: (borrowing Event) -> Void) {
        while let (deadline, place) = timers.first, let moment = clock.time(of: deadline), moment <= end {
            let actual = self.deadline(of: place)
            if actual > deadline {
                timers.set(place, actual)
            } else {
                now = max(now, moment)
                expire(place, emit)
            }
        }
    }

    func deadline(of place: Int32) -> ListeningTime {
        let index = Int(place)
        guard table.beacons[index].isInside else { return table.beacons[index].heardAt + settings.enterGap }
        if let exitTime = rules[table.beacons[index].rule].exitTime { return table.beacons[index].heardAt + exitTime }
        return clock.reading(of: table.beacons[index].evidenceAt + table.beacons[index].silences.exitTime)
    }

    // MARK: Coming

    /// The place of a beacon that is tracked; one that was away begins anew there, with what is known of its silences.
    mutating func tracked(
        _ sighting: Sighting, _ moment: Hearing, _ emit: (borrowing Event) -> Void
    ) -> Int32? {
        guard let place = table.place(of: sighting.identity) else { return nil }
        guard table.beacons[Int(place)].state == .away else { return place }
        guard isRecent(moment, rules[table.beacons[Int(place)].rule]) else { return nil }
        if trackedCount >= settings.maximumBeacons, !evictStranger(emit),
            table.beacons[Int(place)].standing != .named
        {
            forget(place)
            return nil
        }
        let silence = moment.evidence - table.beacons[Int(place)].evidenceAt
        if rules[table.beacons[Int(place)].rule].exitTime == nil,
            pool.comesBack(
                after: silence.seconds, exitTime: table.beacons[Int(place)].silences.exitTime.seconds)
        {
            table.beacons[Int(place)].silences.falseExit(
                allowed: rules[table.beacons[Int(place)].rule].bounds.rate, &pool)
            learn(
                evidence: silence, time: sighting.time - table.beacons[Int(place)].lastSeen, isUnbroken: false, place)
            determineExitTime(of: place)
        }
        table.forgetPayload(of: place)
        table.beacons[Int(place)].comeBack(sighting, moment)
        awayCount -= 1
        recency.remove(place)
        timers.set(place, deadline(of: place))
        return place
    }

    /// Whether a packet says that its beacon is here, and not only that it was.
    private func isRecent(_ moment: Hearing, _ rule: AppliedRule) -> Bool {
        let silence = rule.enterCount > 1 ? settings.enterGap : rule.exitTime ?? SilenceRecord.beginning
        return clock.reading(at: now) < moment.listening + silence
    }

    /// A place for a beacon that was not tracked; nil when it gets none.
    mutating func admit(_ sighting: Sighting, _ moment: Hearing, _ emit: (borrowing Event) -> Void) -> Int32? {
        // A record of one that is away says the same, but its packet came too late.
        guard table.place(of: sighting.identity) == nil, isRecent(moment, rules[rules.index(of: sighting.identity)])
        else {
            lateCount += 1
            return nil
        }
        let standing = Self.standing(of: sighting.identity, rules, regions)
        // A beacon with a rule has a place in any case: there are only as many as somebody wrote down.
        guard table.count < settings.maximumBeacons || makeRoom(emit) || standing == .named else {
            refusedCount += 1
            return nil
        }
        let rule = rules.index(of: sighting.identity)
        var beacon = TrackedBeacon(sighting, moment, rule: rule, standing: standing)
        beacon.isRanged = isRanged(sighting.identity)
        let place = table.insert(beacon)
        determineExitTime(of: place)
        timers.set(place, deadline(of: place))
        return place
    }

    func isRanged(_ identity: BeaconIdentity) -> Bool {
        var result = false
        regions.forEachRanged(identity) { _ in result = true }
        return result
    }

    static func standing(
        of identity: BeaconIdentity, _ rules: RuleBook, _ regions: RegionTracker
    ) -> TrackedBeacon.Standing {
        rules.names(identity) ? .named : regions.contains(identity) ? .member : .stranger
    }

    mutating func enter(_ place: Int32, _ emit: (borrowing Event) -> Void) {
        table.beacons[Int(place)].state = .present
        table.beacons[Int(place)].dwell.reset()
        table.beacons[Int(place)].enteredAt = now
        presentCount += 1
        timers.set(place, deadline(of: place))
        report(.enter, place, emit)
        regions.enter(table.beacons[Int(place)].identity, at: now, emit: emit)
    }

    // MARK: Near and far

    /// Whether the signal lets a beacon enter, as far as anybody asked for that; one that is inside leaves when it has been
    /// too far away for long enough, and waits as a candidate to come near.
    mutating func fits(_ place: Int32, _ emit: (borrowing Event) -> Void) -> Bool {
        let index = Int(place)
        guard let gate = rules.gate(of: table.beacons[index].rule) else { return true }
        // That of the newest sighting: one that comes late adds to the signal, and must not turn the time back.
        let moment = table.beacons[index].heardAt
        let strength = table.beacons[index].recent.filtered(settings.filter)
        let metres = gate.measure == .distance ? self.metres(of: place) : -1
        guard table.beacons[index].isInside else {
            return table.beacons[index].dwell.note(
                gate.isNear(strength: strength, metres: metres), at: moment, for: gate.enterDwell)
        }
        let isFar = gate.isFar(strength: strength, metres: metres)
        if table.beacons[index].dwell.note(isFar, at: moment, for: gate.exitDwell) {
            emitExit(place, .far, emit)
            table.beacons[index].state = .candidate
            table.beacons[index].dwell.reset()
            table.beacons[index].report(at: now)
            timers.set(place, deadline(of: place))
            regions.leave(table.beacons[index].identity, at: now, reason: .far, emit: emit)
        }
        return false
    }

    // MARK: Learning

    /// Learns from the silence that a sighting ends, of a beacon that has not left.
    mutating func learn(_ sighting: Sighting, _ moment: Hearing, _ place: Int32) {
        let index = Int(place)
        let time = sighting.time - table.beacons[index].lastSeen
        // Two radios or two channels that hear one event are no silence; and what came before a doubt is none either.
        let event =
            sighting.adapter == table.beacons[index].adapter
            ? SilenceRecord.sameEvent : SilenceRecord.sameEventOfRadios
        let isSameEvent =
            time < SilenceRecord.sameEvent
            || time < event
                && time.nanoseconds < (table.beacons[index].silences.advertisingInterval ?? event).nanoseconds / 2
        guard !isSameEvent, table.beacons[index].state != .unknown else { return }
        let listening = moment.listening - table.beacons[index].heardAt
        learn(
            evidence: moment.evidence - table.beacons[index].evidenceAt, time: time, isUnbroken: listening == time,
            place)
    }

    private mutating func learn(
        evidence: TimeInterval, time: TimeInterval, isUnbroken: Bool, _ place: Int32
    ) {
        let rule = rules[table.beacons[Int(place)].rule]
        let isDue = table.beacons[Int(place)].silences.learn(
            evidence: evidence, time: time, isUnbroken: isUnbroken, chance: clock.chance,
            allowed: rule.exitTime == nil ? rule.bounds.rate : nil, pool: &pool)
        guard isDue, rule.exitTime == nil else { return }
        determineExitTime(of: place)
        // It may be shorter now, and a timer may be early but not late.
        if table.beacons[Int(place)].isInside { timers.set(place, deadline(of: place)) }
    }

    mutating func determineExitTime(of place: Int32) {
        let rule = rules[table.beacons[Int(place)].rule]
        guard rule.exitTime == nil else { return }
        let record = table.beacons[Int(place)].silences
        var hidden = hidingTime(record, step: Double(record.interval), rule)
        let step = record.step(hidden: min(hidden, rule.bounds.ceiling.seconds))
        if step < Double(record.interval) { hidden = hidingTime(record, step: step, rule) }
        table.beacons[Int(place)].silences.determineExitTime(rule.bounds, pool: pool, hidden: hidden)
    }

    /// How long the windows of the best radio hide a beacon with this step from event to event, in seconds of evidence.
    private mutating func hidingTime(_ record: SilenceRecord, step: Double, _ rule: AppliedRule) -> Double {
        let (window, interval) = clock.best
        let time =
            schedules.exitTime(
                window: window, interval: interval, step: step, loss: record.loss(chance: clock.chance) ?? 0,
                falseExits: rule.bounds.rate, at: now)
            ?? ScanBeat.hidingTime(advertisingInterval: step, window: window, interval: interval)
        return time * clock.chance
    }

    // MARK: Going

    mutating func expire(_ place: Int32, _ emit: (borrowing Event) -> Void) {
        let beacon = table.beacons[Int(place)]
        if beacon.isInside { emitExit(place, .timeout, emit) }
        if beacon.silences.gapCount >= SilenceRecord.leastCount {
            timers.remove(place)
            table.beacons[Int(place)].state = .away
            awayCount += 1
            recency.touch(place, in: .away)
        } else {
            forget(place)
        }
        if beacon.isInside { regions.leave(beacon.identity, at: now, reason: .timeout, emit: emit) }
    }

    /// Makes room for one more by forgetting beacons that have left, else a stranger; false when there is none.
    mutating func makeRoom(_ emit: (borrowing Event) -> Void) -> Bool {
        while table.count >= settings.maximumBeacons, let place = recency.oldest(.away) { forget(place) }
        return trackedCount < settings.maximumBeacons || evictStranger(emit)
    }

    /// Forgets the stranger that was heard the longest ago, at first among those that have not entered; false when there
    /// is none.
    mutating func evictStranger(_ emit: (borrowing Event) -> Void) -> Bool {
        guard let place = recency.oldest(.candidates) ?? recency.oldest(.present) else { return false }
        evictedCount += 1
        leave(place, .evicted, emit)
        return true
    }

    /// Forgets a beacon, and says so if it was present. The regions are left to the caller.
    mutating func leave(_ place: Int32, _ reason: Event.ExitReason, _ emit: (borrowing Event) -> Void) {
        if table.beacons[Int(place)].isInside { emitExit(place, reason, emit) }
        forget(place)
    }

    private mutating func forget(_ place: Int32) {
        if table.beacons[Int(place)].state == .away { awayCount -= 1 }
        timers.remove(place)
        recency.remove(place)
        table.remove(place)
    }

    // MARK: Radios

    /// When there is doubt if the radios stay blind; `distantFuture` when they are not, or there is already.
    var doubtDeadline: MonotonicTime {
        guard !isInDoubt, let since = clock.blindSince else { return .distantFuture }
        return since + settings.blindHold
    }

    private mutating func doubt(_ emit: (borrowing Event) -> Void) {
        isInDoubt = true
        doubtedAt = now
        for index in table.beacons.indices where table.beacons[index].state == .present {
            table.beacons[index].state = .unknown
            // Nobody keeps a state of strangers.
            if table.beacons[index].standing != .stranger { emit(event(.unknown, Int32(index))) }
        }
        regions.doubt(at: now, emit: emit)
    }

    /// - Parameter isOtherSpeed: whether evidence gathers at another speed.
    mutating func radiosChanged(_ isOtherSpeed: Bool) {
        if isInDoubt, clock.blindSince == nil {
            beginSilencesAnew()
        } else if isOtherSpeed {
            scheduleChanged()
        }
    }

    /// A radio works again after a doubt. Much may have happened, and it may have been deaf before it was known to be
    /// blind: each beacon gets its whole exit time to be heard.
    private mutating func beginSilencesAnew() {
        isInDoubt = false
        let listening = clock.reading(at: now)
        let evidence = clock.evidence(at: listening)
        for index in table.beacons.indices where table.beacons[index].isInside {
            table.beacons[index].heardAt = listening
            table.beacons[index].evidenceAt = evidence
        }
        resetTimers()
    }

    mutating func confirm(_ place: Int32, _ emit: (borrowing Event) -> Void) {
        table.beacons[Int(place)].state = .present
        if table.beacons[Int(place)].standing != .stranger { emit(event(.known, place)) }
        regions.confirm(table.beacons[Int(place)].identity, at: now, emit: emit)
    }

    // MARK: Tables

    /// Evidence gathers at another speed.
    private mutating func scheduleChanged() {
        for index in table.beacons.indices { table.beacons[index].silences.scheduleChanged() }
        resetTimers()
    }

    /// Brings every timer in line with new settings or radios.
    mutating func resetTimers() {
        for index in table.beacons.indices {
            switch table.beacons[index].state {
            case .free, .away: break
            case .candidate, .present, .unknown:
                determineExitTime(of: Int32(index))
                timers.set(Int32(index), deadline(of: Int32(index)))
            }
        }
    }

    /// Brings tables and timers in line with new settings.
    mutating func fitTables(_ emit: (borrowing Event) -> Void) {
        while table.count > settings.maximumBeacons, let place = recency.oldest(.away) { forget(place) }
        while trackedCount > settings.maximumBeacons, evictStranger(emit) {}
        table.reserve(settings.maximumBeacons)
        timers.reserve(settings.maximumBeacons)
        recency.reserve(settings.maximumBeacons)
        resetTimers()
    }
}
