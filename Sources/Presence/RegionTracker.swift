// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// How many beacons are inside each region.
///
/// The regions of a beacon are found by looking up its identity cut to each length that a pattern has, so that their
/// number does not matter; and only when it enters or leaves.
struct RegionTracker: Sendable {
    private let names: [Name]
    private var inside: [UInt32]
    /// Regions whose beacons nobody can vouch for.
    private var unknown: [Bool]
    /// When the number of beacons inside changed since it was told; nil when it did not.
    private var changedAt: [MonotonicTime?]
    /// Regions in which it did.
    private(set) var changedCount = 0
    private let ranges: [Bool]
    /// Regions by the given octets of a pattern, kept as an identity of that many octets.
    private var regions: [BeaconIdentity: [Int]] = [:]
    private var lengths: [(format: FormatID, prefix: UInt8)] = []

    init(_ rules: [RegionRule]) {
        names = rules.map(\.name)
        ranges = rules.map(\.isRanged)
        inside = Array(repeating: 0, count: rules.count)
        unknown = Array(repeating: false, count: rules.count)
        changedAt = Array(repeating: nil, count: rules.count)
        for (region, rule) in rules.enumerated() {
            for key in Self.disjoint(rule.patterns) {
                regions[key, default: []].append(region)
                if !lengths.contains(where: { $0.format == key.format && $0.prefix == key.count }) {
                    lengths.append((key.format, key.count))
                }
            }
        }
    }

    /// The patterns without those that another one contains: a beacon matches at most one of them, and so is counted
    /// once in the region.
    private static func disjoint(_ patterns: [IdentityPattern]) -> [BeaconIdentity] {
        var keys: [BeaconIdentity] = []
        var known: Set<BeaconIdentity> = []
        for pattern in patterns.sorted(by: { $0.prefix < $1.prefix }) {
            let isContained = (0...pattern.prefix).contains { known.contains(key(pattern.identity, prefix: $0)) }
            if isContained { continue }
            keys.append(key(pattern.identity, prefix: pattern.prefix))
            known.insert(key(pattern.identity, prefix: pattern.prefix))
        }
        return keys
    }

    private static func key(_ identity: BeaconIdentity, prefix: UInt8) -> BeaconIdentity {
        let cut = IdentityPattern(identity: identity, prefix: prefix).identity
        return BeaconIdentity(format: cut.format, count: prefix, words: cut.words)
    }

    /// Whether the beacon belongs to any region.
    func contains(_ identity: BeaconIdentity) -> Bool {
        for (format, prefix) in lengths where format == identity.format && prefix <= identity.count {
            if regions[Self.key(identity, prefix: prefix)] != nil { return true }
        }
        return false
    }

    /// The regions of a beacon that range.
    func forEachRanged(_ identity: BeaconIdentity, _ body: (Int) -> Void) {
        for (format, prefix) in lengths where format == identity.format && prefix <= identity.count {
            for region in regions[Self.key(identity, prefix: prefix)] ?? [] where ranges[region] { body(region) }
        }
    }

    func name(_ region: Int) -> Name { names[region] }
    func insideCount(_ region: Int) -> UInt32 { inside[region] }

    /// Whether nobody can say if the region is occupied.
    func isUnknown(_ name: Name) -> Bool { names.firstIndex(of: name).map { unknown[$0] } ?? false }

    mutating func enter(_ identity: BeaconIdentity, at time: MonotonicTime, emit: (borrowing Event) -> Void) {
        for (format, prefix) in lengths where format == identity.format && prefix <= identity.count {
            for region in regions[Self.key(identity, prefix: prefix)] ?? [] {
                inside[region] += 1
                if inside[region] == 1 {
                    tell(.regionEnter, region, at: time, emit: emit)
                } else if unknown[region] {
                    unknown[region] = false
                    tell(.regionKnown, region, at: time, emit: emit)
                } else {
                    note(region, at: time)
                }
            }
        }
    }

    mutating func leave(
        _ identity: BeaconIdentity, at time: MonotonicTime, reason: Event.ExitReason, emit: (borrowing Event) -> Void
    ) {
        for (format, prefix) in lengths where format == identity.format && prefix <= identity.count {
            for region in regions[Self.key(identity, prefix: prefix)] ?? [] {
                inside[region] -= 1
                if inside[region] == 0 {
                    unknown[region] = false
                    tell(.regionExit, region, at: time, reason: reason, emit: emit)
                } else {
                    note(region, at: time)
                }
            }
        }
    }

    /// A beacon is inside of which nothing is told now. A region is unknown when all of its beacons are.
    mutating func restore(_ identity: BeaconIdentity, isUnknown: Bool) {
        for (format, prefix) in lengths where format == identity.format && prefix <= identity.count {
            for region in regions[Self.key(identity, prefix: prefix)] ?? [] {
                unknown[region] = isUnknown && (inside[region] == 0 || unknown[region])
                inside[region] += 1
            }
        }
    }

    /// No radio has worked for too long.
    mutating func doubt(at time: MonotonicTime, emit: (borrowing Event) -> Void) {
        for region in names.indices where inside[region] > 0 && !unknown[region] {
            unknown[region] = true
            tell(.regionUnknown, region, at: time, emit: emit)
        }
    }

    /// A beacon was heard that was inside before, so that its regions are occupied for certain.
    mutating func confirm(_ identity: BeaconIdentity, at time: MonotonicTime, emit: (borrowing Event) -> Void) {
        for (format, prefix) in lengths where format == identity.format && prefix <= identity.count {
            for region in regions[Self.key(identity, prefix: prefix)] ?? [] where unknown[region] {
                unknown[region] = false
                tell(.regionKnown, region, at: time, emit: emit)
            }
        }
    }

    /// Tells what is different from the regions of an older configuration, by name.
    mutating func emitChanges(from old: RegionTracker, at time: MonotonicTime, emit: (borrowing Event) -> Void) {
        let isInside = Set(occupied.map { names[$0] })
        let wasInside = Dictionary(old.occupied.map { (old.names[$0], $0) }) { first, _ in first }
        for region in old.occupied where !isInside.contains(old.names[region]) {
            var event = old.event(.regionExit, region, at: time, reason: .removed)
            event.insideCount = 0
            emit(event)
        }
        for region in occupied {
            if let before = wasInside[names[region]] {
                unknown[region] = old.unknown[before]
                if old.changedAt[before] != nil || old.inside[before] != inside[region] { note(region, at: time) }
            } else {
                tell(.regionEnter, region, at: time, emit: emit)
                if unknown[region] { tell(.regionUnknown, region, at: time, emit: emit) }
            }
        }
    }

    private var occupied: [Int] { names.indices.filter { inside[$0] > 0 } }

    func forEach(_ body: (Name, UInt32) -> Void) {
        for region in names.indices { body(names[region], inside[region]) }
    }

    /// The state of each region in which the number of beacons changed since it was told, as a transition that leads
    /// there; it counts as told then.
    mutating func takeChanged(_ body: (borrowing Event) -> Void) {
        guard changedCount > 0 else { return }
        for region in names.indices {
            guard let time = changedAt[region] else { continue }
            tell(unknown[region] ? .regionUnknown : .regionKnown, region, at: time, emit: body)
        }
    }

    /// The number of beacons inside is another one, and no transition says so.
    private mutating func note(_ region: Int, at time: MonotonicTime) {
        if changedAt[region] == nil { changedCount += 1 }
        changedAt[region] = time
    }

    private mutating func tell(
        _ kind: Event.Kind, _ region: Int, at time: MonotonicTime, reason: Event.ExitReason = .timeout,
        emit: (borrowing Event) -> Void
    ) {
        if changedAt[region] != nil { changedCount -= 1 }
        changedAt[region] = nil
        emit(event(kind, region, at: time, reason: reason))
    }

    private func event(
        _ kind: Event.Kind, _ region: Int, at time: MonotonicTime, reason: Event.ExitReason = .timeout
    ) -> Event {
        var event = Event(kind: kind, time: time)
        event.name = names[region]
        // Somebody wrote the region down.
        event.isConfigured = true
        event.insideCount = inside[region]
        event.exitReason = reason
        return event
    }
}
