// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import Presence

/// Presence as one would explain it to a person: it keeps everything that happened, and looks at all of it each time.
final class NaivePresence {
    final class Beacon {
        let identity: BeaconIdentity
        var newest: Sighting
        /// From when its silence is counted.
        var silentFrom: Int64
        var isPresent = false
        var isUnknown = false
        var reportedAt: Int64 = 0
        /// Strengths and missing strengths since the last report; all measured ones of its stay.
        var unreported: [Int8?] = []
        var strengths: [Int8] = []
        var claimedPower: Int8?
        var proximity = Proximity.unknown
        var arrival = 0

        init(_ sighting: Sighting, silentFrom: Int64) {
            identity = sighting.identity
            newest = sighting
            self.silentFrom = silentFrom
        }
    }

    private let world: PresenceWorld
    private(set) var beacons: [Beacon] = []
    private var now = Int64.min
    private var arrivals = 0
    /// What each radio did, from when on.
    private var radios: [(time: Int64, radio: Name, listens: Bool, isBlind: Bool)] = []
    private var isInDoubt = false
    private var unknownRegions: Set<Name> = []
    /// Beacons and regions that became unknown.
    private(set) var doubtCount = 0
    private var events: [Event] = []

    init(_ world: PresenceWorld) { self.world = world }

    func take(_ input: PresenceInput) -> [Event] {
        events = []
        advance(to: input.time)
        switch input {
        case .tick: break
        case .radio(let name, let activity, _):
            switch activity {
            case .scanning: radios.append((now, name, true, false))
            case .paused: radios.append((now, name, false, false))
            case .blind: radios.append((now, name, false, true))
            }
            endDoubt()
        case .sighting(let sighting): observe(sighting)
        }
        return events
    }

    // MARK: Listening

    /// Moments at which listening began or ended, by replaying what every radio did.
    private var flips: [(time: Int64, listens: Bool)] {
        var listens: [Name: Bool] = [:]
        var flips: [(Int64, Bool)] = []
        var before = true
        for change in radios {
            listens[change.radio] = change.listens
            let after = listens.values.contains(true)
            if after != before { flips.append((change.time, after)) }
            before = after
        }
        return flips
    }

    /// When `length` of listening has passed since `start`; nil when it does not, as things are.
    private func moment(after length: TimeInterval, of start: Int64) -> Int64? {
        var left = length.nanoseconds
        var time = start
        var listens = flips.last { $0.time <= start }?.listens ?? true
        for flip in flips where flip.time > start {
            if listens {
                if time + left <= flip.time { return time + left }
                left -= flip.time - time
            }
            time = flip.time
            listens = flip.listens
        }
        return listens ? time + left : nil
    }

    // MARK: Beacons

    private func rule(_ identity: BeaconIdentity) -> BeaconRule? { world.beacons.last { $0.identity == identity } }

    private func enterCount(_ identity: BeaconIdentity) -> Int {
        rule(identity)?.enterCount ?? world.settings.enterCount
    }

    private func exitTime(_ identity: BeaconIdentity) -> TimeInterval {
        rule(identity)?.exitTime ?? world.settings.exitTime ?? .zero
    }

    private func expiry(_ beacon: Beacon) -> Int64? {
        moment(
            after: beacon.isPresent ? exitTime(beacon.identity) : world.settings.enterGap, of: beacon.silentFrom)
    }

    private func firstExpiry() -> Int64? { beacons.compactMap { expiry($0) }.min() }

    /// When something becomes due that no input announces.
    func nextExpiry() -> Int64? {
        let doubt = beacons.contains { $0.isPresent } ? doubtDeadline : nil
        return [firstExpiry(), doubt].compactMap { $0 }.min()
    }

    private func advance(to time: Int64) {
        while let next = firstExpiry(), next <= max(time, now),
            let beacon = beacons.first(where: { expiry($0) == next })
        {
            now = max(now, next)
            remove(beacon, .timeout)
        }
        if let deadline = doubtDeadline, deadline <= max(time, now) {
            now = max(now, deadline)
            doubt()
        }
        now = max(now, time)
    }

    // MARK: Doubt

    private var doubtDeadline: Int64? {
        var isBlind: [Name: Bool] = [:]
        var since: Int64?
        for change in radios {
            isBlind[change.radio] = change.isBlind
            since = isBlind.values.contains(false) ? nil : since ?? change.time
        }
        guard !isInDoubt, let since else { return nil }
        let deadline = MonotonicTime(nanoseconds: since) + world.settings.blindHold
        return deadline == .distantFuture ? nil : deadline.nanoseconds
    }

    private func doubt() {
        isInDoubt = true
        for beacon in beacons where beacon.isPresent && !beacon.isUnknown {
            beacon.isUnknown = true
            if world.isConfigured(beacon.identity) { events.append(event(.unknown, beacon)) }
            doubtCount += 1
        }
        for region in world.regions where inside(region) > 0 && unknownRegions.insert(region.name).inserted {
            events.append(regionEvent(.regionUnknown, region, .timeout))
        }
    }

    private func endDoubt() {
        let isBlind = Dictionary(radios.map { ($0.radio, $0.isBlind) }) { $1 }
        guard isInDoubt, isBlind.values.contains(false) else { return }
        isInDoubt = false
        for beacon in beacons where beacon.isPresent { beacon.silentFrom = now }
    }

    private func remove(_ beacon: Beacon, _ reason: Event.ExitReason) {
        if beacon.isPresent {
            var event = self.event(.exit, beacon)
            event.lastSeen = beacon.newest.time
            event.exitTime = exitTime(beacon.identity)
            event.exitReason = reason
            events.append(event)
        }
        beacons.removeAll { $0 === beacon }
        guard beacon.isPresent else { return }
        for region in regions(of: beacon.identity) where inside(region) == 0 {
            unknownRegions.remove(region.name)
            events.append(regionEvent(.regionExit, region, reason))
        }
    }

    private func observe(_ sighting: Sighting) {
        if !radios.contains(where: { $0.radio == sighting.adapter }) {
            radios.append((now, sighting.adapter, true, false))
            endDoubt()
        }
        let silentFrom = max(sighting.time.nanoseconds, flips.last?.time ?? .min)
        guard let beacon = beacons.first(where: { $0.identity == sighting.identity }) ?? admit(sighting, silentFrom)
        else { return }
        arrivals += 1
        if sighting.time >= beacon.newest.time {
            beacon.newest = sighting
            beacon.silentFrom = silentFrom
            beacon.claimedPower = sighting.measuredPower ?? beacon.claimedPower
        } else if beacon.newest.time - sighting.time > .seconds(1) {
            return
        }
        beacon.arrival = arrivals
        beacon.unreported.append(sighting.rssi)
        if let rssi = sighting.rssi { beacon.strengths.append(rssi) }
        let change = event(.proximity, beacon)
        if change.proximity != beacon.proximity {
            if beacon.isPresent, beacon.proximity != .unknown { events.append(change) }
            beacon.proximity = change.proximity
        }
        if beacon.isPresent {
            if beacon.isUnknown {
                beacon.isUnknown = false
                if world.isConfigured(beacon.identity) { events.append(event(.known, beacon)) }
                for region in regions(of: beacon.identity) where unknownRegions.remove(region.name) != nil {
                    events.append(regionEvent(.regionKnown, region, .timeout))
                }
            }
            if now - beacon.reportedAt >= world.settings.reportInterval.nanoseconds { report(.sighting, beacon) }
        } else if beacon.unreported.count >= enterCount(beacon.identity) {
            report(.enter, beacon)
            beacon.isPresent = true
            for region in regions(of: beacon.identity) {
                if inside(region) == 1 {
                    events.append(regionEvent(.regionEnter, region, .timeout))
                } else if unknownRegions.remove(region.name) != nil {
                    events.append(regionEvent(.regionKnown, region, .timeout))
                }
            }
        }
    }

    private func admit(_ sighting: Sighting, _ silentFrom: Int64) -> Beacon? {
        let identity = sighting.identity
        let silence = enterCount(identity) > 1 ? world.settings.enterGap : exitTime(identity)
        if let end = moment(after: silence, of: silentFrom), end <= now { return nil }
        if beacons.count >= world.settings.maximumBeacons {
            let strangers = beacons.filter { !world.isConfigured($0.identity) }
            let candidates = strangers.filter { !$0.isPresent }
            let oldest = (candidates.isEmpty ? strangers : candidates).min { $0.arrival < $1.arrival }
            if let oldest {
                remove(oldest, .evicted)
            } else if rule(identity) == nil {
                return nil
            }
        }
        let beacon = Beacon(sighting, silentFrom: silentFrom)
        beacons.append(beacon)
        return beacon
    }

    // MARK: Regions

    private func regions(of identity: BeaconIdentity) -> [RegionRule] {
        world.regions.filter { $0.patterns.contains { $0.matches(identity) } }
    }

    private func inside(_ region: RegionRule) -> Int {
        beacons.count { beacon in beacon.isPresent && region.patterns.contains { $0.matches(beacon.identity) } }
    }

    private func regionEvent(_ kind: Event.Kind, _ region: RegionRule, _ reason: Event.ExitReason) -> Event {
        var event = Event(kind: kind, time: .init(nanoseconds: now))
        event.name = region.name
        event.isConfigured = true
        event.insideCount = UInt32(inside(region))
        event.exitReason = reason
        return event
    }

    // MARK: Distance

    private static func proximity(_ metres: Float, before: Proximity) -> Proximity {
        func band(_ metres: Float) -> Proximity { metres <= 0.5 ? .immediate : metres <= 3 ? .near : .far }
        // Nearer only with a quarter to spare, farther too.
        switch (before, band(metres)) {
        case (.far, .near), (.far, .immediate), (.near, .immediate):
            return band(metres * 1.25) == before ? before : band(metres)
        case (.immediate, .near), (.immediate, .far), (.near, .far):
            return band(metres * 0.8) == before ? before : band(metres)
        default: return band(metres)
        }
    }

    // MARK: Reports

    private func report(_ kind: Event.Kind, _ beacon: Beacon) {
        events.append(event(kind, beacon))
        beacon.reportedAt = now
        beacon.unreported = []
    }

    private func event(_ kind: Event.Kind, _ beacon: Beacon) -> Event {
        let rule = rule(beacon.identity)
        var event = Event(kind: kind, time: .init(nanoseconds: now))
        event.identity = beacon.identity
        event.name = rule?.alias ?? .none
        event.isConfigured = world.isConfigured(beacon.identity)
        event.address = beacon.newest.address
        event.adapter = beacon.newest.adapter
        let measured = beacon.unreported.compactMap { $0 }
        let recent = beacon.strengths.suffix(world.settings.averageOver)
        event.signal = Signal(
            last: beacon.newest.rssi,
            filtered: recent.isEmpty ? nil : Float(recent.reduce(0) { $0 + Int($1) }) / Float(recent.count),
            minimum: measured.min(), maximum: measured.max(), count: UInt32(beacon.unreported.count))
        event.measuredPower =
            rule?.measuredPower
            ?? beacon.claimedPower.map { $0 >= -100 && $0 <= -20 ? $0 : world.settings.assumedMeasuredPower }
        if let power = event.measuredPower, let strength = event.signal.filtered {
            let exponent = rule?.pathLossExponent ?? world.settings.pathLossExponent
            event.accuracy = Float(min(pow(10, (Double(power) - Double(strength)) / (10 * exponent)), 1000))
            event.proximity = Self.proximity(event.accuracy, before: beacon.proximity)
        }
        return event
    }
}
