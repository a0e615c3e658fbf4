// SPDX-License-Identifier: Apache-2.0

/// Which beacons were heard the longest ago, apart for those that have left, and of the strangers for those that have
/// entered and those that have not: who must go when the table is full. Circular lists through one array.
struct RecencyLists: Sendable {
    enum List: Int32 {
        case candidates = 0
        case present = 1
        case away = 2
    }

    /// The first ones are the ends of the lists, place `p` is at `p + listCount`.
    private var links: [(previous: Int32, next: Int32)] = [(0, 0), (1, 1), (2, 2)]
    private static let listCount: Int32 = 3

    init(capacity: Int) { reserve(capacity) }

    mutating func reserve(_ capacity: Int) { links.reserveCapacity(capacity + Int(Self.listCount)) }

    /// The place that was heard the longest ago.
    func oldest(_ list: List) -> Int32? {
        let first = links[Int(list.rawValue)].next
        return first == list.rawValue ? nil : first - Self.listCount
    }

    /// Puts a place at the recent end of a list, from wherever it was.
    mutating func touch(_ place: Int32, in list: List) {
        remove(place)
        let node = place + Self.listCount
        let last = links[Int(list.rawValue)].previous
        links[Int(node)] = (last, list.rawValue)
        links[Int(last)].next = node
        links[Int(list.rawValue)].previous = node
    }

    /// Does nothing when the place is in no list.
    mutating func remove(_ place: Int32) {
        let node = place + Self.listCount
        while links.count <= Int(node) { links.append((Int32(links.count), Int32(links.count))) }
        let (previous, next) = links[Int(node)]
        links[Int(previous)].next = next
        links[Int(next)].previous = previous
        links[Int(node)] = (node, node)
    }
}
