// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Finds the place of a beacon in a table by its identity.
///
/// A hash table with open addressing that keeps places and no identities, which the table has anyway: a slot takes four
/// octets, where a `Dictionary` takes 36, and scattered entries make each page of it dirty. Strangers choose their
/// identities, so the hash depends on numbers of this process that nobody outside knows.
struct IdentityIndex: Sendable {
    /// Places; negative in an empty slot. A power of two of them, at most four in five in use.
    private var slots: [Int32] = []
    private(set) var count = 0
    private let seeds: (UInt64, UInt64, UInt64, UInt64) = (seed(0), seed(1), seed(2), seed(3))

    /// - Parameter table: the identities of the places that are in the index already.
    mutating func reserve(_ capacity: Int, identities table: (Int32) -> BeaconIdentity) {
        var size = max(slots.count, 8)
        while size * 4 / 5 < capacity { size *= 2 }
        guard size > slots.count else { return }
        let old = slots
        slots = Array(repeating: -1, count: size)
        for place in old where place >= 0 {
            slots[emptySlot(for: table(place))] = place
        }
    }

    func place(of identity: BeaconIdentity, in table: (Int32) -> BeaconIdentity) -> Int32? {
        guard !slots.isEmpty else { return nil }
        var slot = home(of: identity)
        while slots[slot] >= 0 {
            if table(slots[slot]) == identity { return slots[slot] }
            slot = next(slot)
        }
        return nil
    }

    /// - Precondition: the identity is not in the index.
    mutating func insert(_ place: Int32, of identity: BeaconIdentity, in table: (Int32) -> BeaconIdentity) {
        reserve(count + 1, identities: table)
        slots[emptySlot(for: identity)] = place
        count += 1
    }

    /// Takes a place out, and moves those behind it forward that its slot had pushed on.
    mutating func remove(_ place: Int32, of identity: BeaconIdentity, in table: (Int32) -> BeaconIdentity) {
        guard !slots.isEmpty else { return }
        var hole = home(of: identity)
        while slots[hole] != place {
            guard slots[hole] >= 0 else { return }
            hole = next(hole)
        }
        count -= 1
        var slot = next(hole)
        while slots[slot] >= 0 {
            // It may move as far as to where the search for it begins.
            let way = (slot &- home(of: table(slots[slot]))) & (slots.count - 1)
            if way >= (slot &- hole) & (slots.count - 1) {
                slots[hole] = slots[slot]
                hole = slot
            }
            slot = next(slot)
        }
        slots[hole] = -1
    }

    private func emptySlot(for identity: BeaconIdentity) -> Int {
        var slot = home(of: identity)
        while slots[slot] >= 0 { slot = next(slot) }
        return slot
    }

    private func next(_ slot: Int) -> Int { (slot &+ 1) & (slots.count - 1) }

    /// Where the search for an identity begins. Both halves of a product of 64 by 64 bits, folded, mix as well as a
    /// hash table needs it and take a few cycles.
    private func home(of identity: BeaconIdentity) -> Int {
        let words = identity.words
        let kind = UInt64(identity.format.rawValue) << 8 | UInt64(identity.count)
        let first = Self.fold(words.high ^ seeds.0, words.middle ^ seeds.1)
        let hash = Self.fold(first ^ words.low ^ seeds.2, kind ^ seeds.3)
        return Int(truncatingIfNeeded: hash) & (slots.count - 1)
    }

    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    /// From the seed of all hashes of the process.
    private static func seed(_ number: Int) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(number)
        return UInt64(bitPattern: Int64(hasher.finalize())) | 1
    }
}
