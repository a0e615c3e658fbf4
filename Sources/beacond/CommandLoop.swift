// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// The loop of a command that goes on for a time, or until somebody ends it with Ctrl-C or a signal.
final class CommandLoop {
    let loop: EventLoop
    private let signals: Signals
    private let end: MonotonicTime
    private let interval: TimeInterval?
    private var nextTick: MonotonicTime
    /// Whether somebody ended it before its time.
    private(set) var wasInterrupted = false

    /// - Parameters:
    ///   - duration: nil to go on until it is ended.
    ///   - interval: between two ticks; nil for none.
    init(duration: TimeInterval?, tickEvery interval: TimeInterval? = nil) throws(CommandError) {
        do {
            signals = try Signals([Signals.interrupt, Signals.terminate, Signals.hangUp])
            loop = try EventLoop()
        } catch { throw CommandError(.failure, error.description) }
        end = duration.map { Clock.now + $0 } ?? .distantFuture
        self.interval = interval
        nextTick = interval.map { Clock.now + $0 } ?? .distantFuture
    }

    /// - Parameters:
    ///   - onEnd: what to do when the time is over or a signal came; ends the loop unless it says that more is to come.
    func run(
        deadline: () -> MonotonicTime = { .distantFuture }, due: () -> Void = {}, tick: () -> Void = {},
        onEnd: @escaping () -> Bool = { false }
    ) throws(CommandError) {
        var isEnding = false
        func finish() {
            // The second signal ends it in any case.
            if isEnding || !onEnd() { loop.stop() }
            isEnding = true
        }
        do {
            _ = try loop.add(signals.descriptor) { [unowned self] in
                while signals.take() != nil {
                    wasInterrupted = true
                    finish()
                }
            }
            try loop.run(
                prepare: { min(deadline(), nextTick, isEnding ? .distantFuture : end) },
                timer: {
                    due()
                    let now = Clock.now
                    if now >= nextTick, let interval {
                        nextTick = now + interval
                        tick()
                    }
                    if now >= end, !isEnding { finish() }
                })
        } catch { throw CommandError(.failure, error.description) }
    }

    func stop() { loop.stop() }
}
