// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// From the clock of decisions to the world's time, for the stamps of events.
final class Timeline {
    /// Where the world's time comes from.
    enum Origin {
        /// The system clock, as it stands when the stamp is made: a clock that is set while we run moves later stamps
        /// and no decision.
        case system
        /// A capture, whose moments are nanoseconds since 1970.
        case capture
    }

    /// What two readings of two clocks may differ by although nobody set one: stamps are in milliseconds, and one moment
    /// must not have two of them.
    private static let tolerance = TimeInterval.milliseconds(1)

    let origin: Origin
    private var lastOffset = TimeInterval.zero

    init(origin: Origin) { self.origin = origin }

    /// From the clock of decisions to the world's time at this moment.
    private var offset: TimeInterval {
        guard origin == .system else { return .zero }
        let offset = Clock.wallOffset
        if abs(offset.nanoseconds - lastOffset.nanoseconds) >= Self.tolerance.nanoseconds { lastOffset = offset }
        return lastOffset
    }

    /// The world's time of a moment on the clock of decisions.
    func wallTime(of time: MonotonicTime) -> WallTime {
        WallTime(milliseconds: (time + offset).nanoseconds / 1_000_000)
    }

    /// Stamps an event that is about to leave.
    func stamp(_ event: inout Event) {
        let offset = offset
        event.wallTime = WallTime(milliseconds: (event.time + offset).nanoseconds / 1_000_000)
        event.lastSeenWallTime = event.lastSeen.map { WallTime(milliseconds: ($0 + offset).nanoseconds / 1_000_000) }
        // Asked for what is kept and sent later; a sighting is worth nothing by then, and this is a system call.
        event.isClockSynchronized = origin == .system && event.isTransition ? Clock.isSynchronized : true
    }
}
