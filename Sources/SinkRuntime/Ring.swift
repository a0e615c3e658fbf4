// SPDX-License-Identifier: Apache-2.0

/// A first-in, first-out list of fixed capacity in which an element keeps its position while it waits, so that an index
/// beside it can point at it.
///
/// The memory is taken once. It is touched, and so becomes resident, only as far as the list was ever filled.
struct Ring<Element: Sendable>: Sendable {
    let capacity: Int
    /// Position of the oldest element. Positions only grow.
    private(set) var first = 0
    /// The position that the next element gets.
    private(set) var end = 0
    private var storage: [Element] = []

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        storage.reserveCapacity(self.capacity)
    }

    var count: Int { end - first }
    var isEmpty: Bool { end == first }

    /// - Precondition: the position is between `first` and `end`.
    subscript(position: Int) -> Element {
        get { storage[position % capacity] }
        set { storage[position % capacity] = newValue }
    }

    /// Appends at position ``end``.
    ///
    /// - Precondition: `count` is below `capacity`.
    mutating func append(_ element: Element) {
        precondition(count < capacity, "the owner of a ring makes room first")
        if end < capacity { storage.append(element) } else { storage[end % capacity] = element }
        end += 1
    }

    /// - Precondition: not empty.
    mutating func removeFirst() -> Element {
        precondition(!isEmpty, "the owner of a ring looks first")
        defer { first += 1 }
        return storage[first % capacity]
    }

    mutating func removeAll() { first = end }
}
