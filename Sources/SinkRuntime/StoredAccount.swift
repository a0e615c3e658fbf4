// SPDX-License-Identifier: Apache-2.0

/// Keeps the account of transitions that wait in the store, where a sequence number stands for each.
struct StoredAccount {
    /// Offered through this number.
    private var held: UInt64
    /// Taken, at least once, through this number.
    private var taken: UInt64
    /// Taken, and put back since.
    private var putBackCount: UInt64 = 0

    init(behind cursor: UInt64) {
        held = cursor
        taken = cursor
    }

    mutating func holds(through sequence: UInt64, _ counts: inout DeliveryCounts) {
        guard sequence > held else { return }
        counts.offered += sequence - held
        counts.queued += sequence - held
        held = sequence
    }

    mutating func take(_ sequence: UInt64, _ counts: inout DeliveryCounts) {
        holds(through: sequence, &counts)
        if sequence > taken {
            // Numbers that are not there, between this one and the one before, are lost: the store says so by a gap.
            let lost = sequence - taken - 1 + putBackCount
            counts.queued -= lost + 1
            counts.dropped += lost
            taken = sequence
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
