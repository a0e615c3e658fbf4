// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkRuntime
import Testing

@Suite struct BackoffTests {
    /// The waits of an outage that began at zero, one behind the other.
    private func waits(_ count: Int, seed: UInt64) -> [(start: MonotonicTime, delay: TimeInterval)] {
        var backoff = Backoff(seed: seed)
        var now = MonotonicTime.zero
        return (0..<count).map { _ in
            let start = now
            let delay = backoff.delay(at: now)
            now = now + delay
            return (start, delay)
        }
    }

    @Test(arguments: [UInt64(1), 2, 3, 77])
    func eachWaitLiesBetweenTheBaseAndThreeTimesTheLast(seed: UInt64) {
        var previous = TimeInterval.seconds(1)
        var longest = TimeInterval.zero
        for (_, delay) in waits(500, seed: seed) {
            #expect(delay >= .seconds(1))
            #expect(delay <= .seconds(60))
            #expect(delay.nanoseconds <= previous.nanoseconds * 3)
            previous = delay
            longest = max(longest, delay)
        }
        #expect(longest > .seconds(30))
    }

    @Test func whatWasAwayForAMomentIsMetAgainWithinMoments() {
        for seed in UInt64(0)..<200 {
            for (start, delay) in waits(20, seed: seed) {
                #expect(delay.nanoseconds <= max(4_000_000_000, (start - .zero).nanoseconds / 2))
            }
        }
    }

    @Test func itStartsAgainOnlyAfterAStableTime() {
        // With seeds enough that the bounds of the first wait cannot be met by chance.
        func delayAfterWorking(for time: TimeInterval, seed: UInt64) -> TimeInterval {
            var backoff = Backoff(seed: seed)
            var now = MonotonicTime.zero
            for _ in 0..<20 { now = now + backoff.delay(at: now) }
            backoff.works(at: now)
            backoff.works(at: now + .seconds(1))
            return backoff.delay(at: now + time)
        }
        #expect((UInt64(0)..<50).allSatisfy { delayAfterWorking(for: .seconds(2), seed: $0) <= .seconds(3) })
        let unstable = (UInt64(0)..<50).map { delayAfterWorking(for: .milliseconds(1999), seed: $0) }
        #expect(unstable.contains { $0 > .seconds(3) })
        #expect(unstable.allSatisfy { $0 <= .seconds(4) }, "what worked a moment ago is met again within moments")
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
