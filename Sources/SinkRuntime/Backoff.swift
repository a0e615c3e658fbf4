// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// How long to wait before the next try: decorrelated jitter, so that a thousand gateways whose broker restarts do not
/// come back in the same second.
///
/// Each wait is drawn between `base` and three times the one before it, at most `limit`, and at most half as long as the
/// destination has been away already (4 s at first): what was away for a moment is met again within moments. After the
/// destination has worked for `stableTime` it starts from `base` again.
public struct Backoff: Sendable {
    public let base: TimeInterval
    public let limit: TimeInterval
    public let stableTime: TimeInterval
    private var random: SplitMix64
    private var previous: TimeInterval
    private var workingSince: MonotonicTime?
    private var failingSince: MonotonicTime?

    /// Longest wait while an outage is short: a broker that restarts is met again within 5 s.
    private static let shortLimit = TimeInterval.seconds(4)

    /// - Parameters:
    ///   - base: shortest wait: a broker that restarts is back within seconds.
    ///   - limit: longest wait: after a long outage a gateway should be back within a minute.
    ///   - stableTime: a destination that accepts and fails again at once must not be asked every second; one that worked
    ///     this long was well.
    ///   - seed: the same seed gives the same waits.
    public init(
        base: TimeInterval = .seconds(1), limit: TimeInterval = .seconds(60), stableTime: TimeInterval = .seconds(2),
        seed: UInt64 = .random(in: .min ... .max)
    ) {
        self.base = base
        self.limit = limit
        self.stableTime = stableTime
        random = SplitMix64(state: seed)
        previous = base
    }

    /// The destination works: it was opened, or it took something.
    public mutating func works(at now: MonotonicTime) {
        if workingSince == nil { workingSince = now }
    }

    /// It failed at `now`: how long to wait.
    public mutating func delay(at now: MonotonicTime) -> TimeInterval {
        if let since = workingSince {
            if now - since >= stableTime { previous = base }
            failingSince = nil
        }
        workingSince = nil
        let away = (now - (failingSince ?? now)).nanoseconds / 2
        failingSince = failingSince ?? now
        let longest = min(
            min(limit.nanoseconds, max(Self.shortLimit.nanoseconds, away)),
            previous.nanoseconds.multipliedReportingOverflow(by: 3).partialValue)
        let delay = Int64.random(in: base.nanoseconds...max(base.nanoseconds, longest), using: &random)
        previous = TimeInterval(nanoseconds: delay)
        return previous
    }
}

/// A small generator with a seed (Steele, Lea and Flood, 2014); good enough to spread waits, not for secrets.
private struct SplitMix64: RandomNumberGenerator, Sendable {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
