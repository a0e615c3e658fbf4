// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// One event on its way to one sink.
public struct Delivery: Sendable {
    /// As what it is delivered: exactly one of the roles.
    public var role: DeliveryRoles
    public var event: Event
    /// Its place in the outbox's stream, from 1; 0 for what did not come from an outbox.
    public var sequence: UInt64
    /// It was committed before this connection was made, or it is sent again.
    public var isReplayed: Bool
    /// The kernel's id of the boot in which it happened, for what came from an outbox that knows.
    public var boot: Name

    public init(
        role: DeliveryRoles, event: Event, sequence: UInt64 = 0, isReplayed: Bool = false, boot: Name = .none
    ) {
        self.role = role
        self.event = event
        self.sequence = sequence
        self.isReplayed = isReplayed
        self.boot = boot
    }
}

/// Deliveries that are written together, in order. The runtime keeps one for the life of a sink.
public struct EventBatch: ~Copyable {
    public private(set) var deliveries: [Delivery] = []
    /// The stream that sequence numbers belong to, as 32 hexadecimal digits; empty without an outbox.
    public var stream = ""
    /// Longest batch.
    public let capacity: Int

    public init(capacity: Int) {
        self.capacity = capacity
        deliveries.reserveCapacity(capacity)
    }

    public var count: Int { deliveries.count }
    public var isEmpty: Bool { deliveries.isEmpty }
    public var isFull: Bool { deliveries.count >= capacity }

    public mutating func append(_ delivery: Delivery) { deliveries.append(delivery) }
    public mutating func removeAll() { deliveries.removeAll(keepingCapacity: true) }
    /// Drops the first `count` deliveries, which the destination has.
    public mutating func removeFirst(_ count: Int) { deliveries.removeFirst(min(count, deliveries.count)) }
}
