// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// How a window and an interval of scanning change what a silence says. ``HitModel`` follows the phases exactly and
/// takes milliseconds; this is what can be afforded for each beacon.
enum ScanBeat {
    /// The chance that a radio hears an advertisement of any phase: a packet, 0.4 ms long, must lie in a window as a
    /// whole. 0 for a window of nothing, 1 for a radio that listens without pause.
    static func chance(window: TimeInterval, interval: TimeInterval) -> Double {
        guard window > .zero else { return 0 }
        guard window < interval else { return 1 }
        let airTime = 0.4e-3
        return max(window.seconds - airTime, window.seconds / 4) / interval.seconds
    }

    /// How long a beacon that is not lost may stay between the windows because its interval beats with theirs, in
    /// seconds; 0 when it does not.
    ///
    /// After some events the phase is nearly where it was: it creeps by `drift` and spreads by advDelay (0 to 10 ms, a
    /// deviation of 2.9 ms an event), and until one of both has carried it across what is left of the scan interval, it
    /// may meet no window.
    static func hidingTime(advertisingInterval: Double, window: TimeInterval, interval: TimeInterval) -> Double {
        let cycle = interval.seconds
        guard window > .zero, window < interval, advertisingInterval > 0 else { return 0 }
        let step = advertisingInterval
        var longest = 0.0
        for events in 1...longestBeat {
            let count = Double(events)
            let gap = cycle / count - window.seconds
            guard gap > 0 else { break }
            let phase = (count * step / cycle)
            let drift = abs(phase - phase.rounded()) * cycle
            // Faster than that, it does not stay outside of the windows.
            guard drift < window.seconds else { continue }
            let crossing = drift > 0 ? gap / drift + 1 : .infinity
            // Of all that wander between two absorbing ends, e^-6 are left after this many steps.
            let wandering = 6 * 2 * gap * gap / (9.87 * 8.3e-6 * count)
            longest = max(longest, min(crossing, wandering) * count * step)
        }
        return longest
    }

    /// With more events to a beat it is weak, and seen only in intervals that are known better than they are.
    private static let longestBeat = 3
}
