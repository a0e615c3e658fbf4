// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Testing

@testable import Agent

/// Stamps of the system clock.
@Suite struct TimelineTests {
    @Test func oneMomentHasOneStampHoweverOftenItIsAsked() {
        let timeline = Timeline(origin: .system)
        func stamp(_ nanoseconds: Int64) -> WallTime {
            timeline.wallTime(of: MonotonicTime(nanoseconds: nanoseconds))
        }
        // The first moment of a millisecond, where the least difference between two readings shows.
        var before: Int64 = 0
        var after: Int64 = 1_000_000
        while after - before > 1 {
            let middle = (before + after) / 2
            if stamp(middle) == stamp(0) { before = middle } else { after = middle }
        }
        #expect(Set((0..<10_000).map { _ in stamp(after) }).count == 1)
    }
}
