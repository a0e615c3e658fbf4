// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import SinkKit
import Synchronization

/// What the loop's thread and the sink's thread share: the queue, and what the worker was asked to do.
final class Inbox: Sendable {
    private struct State {
        var queue: SinkQueue
        /// The urgency that the sink's thread was woken for and has not yet acted upon.
        var signalled = SinkQueue.Urgency.nothing
        var stopDeadline: MonotonicTime?
        var wantsReopen = false
    }

    private let state: Mutex<State>
    /// Readable when the sink's thread should look.
    let wake: EventDescriptor
    /// Readable when the sink's thread has ended.
    let ended: EventDescriptor

    init(queue: SinkQueue) throws(SystemError) {
        state = Mutex(State(queue: queue))
        wake = try EventDescriptor()
        ended = try EventDescriptor()
    }

    // MARK: The loop's thread

    /// Changes the queue and wakes the sink's thread, with a system call only when that is news to it.
    func offer(_ body: (inout SinkQueue) -> Void) {
        let isNews = state.withLock { state in
            body(&state.queue)
            let urgency = state.queue.urgency
            guard urgency > state.signalled else { return false }
            state.signalled = urgency
            return true
        }
        if isNews { wake.signal() }
    }

    func stop(deadline: MonotonicTime) {
        state.withLock { $0.stopDeadline = min(deadline, $0.stopDeadline ?? .distantFuture) }
        wake.signal()
    }

    func reopen() {
        state.withLock { $0.wantsReopen = true }
        wake.signal()
    }

    // MARK: The sink's thread

    func withQueue<Result: Sendable>(_ body: (inout SinkQueue) -> sending Result) -> Result {
        state.withLock { body(&$0.queue) }
    }

    /// How soon the sink should get what waits. From here on the thread is woken for what is more urgent than that.
    func urgency() -> SinkQueue.Urgency {
        state.withLock { state in
            state.signalled = state.queue.urgency
            return state.signalled
        }
    }

    var stopDeadline: MonotonicTime? { state.withLock { $0.stopDeadline } }

    func takeReopenRequest() -> Bool {
        state.withLock { state in
            defer { state.wantsReopen = false }
            return state.wantsReopen
        }
    }
}
