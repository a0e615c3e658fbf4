// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Testing

@testable import Store

@Suite struct CommitPacerTests {
    @Test func fewTransitionsWaitATenthOfASecond() {
        var pacer = CommitPacer(now: .zero)
        for second in stride(from: Int64(0), to: 100, by: 2) {
            let now = MonotonicTime.zero + .seconds(second)
            #expect(pacer.wait(at: now) == .milliseconds(100))
            pacer.committed(at: now + pacer.wait(at: now))
        }
        #expect(pacer.wait(at: .zero + .seconds(1000)) == .milliseconds(100))
    }

    @Test("no load makes more than T + 10 commits in T seconds", arguments: [0, 1, 10, 50, 200, 900, 1100])
    func commitsAreBounded(pause: Int64) {
        var pacer = CommitPacer(now: .zero)
        var now = MonotonicTime.zero
        var commits: [MonotonicTime] = []
        while now < .zero + .seconds(3600) {
            now = now + .milliseconds(pause)
            let wait = pacer.wait(at: now)
            #expect(wait >= .milliseconds(100) && wait <= .seconds(1))
            now = now + wait
            pacer.committed(at: now)
            commits.append(now)
        }
        // From any commit on.
        for first in stride(from: 0, to: commits.count, by: 97) {
            for last in stride(from: first, to: commits.count, by: 101) {
                let seconds = (commits[last] - commits[first]).seconds
                #expect(Double(last - first) <= seconds + 10)
            }
        }
        #expect(commits.count > 1700)
    }

    @Test func timesThatOverflowDoNotTrap() {
        var pacer = CommitPacer(now: MonotonicTime(nanoseconds: .min))
        #expect(pacer.wait(at: .distantFuture) == .milliseconds(100))
        pacer.committed(at: .distantFuture)
        pacer.committed(at: .zero)
        #expect(pacer.wait(at: MonotonicTime(nanoseconds: .min)) <= .seconds(1))
    }
}
