// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// How a radio listens over time: a window out of every interval, and pauses when it has a burst schedule.
public struct ScanPattern: Hashable, Sendable {
    /// A schedule that begins with scanning for ``on``, pauses for ``off``, and repeats. Both are longer than zero.
    public struct Burst: Hashable, Sendable {
        public var on: TimeInterval
        public var off: TimeInterval

        public init(on: TimeInterval, off: TimeInterval) {
            self.on = on
            self.off = off
        }

        public var period: TimeInterval { TimeInterval(nanoseconds: on.nanoseconds + off.nanoseconds) }
    }

    /// Longer than zero and no longer than ``interval``.
    public var window: TimeInterval
    /// Each interval listens to the next of the channels 37, 38 and 39 (Core 5.4, Vol 6, Part B, 4.4.3).
    public var interval: TimeInterval
    /// nil to scan without a pause.
    public var burst: Burst?

    public init(window: TimeInterval, interval: TimeInterval, burst: Burst? = nil) {
        self.window = window
        self.interval = interval
        self.burst = burst
    }

    /// The share of time in which the receiver is on, from 0 to 1.
    public var duty: Double {
        let windows = Double(window.nanoseconds) / Double(interval.nanoseconds)
        return burst.map { windows * Double($0.on.nanoseconds) / Double($0.period.nanoseconds) } ?? windows
    }

    /// Whether it scans at a moment, and when that changes; never, without a burst schedule.
    ///
    /// - Parameter start: when the pattern began, with its first burst.
    public func isScanning(at time: MonotonicTime, since start: MonotonicTime) -> (Bool, until: MonotonicTime) {
        guard let burst else { return (true, .distantFuture) }
        let elapsed = max(0, (time - start).nanoseconds)
        let phase = elapsed % burst.period.nanoseconds
        let isOn = phase < burst.on.nanoseconds
        let end = (isOn ? burst.on : burst.period).nanoseconds
        return (isOn, until: start + TimeInterval(nanoseconds: elapsed - phase + end))
    }
}
