// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import Synchronization

/// What the store's thread does: waits for a group of transitions, commits it, and tells the sinks.
struct Writer {
    /// The longest sleep: the heartbeat and acknowledgements wait for it.
    private static let turn = TimeInterval.seconds(1)
    /// How long what is remembered waits for a commit of something else.
    private static let memoryWait = TimeInterval.seconds(60)

    private let store: Store
    private var change = Outbox.Change()
    private var pacer = CommitPacer(now: Clock.now)
    /// When the writer saw the first transition of the group that waits now.
    private var groupStart: MonotonicTime?
    /// When to try again after a commit that failed.
    private var retry: MonotonicTime?
    /// Whether the trouble was logged that goes on.
    private var isRefused = false
    private var reserve: SpaceReserve?
    private var dropping = Episode()
    private var expiring = Episode()

    init(store: Store) {
        self.store = store
        reserve = store.path.map { SpaceReserve(path: $0 + ".reserve") }
        change.entries.reserveCapacity(store.limits.queue)
    }

    mutating func run() {
        reserve?.keep(at: Clock.now)
        while true {
            let now = Clock.now
            store.lastTurn.store(now.nanoseconds, ordering: .relaxed)
            let (due, isClosing, dropped) = store.state.withLock { state in
                (nextCommit(state, now), state.isClosing, state.counters.dropped)
            }
            if dropping.begins(total: dropped) {
                store.log(.error, "the outbox's queue is full, transitions are lost: the disk is too slow, or full")
            }
            if isClosing {
                if due != nil {
                    commit()
                    if retry == nil { continue }
                }
                return reportUnsaved()
            }
            if let due, due <= now {
                commit()
            } else {
                _ = store.signal.wait(until: min(due ?? .distantFuture, now + Self.turn))
            }
        }
    }

    /// When the next commit is due; nil when there is nothing to commit.
    private mutating func nextCommit(_ state: Store.State, _ now: MonotonicTime) -> MonotonicTime? {
        let hasGroup = !state.queue.isEmpty || !change.entries.isEmpty
        let hasCursors = state.sinks.values.contains(where: \.isDirty)
        let hasMemory = !state.remembered.isEmpty
        guard hasGroup || hasCursors || hasMemory else { return nil }
        if let retry { return retry }
        if hasGroup, state.isFlushing { return now }
        // With a group or alone, no commit for cursors comes sooner than a second after the one before.
        var due = hasCursors ? pacer.lastCommit + Self.turn : .distantFuture
        if hasMemory { due = min(due, pacer.lastCommit + Self.memoryWait) }
        if hasGroup {
            let start = groupStart ?? now
            groupStart = start
            due = min(due, start + pacer.wait(at: start))
        }
        return due
    }

    private mutating func commit() {
        collect()
        let outcome: Outbox.Outcome
        do throws(StoreError) {
            outcome = try store.outbox.withLock { outbox throws(StoreError) in
                guard let outbox else { throw StoreError(.closed, "the outbox is closed") }
                return try outbox.commit(change)
            }
        } catch {
            store.state.withLock { $0.counters.failedCommits += 1 }
            // A full disk stops deletes too: the room that was kept is for them.
            if error.cause == .full, reserve?.release() == true {
                store.log(.error, "the disk is full: the outbox lives on its reserve; make room on the disk")
                retry = Clock.now
                return
            }
            if !isRefused {
                isRefused = true
                store.log(
                    .error,
                    "the outbox cannot be written, transitions wait in memory: \(error); "
                        + "make room on the disk or look for its faults")
            }
            retry = Clock.now + Self.turn
            return
        }
        if isRefused { store.log(.notice, "the outbox can be written again") }
        isRefused = false
        retry = nil
        reserve?.keep(at: Clock.now)
        groupStart = nil
        pacer.committed(at: Clock.now)
        if !change.entries.isEmpty { store.committedLast.store(change.last, ordering: .releasing) }
        let wakes = settle(outcome)
        if !change.entries.isEmpty { for wake in wakes { wake() } }
        change.entries.removeAll(keepingCapacity: true)
    }

    /// Fills in the change. A group that could not be committed stays what it is, and newer transitions wait behind it.
    private mutating func collect() {
        store.state.withLock { state in
            if change.entries.isEmpty {
                swap(&change.entries, &state.queue)
                change.last = state.last
            }
            change.cursors = state.sinks.filter(\.value.isDirty).map { ($0.key, $0.value.cursor) }
            change.remembered = state.remembered
            change.forgotten = state.forgotten
            // For a sink that comes later nothing is kept: it starts at the end.
            change.acknowledged = state.sinks.values.map(\.cursor).min() ?? change.last
        }
    }

    /// Takes the committed change out of the state; returns whom to wake.
    private mutating func settle(_ outcome: Outbox.Outcome) -> [@Sendable () -> Void] {
        let (wakes, expired) = store.state.withLock { state in
            let count = UInt64(change.entries.count)
            state.counters.pending -= count
            state.counters.committed += count
            state.counters.commits += 1
            state.counters.bytes += UInt64(outcome.octets)
            for (key, value) in change.remembered where state.remembered[key] == .some(value) {
                state.remembered[key] = nil
            }
            state.forgotten.removeFirst(change.forgotten.count)
            for cursor in change.cursors where state.sinks[cursor.sink]?.cursor == cursor.sequence {
                state.sinks[cursor.sink]?.isDirty = false
            }
            let slowest = state.sinks.values.filter { $0.wake != nil }.map(\.cursor).min() ?? outcome.deleted
            let had = max(slowest, outcome.deletedBefore)
            if outcome.deleted > had { state.counters.expired += outcome.deleted - had }
            return (state.sinks.values.compactMap(\.wake), state.counters.expired)
        }
        if expiring.begins(total: expired) {
            store.log(
                .error, "the outbox is full, the oldest transitions expire: a sink has not taken them for too long")
        }
        return wakes
    }

    private func reportUnsaved() {
        let unsaved = store.counters.pending
        if unsaved > 0 {
            store.log(.error, "the outbox was closed with \(unsaved) transitions that it could not store")
        }
    }
}

/// Tells the beginning of a trouble from its going on, so that it is logged once.
private struct Episode {
    private var total: UInt64 = 0
    private var goesOn = false

    /// Called at intervals with a counter of the trouble; whether it began since the last call.
    mutating func begins(total: UInt64) -> Bool {
        defer {
            goesOn = total > self.total
            self.total = total
        }
        return total > self.total && !goesOn
    }
}
