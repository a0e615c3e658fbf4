// SPDX-License-Identifier: Apache-2.0

/// A moment on a clock that never jumps, in nanoseconds since an origin that only the clock's owner knows.
///
/// Every decision in beacond is made on this clock; wall-clock time is only stamped on the way out. Live it is
/// `CLOCK_MONOTONIC`, in a replay the clock of the capture. Arithmetic saturates, because a capture may hold any
/// 64-bit time stamp.
public struct MonotonicTime: Hashable, Comparable, Sendable {
    /// Nanoseconds since the origin of the clock.
    public var nanoseconds: Int64

    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    public static let zero = MonotonicTime(nanoseconds: 0)

    /// Later than any moment that happens.
    public static let distantFuture = MonotonicTime(nanoseconds: .max)

    public static func < (left: Self, right: Self) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    public static func + (time: Self, interval: TimeInterval) -> Self {
        Self(nanoseconds: saturatingSum(time.nanoseconds, interval.nanoseconds))
    }

    public static func - (later: Self, earlier: Self) -> TimeInterval {
        TimeInterval(nanoseconds: saturatingDifference(later.nanoseconds, earlier.nanoseconds))
    }
}

/// A length of time in nanoseconds; negative when it points into the past.
public struct TimeInterval: Hashable, Comparable, Sendable {
    public var nanoseconds: Int64

    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    public static let zero = TimeInterval(nanoseconds: 0)

    public static func seconds(_ seconds: Int64) -> Self {
        Self(nanoseconds: saturatingProduct(seconds, 1_000_000_000))
    }

    public static func milliseconds(_ milliseconds: Int64) -> Self {
        Self(nanoseconds: saturatingProduct(milliseconds, 1_000_000))
    }

    /// Whole milliseconds, towards zero.
    public var milliseconds: Int64 { nanoseconds / 1_000_000 }

    public var seconds: Double { Double(nanoseconds) / 1e9 }

    public static func < (left: Self, right: Self) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

/// A moment in the world's time: milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
public struct WallTime: Hashable, Comparable, Sendable {
    public var milliseconds: Int64

    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    public static func < (left: Self, right: Self) -> Bool {
        left.milliseconds < right.milliseconds
    }
}

private func saturatingSum(_ a: Int64, _ b: Int64) -> Int64 {
    let (sum, overflow) = a.addingReportingOverflow(b)
    return overflow ? (a < 0 ? .min : .max) : sum
}

private func saturatingDifference(_ a: Int64, _ b: Int64) -> Int64 {
    let (difference, overflow) = a.subtractingReportingOverflow(b)
    return overflow ? (a < 0 ? .min : .max) : difference
}

private func saturatingProduct(_ a: Int64, _ b: Int64) -> Int64 {
    let (product, overflow) = a.multipliedReportingOverflow(by: b)
    return overflow ? ((a < 0) == (b < 0) ? .max : .min) : product
}
