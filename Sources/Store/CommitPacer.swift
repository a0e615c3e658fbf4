// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// How long a group of transitions waits for its commit: 100 ms while there are few, growing to 1 s under load.
///
/// Each commit costs one second of a credit that grows with time, and the wait grows as the credit shrinks. A wait of
/// `1 s − 0.09 · credit` regains at least what it lacks, so the credit never falls below zero: in any span of T
/// seconds there are at most T + 10 commits. An SD card wears by commits, not by octets.
struct CommitPacer {
    /// The longest credit: this many commits may come faster than one a second.
    static let fullCredit = TimeInterval.seconds(10)
    static let longestWait = TimeInterval.seconds(1)

    private var credit = Self.fullCredit
    private(set) var lastCommit: MonotonicTime

    init(now: MonotonicTime) {
        lastCommit = now
    }

    /// How long a group that begins at `now` waits for more.
    func wait(at now: MonotonicTime) -> TimeInterval {
        TimeInterval(nanoseconds: Self.longestWait.nanoseconds - credit(at: now).nanoseconds / 100 * 9)
    }

    mutating func committed(at now: MonotonicTime) {
        credit = max(.zero, TimeInterval(nanoseconds: credit(at: now).nanoseconds - Self.longestWait.nanoseconds))
        lastCommit = now
    }

    private func credit(at now: MonotonicTime) -> TimeInterval {
        let regained = min(max(.zero, now - lastCommit), Self.fullCredit)
        return min(Self.fullCredit, TimeInterval(nanoseconds: credit.nanoseconds + regained.nanoseconds))
    }
}
