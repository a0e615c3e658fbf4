// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What fragments of extended advertising data are joined by: the advertiser and its advertising set.
struct FragmentKey: Equatable {
    var address: DeviceAddress
    var advertisingSID: UInt8?
}

/// Beginnings of extended advertisements whose end has not come yet, in a fixed number of buffers.
struct FragmentStore: ~Copyable {
    enum Outcome { case joined, nothingPending, tooLong }

    private struct Slot {
        var key: FragmentKey?
        var time = MonotonicTime.zero
        var octets: [UInt8] = []
    }

    /// A controller joins chains one after the other; 8 leave room for several sets and for some that never end.
    private static let capacity = 8
    /// Longest advertising data (Core 5.4, Vol 6, Part B, 2.3.4.9).
    private static let maximumLength = 1650
    /// The packets of a chain are sent within some 10 ms of each other; what is older lost its end.
    private static let patience = TimeInterval.seconds(1)

    private var slots: [Slot]
    private(set) var pending = 0

    init() {
        slots = (0..<Self.capacity).map { _ in
            var slot = Slot()
            slot.octets.reserveCapacity(Self.maximumLength)
            return slot
        }
    }

    var isEmpty: Bool { pending == 0 }

    /// Adds a fragment, the first one or a further one; how many unfinished advertisements were given up for it.
    mutating func append(_ data: Span<UInt8>, to key: FragmentKey, at time: MonotonicTime) -> Int {
        var lost = 0
        let index: Int
        if let known = slots.firstIndex(where: { $0.key == key }) {
            index = known
            if isStale(index, at: time) {
                lost += 1
                slots[index].octets.removeAll(keepingCapacity: true)
            }
        } else {
            index = oldest()
            if slots[index].key == nil { pending += 1 } else { lost += 1 }
            slots[index].key = key
            slots[index].octets.removeAll(keepingCapacity: true)
        }
        slots[index].time = time
        if slots[index].octets.count + data.count > Self.maximumLength {
            release(index)
            return lost + 1
        }
        append(data, index)
        return lost
    }

    /// Adds the last fragment and hands out the whole data.
    mutating func finish(
        _ key: FragmentKey, with data: Span<UInt8>, at time: MonotonicTime, _ body: (Span<UInt8>) -> Void
    ) -> Outcome {
        guard let index = slots.firstIndex(where: { $0.key == key }), !isStale(index, at: time) else {
            return .nothingPending
        }
        defer { release(index) }
        guard slots[index].octets.count + data.count <= Self.maximumLength else { return .tooLong }
        append(data, index)
        // Swapped out and back, because a span cannot be taken of an element in place.
        var octets: [UInt8] = []
        swap(&octets, &slots[index].octets)
        body(octets.span)
        swap(&octets, &slots[index].octets)
        return .joined
    }

    mutating func remove(_ key: FragmentKey) {
        if let index = slots.firstIndex(where: { $0.key == key }) { release(index) }
    }

    mutating func removeAll() {
        for index in slots.indices where slots[index].key != nil { release(index) }
    }

    private mutating func append(_ data: Span<UInt8>, _ index: Int) {
        for position in data.indices { slots[index].octets.append(data[position]) }
    }

    private func isStale(_ index: Int, at time: MonotonicTime) -> Bool {
        time - slots[index].time > Self.patience
    }

    private mutating func release(_ index: Int) {
        slots[index].key = nil
        slots[index].octets.removeAll(keepingCapacity: true)
        pending -= 1
    }

    /// A free slot, else the one that waits longest.
    private func oldest() -> Int {
        var best = 0
        for index in slots.indices {
            if slots[index].key == nil { return index }
            if slots[index].time < slots[best].time { best = index }
        }
        return best
    }
}
