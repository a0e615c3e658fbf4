// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Which deliveries of a batch are sent, and which of them the broker still owes an answer.
///
/// Deliveries are sent in order; one at QoS 0 counts as accepted once it is handed over, one at QoS 1 when its PUBACK
/// has come.
struct DeliveryWindow {
    /// A delivery that was not taken, and why.
    struct Refusal {
        var index: Int
        var reason: String
        /// The same delivery may be taken later.
        var isTemporary: Bool
    }

    private var owed: [(message: Int32, index: Int, isCompanion: Bool)] = []
    /// The first delivery that was not sent.
    private(set) var next = 0
    /// The first delivery that was refused.
    private(set) var refusal: Refusal?
    /// Why the broker refused a companion, the first time.
    private(set) var companionRefusal: String?
    /// When the broker last answered, or began to owe an answer.
    private(set) var lastProgress = MonotonicTime.zero

    let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        owed.reserveCapacity(capacity)
    }

    var isFull: Bool { owed.count >= capacity }
    /// At least half of the window is free.
    var isRoomy: Bool { owed.count <= capacity / 2 }
    var isSettled: Bool { owed.isEmpty }

    /// Deliveries from the front of the batch that the destination has.
    var accepted: Int {
        min(owed.first?.index ?? next, refusal?.index ?? .max)
    }

    /// Starts a batch. Answers that are still owed to an earlier one no longer matter.
    mutating func begin() {
        owed.removeAll(keepingCapacity: true)
        next = 0
        refusal = nil
        companionRefusal = nil
    }

    /// The next delivery went out at QoS 0.
    mutating func handOver() { next += 1 }

    /// The next delivery went out at QoS 1 under a message identifier.
    mutating func send(_ message: Int32, at now: MonotonicTime) {
        if owed.isEmpty { lastProgress = now }
        owed.append((message, next, isCompanion: false))
        next += 1
    }

    /// A message that goes with the next delivery went out at QoS 1 before it: the delivery waits for its answer, too, and
    /// whether the broker takes it makes no difference to the delivery.
    mutating func sendCompanion(_ message: Int32, at now: MonotonicTime) {
        if owed.isEmpty { lastProgress = now }
        owed.append((message, next, isCompanion: true))
    }

    /// The next delivery cannot be sent.
    mutating func refuseNext(_ reason: String) {
        refuse(next, reason, isTemporary: false)
        next += 1
    }

    /// The broker answered. An identifier that is not owed belongs to a message at QoS 0, or to none of this batch.
    mutating func answer(
        _ message: Int32, refusal reason: String?, isTemporary: Bool = false, at now: MonotonicTime
    ) {
        guard let place = owed.firstIndex(where: { $0.message == message }) else { return }
        let (_, index, isCompanion) = owed.remove(at: place)
        lastProgress = now
        guard let reason else { return }
        if isCompanion {
            companionRefusal = companionRefusal ?? reason
        } else {
            refuse(index, reason, isTemporary: isTemporary)
        }
    }

    private mutating func refuse(_ index: Int, _ reason: String, isTemporary: Bool) {
        if let refusal, refusal.index < index { return }
        refusal = Refusal(index: index, reason: reason, isTemporary: isTemporary)
    }
}
