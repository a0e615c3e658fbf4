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

    private var owed: [(message: Int32, index: Int)] = []
    /// Messages that belong to no batch and whose answers are owed. They take room, and nothing waits for them.
    private var beside: Set<Int32> = []
    private var refusalBeside: String?
    /// The first delivery that was not sent.
    private(set) var next = 0
    /// The first delivery that was refused.
    private(set) var refusal: Refusal?
    /// When the broker last answered, or began to owe an answer.
    private(set) var lastProgress = MonotonicTime.zero

    let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        owed.reserveCapacity(capacity)
    }

    var isFull: Bool { owed.count + beside.count >= capacity }
    /// At least half of the window is free.
    var isRoomy: Bool { owed.count + beside.count <= capacity / 2 }
    /// What belongs to no batch may have half of the window, and only when no batch is on its way.
    var hasRoomBeside: Bool { owed.isEmpty && beside.count < capacity / 2 }
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
    }

    /// Starts a connection, which knows nothing of what was owed on another.
    mutating func reset() {
        begin()
        beside.removeAll(keepingCapacity: true)
    }

    /// A message that belongs to no batch went out at QoS 1.
    mutating func sendBeside(_ message: Int32) { beside.insert(message) }

    /// Why such a message was refused, once.
    mutating func takeRefusalBeside() -> String? {
        defer { refusalBeside = nil }
        return refusalBeside
    }

    /// The next delivery went out at QoS 0.
    mutating func handOver() { next += 1 }

    /// The next delivery went out at QoS 1 under a message identifier.
    mutating func send(_ message: Int32, at now: MonotonicTime) {
        if owed.isEmpty { lastProgress = now }
        owed.append((message, next))
        next += 1
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
        guard let place = owed.firstIndex(where: { $0.message == message }) else {
            if beside.remove(message) != nil, let reason { refusalBeside = reason }
            return
        }
        let index = owed.remove(at: place).index
        lastProgress = now
        if let reason { refuse(index, reason, isTemporary: isTemporary) }
    }

    private mutating func refuse(_ index: Int, _ reason: String, isTemporary: Bool) {
        if let refusal, refusal.index < index { return }
        refusal = Refusal(index: index, reason: reason, isTemporary: isTemporary)
    }
}
