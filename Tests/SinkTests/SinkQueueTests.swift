// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit
import Testing

@testable import SinkRuntime

@Suite struct SinkQueueTests {
    private func queue(capacity: Int, conflates: Bool = true) -> SinkQueue {
        SinkQueue(capacity: capacity, batchSize: 128, stateCapacity: 8, holdsTransitions: true, conflates: conflates)
    }

    private func take(_ queue: inout SinkQueue, _ capacity: Int = 128) -> [Delivery] {
        var batch = EventBatch(capacity: capacity)
        queue.takeStates(into: &batch)
        queue.takeEvents(into: &batch)
        return batch.deliveries
    }

    private func words(_ deliveries: [Delivery]) -> [String] {
        deliveries.map { "\($0.event.kind.word) \(Samples.minor($0.event)) at \($0.event.time.nanoseconds)" }
    }

    @Test func aNewerSightingTakesThePlaceOfTheOlderOne() {
        var queue = queue(capacity: 8)
        queue.offerSighting(Samples.event(.sighting, 1, time: 1))
        queue.offerSighting(Samples.event(.sighting, 2, time: 2))
        queue.offerSighting(Samples.event(.sighting, 1, time: 3))
        #expect(queue.counters.sightings.conflated == 1)
        #expect(words(take(&queue)) == ["sighting 1 at 3", "sighting 2 at 2"])
        // What was taken is no longer there to be replaced.
        queue.offerSighting(Samples.event(.sighting, 1, time: 4))
        #expect(words(take(&queue)) == ["sighting 1 at 4"])
        #expect(queue.counters.sightings.conflated == 1)
        #expect(queue.counters.total.isBalanced)
    }

    @Test func withoutConflationEverySightingWaits() {
        var queue = queue(capacity: 8, conflates: false)
        for time in 1...3 { queue.offerSighting(Samples.event(.sighting, 1, time: Int64(time))) }
        #expect(words(take(&queue)) == ["sighting 1 at 1", "sighting 1 at 2", "sighting 1 at 3"])
    }

    @Test func aFullQueueDropsTheOldestSightingFirst() {
        var queue = queue(capacity: 3)
        queue.offerTransition(Samples.event(.enter, 1, time: 1))
        queue.offerSighting(Samples.event(.sighting, 2, time: 2))
        queue.offerSighting(Samples.event(.sighting, 3, time: 3))
        queue.offerSighting(Samples.event(.sighting, 4, time: 4))
        #expect(queue.counters.sightings.dropped == 1)
        queue.offerTransition(Samples.event(.exit, 1, time: 5))
        #expect(queue.counters.sightings.dropped == 2)
        #expect(words(take(&queue)) == ["enter 1 at 1", "sighting 4 at 4", "exit 1 at 5"])
        #expect(queue.counters.transitions.dropped == 0)
        #expect(queue.counters.total.isBalanced)
    }

    @Test func transitionsDropEachOtherOnlyWhenNoSightingIsLeft() {
        var queue = queue(capacity: 2)
        queue.offerSighting(Samples.event(.sighting, 9, time: 1))
        for minor in 1...3 { queue.offerTransition(Samples.event(.enter, minor, time: Int64(minor))) }
        #expect(queue.counters.sightings.dropped == 1)
        #expect(queue.counters.transitions.dropped == 1)
        queue.offerSighting(Samples.event(.sighting, 9, time: 4))
        #expect(queue.counters.sightings.dropped == 2)
        #expect(words(take(&queue)) == ["enter 2 at 2", "enter 3 at 3"])
        #expect(queue.counters.total.isBalanced)
    }

    @Test func urgencyFollowsWhatWaits() {
        var queue = queue(capacity: 1000)
        #expect(queue.urgency == .nothing)
        queue.offerSighting(Samples.event(.sighting, 1))
        #expect(queue.urgency == .sightings)
        for minor in 2...128 { queue.offerSighting(Samples.event(.sighting, minor)) }
        #expect(queue.urgency == .now)
        _ = take(&queue)
        #expect(queue.urgency == .nothing)
        queue.offerTransition(Samples.event(.enter, 1))
        #expect(queue.urgency == .now)
    }

    @Test func aStateIsNotToldBeforeItsTransitionIsCommitted() {
        var queue = queue(capacity: 8)
        func take(_ committed: UInt64) -> [Int64] {
            var batch = EventBatch(capacity: 8)
            queue.takeStates(into: &batch, committed: committed)
            return batch.deliveries.map { $0.event.time.nanoseconds }
        }
        let times = (1...4).map { Samples.event(.enter, Int($0), time: Int64($0)).time.nanoseconds }
        queue.offerState(Samples.event(.enter, 1, time: 1), at: 7)
        queue.offerState(Samples.event(.enter, 2, time: 2), at: 8)
        #expect(take(6).isEmpty)
        #expect(take(7) == [times[0]])
        #expect(queue.hasStates)
        // What no transition led to waits for its turn only.
        queue.offerState(Samples.event(.enter, 3, time: 3))
        #expect(take(8) == [times[1], times[2]])
        // A newer transition of the same beacon has its own position.
        queue.offerState(Samples.event(.exit, 1, time: 1), at: 9)
        queue.offerState(Samples.event(.enter, 1, time: 4), at: 10)
        #expect(take(9).isEmpty)
        #expect(take(10) == [times[3]])
        // It is committed for good.
        queue.connected()
        #expect(take(10).count == 3)
    }

    @Test func statesKeepTheNewestAndAllWaitAgainForANewConnection() {
        var queue = queue(capacity: 8)
        queue.offerState(Samples.event(.enter, 1, time: 1))
        queue.offerState(Samples.region(.regionEnter, "office", time: 2))
        queue.offerState(Samples.event(.exit, 1, time: 3))
        #expect(queue.counters.states.conflated == 1)
        let first = take(&queue)
        #expect(first.map(\.event.kind) == [.exit, .regionEnter])
        #expect(first.allSatisfy { $0.role == .states })
        for delivery in first { queue.settle(delivery.role, as: .written) }
        queue.offerState(Samples.event(.enter, 1, time: 4))
        queue.connected()
        #expect(take(&queue).map(\.event.kind) == [.enter, .regionEnter])
        // Two changes, one replacement, one change, and one that only the connection made wait again.
        #expect(queue.counters.states.offered == 5)
        #expect(queue.counters.total.isBalanced)
    }

    @Test func aStateThatDidNotArriveWaitsAgainUnlessANewerOneDoes() {
        var queue = queue(capacity: 8)
        queue.offerState(Samples.event(.enter, 1, time: 1))
        queue.offerState(Samples.event(.enter, 2, time: 1))
        let taken = take(&queue)
        queue.offerState(Samples.event(.exit, 1, time: 2))
        for delivery in taken { queue.putBack(state: delivery.event) }
        #expect(words(take(&queue)) == ["exit 1 at 2", "enter 2 at 1"])
        #expect(queue.counters.states.conflated == 1)
        #expect(queue.counters.total.isBalanced)
    }

    @Test func aRegionHasOneStateWhateverLedThere() {
        func state(_ kind: Event.Kind, inside: UInt32, at time: Int64) -> Event {
            var event = Samples.region(kind, "office", time: time)
            event.insideCount = inside
            return event
        }
        func counts(_ queue: inout SinkQueue) -> [UInt32] { take(&queue).map(\.event.insideCount) }
        var queue = queue(capacity: 8)
        queue.offerState(state(.regionEnter, inside: 1, at: 1))
        queue.offerState(state(.regionKnown, inside: 2, at: 2))
        queue.offerState(state(.regionKnown, inside: 3, at: 3))
        #expect(counts(&queue) == [3])
        let lost = state(.regionKnown, inside: 4, at: 4)
        queue.offerState(lost)
        _ = take(&queue)
        queue.offerState(state(.regionUnknown, inside: 5, at: 5))
        queue.putBack(state: lost)
        #expect(counts(&queue) == [5])
        queue.connected()
        #expect(counts(&queue) == [5])
        #expect(queue.counters.states.isBalanced && queue.counters.transitions.offered == 0)
    }

    @Test func aFullStateTableForgetsBeaconsThatAreGone() {
        var queue = queue(capacity: 8)
        for minor in 1...8 { queue.offerState(Samples.event(minor == 3 ? .exit : .enter, minor)) }
        queue.offerState(Samples.event(.enter, 9))
        #expect(queue.counters.states.dropped == 1, "an exit that was not told yet must not be forgotten")
        for delivery in take(&queue) { queue.settle(delivery.role, as: .written) }
        queue.offerState(Samples.event(.enter, 10))
        #expect(words(take(&queue)) == ["enter 10 at 0"])
        queue.connected()
        #expect(Set(take(&queue).map { Samples.minor($0.event) }) == [1, 2, 4, 5, 6, 7, 8, 10])
        #expect(queue.counters.states.isBalanced)
    }

    @Test func theStoreIsAccountedForBySequenceNumbers() {
        var queue = queue(capacity: 8)
        queue.startReading(behind: 10)
        queue.storeHolds(through: 15)
        #expect(queue.counters.transitions.queued == 5)
        queue.takeStored(11)
        queue.takeStored(12)
        queue.settle(.transitions, as: .written)
        queue.putBackStored()
        #expect(queue.counters.transitions.queued == 4)
        queue.takeStored(12)
        // 13 is damaged, and 16 was committed meanwhile.
        queue.takeStored(14)
        queue.takeStored(15)
        queue.takeStored(16)
        let counts = queue.counters.transitions
        #expect(counts.offered == 6)
        #expect(counts.dropped == 1)
        #expect(counts.queued == 0)
        #expect(counts.inFlight == 4)
        #expect(counts.isBalanced)
    }

    @Test func theAccountBalancesWhateverHappens() {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SeededRandom(seed: seed)
        var queue = queue(capacity: 16)
        queue.startReading(behind: 0)
        var sequence: UInt64 = 0
        var flying: [Delivery] = []
        for _ in 0..<20_000 {
            let minor = Int.random(in: 1...24, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2: queue.offerSighting(Samples.event(.sighting, minor))
            case 3: queue.offerTransition(Samples.event(.enter, minor))
            case 4, 5: queue.offerState(Samples.event(Bool.random(using: &random) ? .enter : .exit, minor))
            case 6: queue.connected()
            case 7:
                sequence += UInt64.random(in: 1...3, using: &random)
                queue.takeStored(sequence)
                flying.append(Delivery(role: .transitions, event: Samples.event(.enter, minor), sequence: sequence))
            case 8: flying += take(&queue, 4)
            default:
                for delivery in flying {
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: queue.settle(delivery.role, as: .written)
                    case 1: queue.settle(delivery.role, as: .rejected)
                    default:
                        if delivery.role == .states {
                            queue.putBack(state: delivery.event)
                        } else if delivery.sequence > 0 {
                            queue.putBackStored()
                        } else {
                            queue.settle(delivery.role, as: .dropped)
                        }
                    }
                }
                flying.removeAll()
            }
            let counters = queue.counters
            guard counters.states.isBalanced, counters.transitions.isBalanced, counters.sightings.isBalanced else {
                Issue.record("unbalanced: \(counters)")
                return
            }
            #expect(UInt64(flying.count) == counters.total.inFlight)
            #expect(queue.count <= 16)
        }
        let batch = EventBatch(capacity: 1)
        for delivery in flying { queue.settle(delivery.role, as: .dropped) }
        _ = queue.end(.finished, inFlight: batch)
        #expect(queue.counters.total.isBalanced)
        #expect(queue.counters.sightings.queued == 0 && queue.counters.states.queued == 0)
    }
}
