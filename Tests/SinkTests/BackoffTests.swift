// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkRuntime
import Testing

@Suite struct BackoffTests {
    @Test(arguments: [UInt64(1), 2, 3, 77])
    func eachWaitLiesBetweenTheBaseAndThreeTimesTheLast(seed: UInt64) {
        var backoff = Backoff(seed: seed)
        var previous = TimeInterval.seconds(1)
        var longest = TimeInterval.zero
        for _ in 0..<500 {
            let delay = backoff.delay(at: .zero)
            #expect(delay >= .seconds(1))
            #expect(delay <= .seconds(60))
            #expect(delay.nanoseconds <= previous.nanoseconds * 3)
            previous = delay
            longest = max(longest, delay)
        }
        #expect(longest > .seconds(30))
    }

    @Test func itStartsAgainOnlyAfterAStableTime() {
        // With seeds enough that the bounds of the first wait cannot be met by chance.
        for seed in UInt64(0)..<50 {
            var backoff = Backoff(seed: seed)
            for _ in 0..<20 { _ = backoff.delay(at: .zero) }
            backoff.works(at: MonotonicTime(nanoseconds: 0))
            backoff.works(at: MonotonicTime(nanoseconds: 40_000_000_000))
            #expect(backoff.delay(at: MonotonicTime(nanoseconds: 60_000_000_000)) <= .seconds(3))
        }
        let delays = (UInt64(0)..<50).map { seed in
            var backoff = Backoff(seed: seed)
            for _ in 0..<20 { _ = backoff.delay(at: .zero) }
            backoff.works(at: .zero)
            return backoff.delay(at: MonotonicTime(nanoseconds: 59_000_000_000))
        }
        #expect(delays.contains { $0 > .seconds(3) })
    }

    @Test func gatewaysDoNotWaitTheSame() {
        let delays = (UInt64(0)..<100).map { seed in
            var backoff = Backoff(seed: seed)
            return backoff.delay(at: .zero)
        }
        #expect(Set(delays).count > 90)
        #expect(delays.contains { $0 < .milliseconds(1500) } && delays.contains { $0 > .milliseconds(2500) })
    }

    @Test func theSameSeedGivesTheSameWaits() {
        var left = Backoff(seed: 5)
        var right = Backoff(seed: 5)
        for _ in 0..<10 { #expect(left.delay(at: .zero) == right.delay(at: .zero)) }
    }
}
