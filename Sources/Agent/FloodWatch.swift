// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Tells of strangers for whom there is no room, together and at most once a minute: whoever invents identities makes
/// thousands a second.
struct FloodWatch {
    private static let interval = TimeInterval.seconds(60)

    private var told: (refused: UInt64, evicted: UInt64) = (0, 0)
    private var next = MonotonicTime(nanoseconds: .min)

    /// - Parameters:
    ///   - counts: since the beginning.
    ///   - tracked: beacons that are tracked now.
    mutating func look(
        at time: MonotonicTime, _ counts: (refused: UInt64, evicted: UInt64), tracked: Int, eventTime: MonotonicTime
    ) -> Event? {
        let (refused, evicted) = (counts.refused - told.refused, counts.evicted - told.evicted)
        guard refused + evicted > 0, time >= next else { return nil }
        next = time + Self.interval
        told = counts
        var event = Event(kind: .flood, time: eventTime)
        event.flood = (refused, evicted)
        event.insideCount = UInt32(clamping: tracked)
        return event
    }
}
