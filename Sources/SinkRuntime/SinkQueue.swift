// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit

/// What waits for one sink, and the account of it. A plain value: the worker guards it with a mutex.
///
/// States have their table. Live transitions and sightings have one room of fixed capacity together and leave it in the
/// order in which they came; a sighting keeps its place when a newer one of its beacon takes over, so that a beacon that
/// is heard often does not starve. Stored transitions stay in the store and are only counted here.
struct SinkQueue {
    /// How soon the sink should get what waits.
    enum Urgency: Comparable {
        case nothing, sightings, now
    }

    /// How a delivery in flight ends.
    enum Outcome {
        case written, rejected, dropped
    }

    private struct Waiting {
        /// Its turn among transitions and sightings.
        var turn: UInt64
        var event: Event
    }

    private let capacity: Int
    private let batchSize: Int
    private let conflates: Bool
    private var states: StateTable
    private var transitions: Ring<Waiting>
    private var sightings: Ring<Waiting>
    /// What a newer event takes the place of: the sightings of a beacon, or its ranging in a region.
    private struct Subject: Hashable {
        let identity: BeaconIdentity
        let region: Name

        init?(_ event: borrowing Event) {
            guard let identity = event.identity else { return nil }
            self.identity = identity
            region = event.region
        }
    }

    /// Where the waiting sighting of a beacon is.
    private var places: [Subject: Int] = [:]
    private var turn: UInt64 = 0
    /// nil until the worker knows where it reads on, and without a store.
    private var stored: StoredAccount?
    private var hasEnded = false

    private(set) var counters = SinkCounters()

    /// - Parameters:
    ///   - capacity: transitions and sightings that may wait.
    ///   - batchSize: as many waiting sightings as this are urgent.
    ///   - stateCapacity: beacons and regions whose state is known.
    ///   - holdsTransitions: false when they come from the store.
    ///   - conflates: whether a newer sighting replaces the one of the same beacon that waits.
    init(capacity: Int, batchSize: Int, stateCapacity: Int, holdsTransitions: Bool, conflates: Bool) {
        self.capacity = max(1, capacity)
        self.batchSize = batchSize
        self.conflates = conflates
        states = StateTable(capacity: stateCapacity)
        transitions = Ring(capacity: holdsTransitions ? capacity : 0)
        sightings = Ring(capacity: capacity)
        places.reserveCapacity(conflates ? self.capacity : 0)
    }

    /// Transitions and sightings that wait.
    var count: Int { transitions.count + sightings.count }

    var hasStates: Bool { states.waitingCount > 0 }

    var urgency: Urgency {
        if states.waitingCount > 0 || !transitions.isEmpty || sightings.count >= batchSize { return .now }
        return sightings.isEmpty ? .nothing : .sightings
    }

    // MARK: In

    mutating func offerSighting(_ event: borrowing Event) {
        counters.sightings.offered += 1
        guard !hasEnded else { return counters.sightings.dropped += 1 }
        if conflates, let subject = Subject(event), let place = places[subject] {
            sightings[place].event = copy event
            counters.sightings.conflated += 1
            return
        }
        if count >= capacity {
            guard !sightings.isEmpty else { return counters.sightings.dropped += 1 }
            dropOldestSighting()
        }
        if conflates, let subject = Subject(event) { places[subject] = sightings.end }
        sightings.append(Waiting(turn: nextTurn(), event: copy event))
        counters.sightings.queued += 1
    }

    mutating func offerTransition(_ event: borrowing Event) {
        counters.transitions.offered += 1
        guard !hasEnded else { return counters.transitions.dropped += 1 }
        if count >= capacity {
            if sightings.isEmpty { dropOldestTransition() } else { dropOldestSighting() }
        }
        transitions.append(Waiting(turn: nextTurn(), event: copy event))
        counters.transitions.queued += 1
    }

    /// - Precondition: the event leads to a state.
    /// - Parameter position: where its transition is in the outbox; 0 when it is in none.
    mutating func offerState(_ event: borrowing Event, at position: UInt64 = 0) {
        counters.states.offered += 1
        guard !hasEnded else { return counters.states.dropped += 1 }
        switch states.update(event, at: position) {
        case .queued: counters.states.queued += 1
        case .replaced: counters.states.conflated += 1
        case .refused: counters.states.dropped += 1
        }
    }

    // MARK: Out

    /// Moves waiting states into the batch until it is full, up to the first whose transition is not committed.
    mutating func takeStates(into batch: inout EventBatch, committed: UInt64 = .max) {
        while !batch.isFull, let event = states.removeFirst(committed: committed) {
            batch.append(Delivery(role: .states, event: event))
            counters.states.queued -= 1
            counters.states.inFlight += 1
        }
    }

    /// Moves live transitions and sightings into the batch until it is full, in the order in which they came.
    mutating func takeEvents(into batch: inout EventBatch) {
        while !batch.isFull, count > 0 {
            let isTransition =
                sightings.isEmpty
                || !transitions.isEmpty && transitions[transitions.first].turn < sightings[sightings.first].turn
            if isTransition {
                batch.append(Delivery(role: .transitions, event: transitions.removeFirst().event))
                counters.transitions.queued -= 1
                counters.transitions.inFlight += 1
            } else {
                batch.append(Delivery(role: .sightings, event: removeOldestSighting()))
                counters.sightings.queued -= 1
                counters.sightings.inFlight += 1
            }
        }
    }

    /// Something in flight has come to an end.
    mutating func settle(_ role: DeliveryRoles, as outcome: Outcome) {
        switch role {
        case .states: counters.states.settle(outcome)
        case .transitions: counters.transitions.settle(outcome)
        default: counters.sightings.settle(outcome)
        }
    }

    /// A state in flight did not reach the destination and waits again, unless a newer one does already.
    mutating func putBack(state event: borrowing Event) {
        counters.states.inFlight -= 1
        switch states.putBack(event) {
        case .queued: counters.states.queued += 1
        case .replaced: counters.states.conflated += 1
        case .refused: counters.states.dropped += 1
        }
    }

    /// A sighting in flight did not reach the destination and waits again, unless a newer one does already.
    mutating func putBack(sighting event: borrowing Event) {
        counters.sightings.inFlight -= 1
        if conflates, let subject = Subject(event) {
            guard places[subject] == nil else { return counters.sightings.conflated += 1 }
            guard count < capacity else { return counters.sightings.dropped += 1 }
            places[subject] = sightings.end
        } else if count >= capacity {
            return counters.sightings.dropped += 1
        }
        sightings.append(Waiting(turn: nextTurn(), event: copy event))
        counters.sightings.queued += 1
    }

    /// A new connection: the destination has to be told all states.
    mutating func connected() {
        let added = UInt64(states.requeueAll())
        counters.states.offered += added
        counters.states.queued += added
        counters.connections += 1
        counters.state = .open
    }

    // MARK: The store's transitions

    /// The store's reader starts behind `cursor`.
    mutating func startReading(behind cursor: UInt64) { stored = StoredAccount(behind: cursor) }

    /// The store holds transitions through this sequence number.
    mutating func storeHolds(through sequence: UInt64) { stored?.holds(through: sequence, &counters.transitions) }

    /// A transition was read from the store into the batch.
    mutating func takeStored(_ sequence: UInt64) { stored?.take(sequence, &counters.transitions) }

    /// A stored transition in flight did not reach the destination; it will be read again.
    mutating func putBackStored() { stored?.putBack(&counters.transitions) }

    // MARK: State and end

    mutating func enter(_ state: SinkState) { counters.state = state }
    mutating func failed(_ reason: String) { counters.lastError = reason }

    /// Nobody takes anything any more: what waits in memory and what was in flight is dropped. What is in the store stays
    /// there. Returns how many events were dropped.
    mutating func end(_ state: SinkState, inFlight batch: borrowing EventBatch) -> UInt64 {
        let before = counters.total.dropped
        for index in 0..<batch.count {
            let delivery = batch.deliveries[index]
            if delivery.sequence > 0 { putBackStored() } else { settle(delivery.role, as: .dropped) }
        }
        while !transitions.isEmpty { dropOldestTransition() }
        while !sightings.isEmpty { dropOldestSighting() }
        let waiting = UInt64(states.stopWaiting())
        counters.states.queued -= waiting
        counters.states.dropped += waiting
        counters.state = state
        hasEnded = true
        return counters.total.dropped - before
    }

    // MARK: Parts

    private mutating func nextTurn() -> UInt64 {
        turn += 1
        return turn
    }

    private mutating func removeOldestSighting() -> Event {
        let event = sightings.removeFirst().event
        if conflates, let subject = Subject(event) { places[subject] = nil }
        return event
    }

    private mutating func dropOldestSighting() {
        _ = removeOldestSighting()
        counters.sightings.queued -= 1
        counters.sightings.dropped += 1
    }

    private mutating func dropOldestTransition() {
        _ = transitions.removeFirst()
        counters.transitions.queued -= 1
        counters.transitions.dropped += 1
    }
}

extension DeliveryCounts {
    fileprivate mutating func settle(_ outcome: SinkQueue.Outcome) {
        inFlight -= 1
        switch outcome {
        case .written: written += 1
        case .rejected: rejected += 1
        case .dropped: dropped += 1
        }
    }
}
