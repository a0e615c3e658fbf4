// SPDX-License-Identifier: Apache-2.0

/// At most one deadline for each place of the table, the earliest first.
///
/// A sighting does not touch it: a deadline may be too early, and who takes it out looks whether it still holds.
/// Among equal deadlines the lower place is first, so that the order of events does not depend on when it was asked.
struct TimerHeap: Sendable {
    private var entries: [(deadline: ListeningTime, place: Int32)] = []
    /// Index into `entries` by place; -1 without a deadline.
    private var positions: [Int32] = []

    init(capacity: Int) { reserve(capacity) }

    mutating func reserve(_ capacity: Int) {
        entries.reserveCapacity(capacity)
        positions.reserveCapacity(capacity)
    }

    var first: (deadline: ListeningTime, place: Int32)? { entries.first }

    mutating func set(_ place: Int32, _ deadline: ListeningTime) {
        while positions.count <= Int(place) { positions.append(-1) }
        if positions[Int(place)] < 0 {
            positions[Int(place)] = Int32(entries.count)
            entries.append((deadline, place))
        } else {
            entries[Int(positions[Int(place)])].deadline = deadline
        }
        settle(Int(positions[Int(place)]))
    }

    mutating func remove(_ place: Int32) {
        guard Int(place) < positions.count, positions[Int(place)] >= 0 else { return }
        let hole = Int(positions[Int(place)])
        positions[Int(place)] = -1
        guard let last = entries.popLast(), hole < entries.count else { return }
        entries[hole] = last
        positions[Int(last.place)] = Int32(hole)
        settle(hole)
    }

    /// Moves the entry at `index` up or down to where it belongs.
    private mutating func settle(_ index: Int) {
        var index = index
        while index > 0, precedes(index, (index - 1) / 2) {
            exchange(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
        while true {
            var least = index
            for child in 2 * index + 1...2 * index + 2 where child < entries.count && precedes(child, least) {
                least = child
            }
            if least == index { return }
            exchange(index, least)
            index = least
        }
    }

    private func precedes(_ left: Int, _ right: Int) -> Bool {
        (entries[left].deadline, entries[left].place) < (entries[right].deadline, entries[right].place)
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        entries.swapAt(left, right)
        positions[Int(entries[left].place)] = Int32(left)
        positions[Int(entries[right].place)] = Int32(right)
    }
}
