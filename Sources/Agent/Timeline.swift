// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// From the clock of decisions to the world's time, for the stamps of events.
struct Timeline {
    /// Where the world's time comes from.
    enum Origin {
        /// The system clock, as it stands when the stamp is made: a clock that is set while we run moves later stamps
        /// and no decision.
        case system
        /// A capture, whose moments are nanoseconds since 1970.
        case capture
    }

    var origin: Origin

    /// Stamps an event that is about to leave.
    func stamp(_ event: inout Event) {
        switch origin {
        case .system:
            let now = Clock.now
            let wall = Clock.wall
            func wallTime(_ time: MonotonicTime) -> WallTime {
                WallTime(milliseconds: wall.milliseconds - (now - time).milliseconds)
            }
            event.wallTime = wallTime(event.time)
            event.lastSeenWallTime = event.lastSeen.map(wallTime)
            // Asked for what is kept and sent later; a sighting is worth nothing by then, and this is a system call.
            event.isClockSynchronized = event.isTransition ? Clock.isSynchronized : true
        case .capture:
            event.wallTime = WallTime(milliseconds: event.time.nanoseconds / 1_000_000)
            event.lastSeenWallTime = event.lastSeen.map { WallTime(milliseconds: $0.nanoseconds / 1_000_000) }
        }
    }
}
