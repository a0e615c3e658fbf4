// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What happens next: a binary heap, earliest first.
struct Agenda {
    struct Entry: Equatable {
        /// The order of what happens at the same moment: a packet that ends with a scan window was received, and one
        /// that begins with it belongs to it.
        enum Kind: UInt8 {
            case reception, activityChange, transmission
        }

        var time: MonotonicTime
        var kind: Kind
        /// Which radio, or for a transmission which beacon.
        var index: Int

        static func < (left: Self, right: Self) -> Bool {
            if left.time != right.time { return left.time < right.time }
            if left.kind != right.kind { return left.kind.rawValue < right.kind.rawValue }
            return left.index < right.index
        }
    }

    private var heap: [Entry] = []

    var first: Entry? { heap.first }

    mutating func insert(_ entry: Entry) {
        heap.append(entry)
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child] < heap[parent] else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// - Precondition: it is not empty.
    mutating func removeFirst() {
        let last = heap.removeLast()
        if !heap.isEmpty { replaceFirst(with: last) }
    }

    /// - Precondition: it is not empty.
    mutating func replaceFirst(with entry: Entry) {
        heap[0] = entry
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < heap.count else { return }
            if child + 1 < heap.count, heap[child + 1] < heap[child] { child += 1 }
            guard heap[child] < heap[parent] else { return }
            heap.swapAt(child, parent)
            parent = child
        }
    }
}
