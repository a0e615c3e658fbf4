// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Scanner
import Testing

/// The ladder by itself, on a clock that a test turns.
@Suite struct ScannerLadderTests {
    /// A controller that does as the ladder says: it scans again a tenth of a second after each action.
    private struct World {
        var ladder = RecoveryLadder()
        var now = MonotonicTime.zero
        var actions: [(action: RecoveryLadder.Action, time: MonotonicTime)] = []
        var usesExtendedCommands = false
        var answersProbes = true
        /// Whether bring-up succeeds.
        var comesUp = true

        mutating func perform(_ first: RecoveryLadder.Action) {
            var action = first
            while action != .none {
                actions.append((action, now))
                if action == .probe {
                    if !answersProbes { now = now + .seconds(2) }
                    action =
                        answersProbes
                        ? ladder.probeAnswered(at: now, usesExtendedCommands: usesExtendedCommands)
                        : ladder.failed(.noAnswer, at: now)
                } else if comesUp {
                    now = now + .milliseconds(100)
                    ladder.scanning(at: now)
                    return
                } else {
                    now = now + .seconds(2)
                    action = ladder.failed(.noAnswer, at: now)
                }
            }
        }

        /// Lets time pass to `end`, hearing an advertisement every `interval`.
        mutating func pass(to end: MonotonicTime, hearing interval: TimeInterval? = nil) {
            var nextHeard = interval.map { now + $0 } ?? .distantFuture
            while true {
                let next = min(nextHeard, ladder.nextDeadline)
                guard next <= end else { break }
                now = max(now, next)
                if let interval, nextHeard <= now {
                    ladder.heard(at: now)
                    nextHeard = nextHeard + interval
                } else {
                    perform(ladder.timerFired(at: now))
                }
            }
            now = max(now, end)
        }

        func count(_ action: RecoveryLadder.Action) -> Int { actions.count { $0.action == action } }

        /// The most times that an action was taken within any hour.
        func mostInAnHour(_ action: RecoveryLadder.Action) -> Int {
            let times = actions.filter { $0.action == action }.map(\.time)
            return times.map { first in times.count { $0 >= first && $0 - first < .seconds(3600) } }.max() ?? 0
        }
    }

    private func started() -> World {
        var world = World()
        world.ladder.scanning(at: .zero)
        return world
    }

    @Test(arguments: [Int64(20), 1000, 10_000]) func whatIsHeardIsLeftAlone(milliseconds: Int64) {
        var world = started()
        world.pass(to: .zero + .seconds(600), hearing: .milliseconds(milliseconds))
        #expect(world.actions.isEmpty)
    }

    @Test func aRoomThatIsQuietForADayIsNeverReset() {
        var world = started()
        world.pass(to: .zero + .seconds(86_400))
        #expect(world.count(.reset) == 0)
        #expect(world.mostInAnHour(.restart) <= RecoveryLadder.restartBudget)
        #expect(world.count(.restart) >= 24, "it is still looked after")
    }

    @Test func aRoomWithOneSeldomBeaconIsGivenItsTime() {
        // Every four seconds: silence is judged after 80 s.
        var world = started()
        world.pass(to: .zero + .seconds(400), hearing: .seconds(4))
        let last = world.now
        world.pass(to: last + .seconds(75))
        #expect(world.actions.map(\.action) == Array(repeating: .probe, count: 7), "it is asked every 10 s, no more")
        world.pass(to: last + .seconds(85))
        #expect(world.count(.restart) == 1)
        #expect(world.count(.reset) == 0)
    }

    @Test func aBusyRoomThatFallsSilentIsResetWithinAMinuteAndThenTakenForQuiet() {
        var world = started()
        world.pass(to: .zero + .seconds(120), hearing: .milliseconds(50))
        let last = world.now
        world.pass(to: last + .seconds(60))
        #expect(world.actions.map(\.action).filter { $0 != .probe } == [.restart, .reset])
        world.pass(to: last + .seconds(86_400))
        #expect(world.count(.reset) <= 2, "people went home")
    }

    @Test func aControllerThatHangsInABusyRoomIsFoundBeforeAnybodyLeaves() {
        var world = started()
        // It need not have been busy for long.
        world.pass(to: .zero + .seconds(6), hearing: .milliseconds(50))
        world.answersProbes = false
        world.pass(to: world.now + .seconds(8))
        #expect(world.actions.map(\.action) == [.probe, .reset])
    }

    /// Within 20 s, the usual exit time, also where nothing was ever heard.
    @Test func aControllerThatHangsInAQuietRoomIsFoundBeforeAnybodyLeaves() {
        var world = started()
        world.pass(to: .zero + .seconds(3600))
        let last = world.now
        world.answersProbes = false
        world.pass(to: last + .seconds(13))
        let reset = world.actions.first { $0.action == .reset && $0.time > last }
        #expect(reset.map { $0.time - last <= .seconds(12) } == true)
    }

    @Test func aBusyRoomThatGoesOnIsAskedNothing() {
        var world = started()
        for _ in 0..<100 {
            world.pass(to: world.now + .seconds(20), hearing: .milliseconds(50))
            // The gap of a slow moment.
            world.pass(to: world.now + .seconds(4))
        }
        #expect(world.actions.isEmpty)
    }

    @Test func aDeadControllerIsResetWithinTheBudgetOfEachHour() {
        var world = started()
        world.answersProbes = false
        world.comesUp = false
        world.perform(world.ladder.failed(.noAnswer, at: .zero))
        world.pass(to: .zero + .seconds(10))
        #expect(world.count(.reset) >= 1)
        world.pass(to: .zero + .seconds(86_400))
        #expect(world.mostInAnHour(.reset) <= RecoveryLadder.resetBudget)
        #expect(world.ladder.isExhausted)
        // Pauses grow to ten minutes and no further.
        let tries = world.actions.map(\.time)
        let pauses = zip(tries.dropFirst(), tries).map { $0 - $1 }
        #expect(pauses.max().map { $0 <= RecoveryLadder.longestPause + .seconds(2) } == true)
        #expect(world.actions.count < 24 * 6 + 30)
        world.comesUp = true
        world.answersProbes = true
        world.pass(to: world.now + .seconds(601))
        world.ladder.heard(at: world.now)
        #expect(!world.ladder.isExhausted)
    }

    @Test func faultsThatAreLongPastAreForgotten() {
        var world = started()
        for fault in 0..<4 {
            let action = world.ladder.failed(.noAnswer, at: world.now)
            #expect(action == .bringUp, "fault \(fault)")
            world.perform(action)
            world.pass(to: world.now + .seconds(700), hearing: .seconds(1))
        }
    }

    @Test func aPauseIsNoGapAndNoSilence() {
        var world = started()
        for _ in 0..<60 {
            world.pass(to: world.now + .seconds(2), hearing: .milliseconds(500))
            world.ladder.paused(at: world.now)
            world.pass(to: world.now + .seconds(58))
            world.ladder.scanning(at: world.now, isContinuation: true)
        }
        #expect(world.actions.isEmpty)
    }
}

extension TimeInterval {
    fileprivate static func + (left: Self, right: Self) -> Self {
        Self(nanoseconds: left.nanoseconds + right.nanoseconds)
    }
}
