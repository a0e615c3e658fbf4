// SPDX-License-Identifier: Apache-2.0

/// Keeps the account of transitions that wait in the store, where a position stands for each.
struct StoredAccount {
    /// Offered through this position.
    private var held: UInt64
    /// Taken, at least once, through this position.
    private var taken: UInt64
    /// Taken, and put back since.
    private var putBackCount: UInt64 = 0

    init(behind cursor: UInt64) {
        held = cursor
        taken = cursor
    }

    mutating func holds(through position: UInt64, _ counts: inout DeliveryCounts) {
        guard position > held else { return }
        counts.offered += position - held
        counts.queued += position - held
        held = position
    }

    mutating func take(_ position: UInt64, _ counts: inout DeliveryCounts) {
        holds(through: position, &counts)
        if position > taken {
            // Positions that are not there, between this one and the one before, are lost: the store says so by a gap.
            let lost = position - taken - 1 + putBackCount
            counts.queued -= lost + 1
            counts.dropped += lost
            taken = position
            putBackCount = 0
        } else if putBackCount > 0 {
            counts.queued -= 1
            putBackCount -= 1
        } else {
            counts.offered += 1
        }
        counts.inFlight += 1
    }

    mutating func putBack(_ counts: inout DeliveryCounts) {
        counts.inFlight -= 1
        counts.queued += 1
        putBackCount += 1
    }
}
