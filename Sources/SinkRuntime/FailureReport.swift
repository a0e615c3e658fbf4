// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit

/// Tells the log how a sink fares, in few lines: a failure once until it changes, losses and refusals once a minute.
struct FailureReport {
    /// Quiet time between two lines about losses or refusals: each may happen for every event.
    private static let quietTime = TimeInterval.seconds(60)

    private let log: @Sendable (LogLevel, String) -> Void
    private var lastFailure = ""
    /// Whether the log knows of the failure that goes on.
    private var isKnown = false
    private var losses = Throttle(quietTime: FailureReport.quietTime)
    private var refusals = Throttle(quietTime: FailureReport.quietTime)
    private var dropped: UInt64 = 0

    init(log: @escaping @Sendable (LogLevel, String) -> Void) {
        self.log = log
    }

    mutating func failed(_ error: SinkError, nextTry delay: TimeInterval) {
        let isNews = error.description != lastFailure
        lastFailure = error.description
        isKnown = isKnown || isNews
        log(
            isNews ? .warning : .debug,
            "\(error); trying again in \((delay.seconds * 10).rounded() / 10) s")
    }

    mutating func recovered() {
        log(isKnown ? .notice : .debug, "works again")
        isKnown = false
    }

    mutating func rejected(_ error: SinkError, at now: MonotonicTime) {
        guard let count = refusals.add(1, at: now) else { return }
        log(.warning, "\(count) refused, the last one because of \(error)")
    }

    /// Looks whether events were dropped since it last looked.
    mutating func losses(_ counters: SinkCounters, at now: MonotonicTime) {
        let total = counters.total.dropped
        defer { dropped = total }
        guard let count = losses.add(total - dropped, at: now) else { return }
        log(
            .warning,
            "\(count) events dropped, because the sink is slower than they come "
                + "(in all \(counters.transitions.dropped) transitions, \(counters.sightings.dropped) sightings)")
    }
}

/// Gathers counts and lets them out at most once in a quiet time.
private struct Throttle {
    let quietTime: TimeInterval
    private var count: UInt64 = 0
    private var quietUntil: MonotonicTime?

    init(quietTime: TimeInterval) { self.quietTime = quietTime }

    mutating func add(_ more: UInt64, at now: MonotonicTime) -> UInt64? {
        count += more
        guard count > 0, now >= quietUntil ?? now else { return nil }
        defer { count = 0 }
        quietUntil = now + quietTime
        return count
    }
}
