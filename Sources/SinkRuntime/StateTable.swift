// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// The newest transition of each configured beacon and each region, and which of them the destination has to be told.
///
/// All of them wait again after each `open`: the destination may have forgotten what it was told before.
struct StateTable {
    enum Update {
        /// It waits now; nothing of this beacon or region waited before.
        case queued
        /// It took the place of an older one that still waited.
        case replaced
        /// There is no room for another beacon.
        case refused
    }

    private struct Key: Hashable {
        let identity: BeaconIdentity?
        let region: Name

        /// nil for an event that leads to no state.
        init?(_ event: borrowing Event) {
            switch event.kind {
            case .enter, .exit, .unknown, .known:
                guard let identity = event.identity, event.isConfigured else { return nil }
                self.identity = identity
                region = .none
            case .regionEnter, .regionExit, .regionUnknown, .regionKnown:
                identity = nil
                region = event.name
            case .sighting, .proximity, .ranging, .clone, .adapter, .gap, .health, .flood: return nil
            }
        }
    }

    private struct Slot {
        var key: Key
        var event: Event
        /// Where its transition is in the outbox; 0 for a state that none led to.
        var position: UInt64
        var isWaiting: Bool
    }

    private let capacity: Int
    private var slots: [Slot] = []
    private var places: [Key: Int] = [:]
    private var waiting: Ring<Int>
    /// Where the search for a slot to reuse goes on.
    private var hand = 0

    init(capacity: Int) {
        self.capacity = capacity
        waiting = Ring(capacity: capacity)
        slots.reserveCapacity(capacity)
        places.reserveCapacity(capacity)
    }

    var waitingCount: Int { waiting.count }

    /// Whether the event leads to a state at all.
    static func holds(_ event: borrowing Event) -> Bool { Key(event) != nil }

    /// Takes the newest transition of a beacon or region.
    ///
    /// - Parameter position: where it is in the outbox; 0 when it is in none.
    /// - Precondition: ``holds(_:)``.
    mutating func update(_ event: borrowing Event, at position: UInt64 = 0) -> Update {
        guard let key = Key(event) else { return .refused }
        if let place = places[key] {
            slots[place].event = copy event
            slots[place].position = position
            if slots[place].isWaiting { return .replaced }
            wait(place)
            return .queued
        }
        guard let place = roomForOneMore() else { return .refused }
        let slot = Slot(key: key, event: copy event, position: position, isWaiting: false)
        if place == slots.count {
            slots.append(slot)
        } else {
            places[slots[place].key] = nil
            slots[place] = slot
        }
        places[key] = place
        wait(place)
        return .queued
    }

    /// The longest waiting one, which waits no more; nil when there is none, or its transition is not committed yet: the
    /// next run of a program that ends now would know nothing of it, and go back to the state before.
    ///
    /// - Parameter committed: the last position that is.
    mutating func removeFirst(committed: UInt64 = .max) -> Event? {
        guard !waiting.isEmpty, slots[waiting[waiting.first]].position <= committed else { return nil }
        let place = waiting.removeFirst()
        slots[place].isWaiting = false
        return slots[place].event
    }

    /// A state that was taken out did not reach the destination: the newest one of its beacon or region waits again.
    mutating func putBack(_ event: borrowing Event) -> Update {
        guard let key = Key(event), let place = places[key] else { return .refused }
        if slots[place].isWaiting { return .replaced }
        wait(place)
        return .queued
    }

    /// Everything waits again. Returns how many did not wait before.
    mutating func requeueAll() -> Int {
        let added = slots.count - waiting.count
        waiting.removeAll()
        for place in slots.indices { wait(place) }
        return added
    }

    /// Nothing waits any more. Returns how many did.
    mutating func stopWaiting() -> Int {
        var count = 0
        while removeFirst() != nil { count += 1 }
        return count
    }

    private mutating func wait(_ place: Int) {
        slots[place].isWaiting = true
        waiting.append(place)
    }

    /// A new slot, else that of a beacon that is gone and of which the destination knows.
    private mutating func roomForOneMore() -> Int? {
        if slots.count < capacity { return slots.count }
        for _ in slots.indices {
            hand = (hand + 1) % capacity
            if slots[hand].event.kind == .exit, !slots[hand].isWaiting { return hand }
        }
        return nil
    }
}
