// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import Store

/// Presence of configured beacons that survives a restart, kept by the store.
///
/// What a transition changed is kept with the transition, in the same commit; what was learned meanwhile is kept every ten
/// minutes and at the end, because cards wear out.
struct PresenceMemory {
    private static let refreshInterval = TimeInterval.seconds(600)

    private let store: Store
    private let formats: FormatCatalog
    /// Beacons of transitions that were not kept yet.
    private var changed: Set<BeaconIdentity> = []
    /// What the store keeps.
    private var kept: Set<[UInt8]> = []
    private var nextRefresh = MonotonicTime.zero

    init(_ store: Store, _ formats: FormatCatalog) {
        self.store = store
        self.formats = formats
    }

    /// Takes back what an earlier run left. What is not configured any more is dropped.
    mutating func restore(_ road: inout Road, at time: MonotonicTime, wallTime: WallTime) {
        for (key, record) in store.remembered() {
            if let identity = identity(key), road.restore(identity, record, at: time, wallTime: wallTime) {
                kept.insert(key)
            } else {
                store.remember(key: key, value: nil)
            }
        }
        nextRefresh = time + Self.refreshInterval
    }

    /// Has something to keep when ``keep(_:at:wallTime:)`` is called next.
    mutating func note(_ event: borrowing Event) {
        guard event.isConfigured, let identity = event.identity else { return }
        switch event.kind {
        case .enter, .exit, .unknown, .known: changed.insert(identity)
        default: break
        }
    }

    /// Keeps what transitions changed, and everything when it is time for that.
    mutating func keep(_ road: borrowing Road, at time: MonotonicTime, wallTime: (MonotonicTime) -> WallTime) {
        if time >= nextRefresh { return keepAll(road, at: time, wallTime: wallTime) }
        guard !changed.isEmpty else { return }
        for identity in changed { keep(road.snapshot(of: identity, wallTime: wallTime), for: key(identity)) }
        changed.removeAll(keepingCapacity: true)
    }

    /// Keeps all that is worth it.
    mutating func keepAll(_ road: borrowing Road, at time: MonotonicTime, wallTime: (MonotonicTime) -> WallTime) {
        nextRefresh = time + Self.refreshInterval
        changed.removeAll(keepingCapacity: true)
        var stale = kept
        road.snapshot(wallTime: wallTime) { identity, record in
            let key = key(identity)
            stale.remove(key)
            keep(record, for: key)
        }
        for key in stale { keep(nil, for: key) }
    }

    private mutating func keep(_ record: [UInt8]?, for key: [UInt8]) {
        if record != nil { kept.insert(key) } else { kept.remove(key) }
        store.remember(key: key, value: record)
    }

    /// The name of the format, because its number is another one in the next version; then the octets.
    private func key(_ identity: BeaconIdentity) -> [UInt8] {
        var key = Array((formats[identity.format]?.name ?? "").utf8) + [0]
        for index in 0..<Int(identity.count) { key.append(identity[index]) }
        return key
    }

    private func identity(_ key: [UInt8]) -> BeaconIdentity? {
        guard let end = key.firstIndex(of: 0),
            let format = formats.id(named: String(decoding: key[..<end], as: UTF8.self)),
            key.count - end - 1 <= BeaconIdentity.capacity
        else { return nil }
        return BeaconIdentity(format: format, octets: Array(key[(end + 1)...]).span)
    }
}
