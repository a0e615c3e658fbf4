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

    /// Between two looks at a disk that could not be written.
    private static let probeInterval = TimeInterval.seconds(2)
    /// Room that a disk must have got again, besides that for what is kept in memory.
    private static let leastRoom: UInt64 = 512 << 10
    private static let complaintInterval = TimeInterval.seconds(60)

    private let store: Store
    private var change = Outbox.Change()
    private var pacer = CommitPacer(now: Clock.now)
    /// When the writer saw the first transition of the group that waits now.
    private var groupStart: MonotonicTime?
    /// When to try again after a commit that failed.
    private var retry: MonotonicTime?
    /// When to look at a disk that could not be written, and when to try it although it seems to have no room.
    private var nextProbe = MonotonicTime.distantFuture
    private var nextBlindTry = MonotonicTime.zero
    private var blindWait = Self.probeInterval
    private var isFull = false
    /// A disk that can be written one moment and not the next is worth a line a minute.
    private var nextComplaint = MonotonicTime.zero
    private var nextNotice = MonotonicTime.zero
    private var nextRepair = MonotonicTime.zero
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
        if isDegraded {
            isFull = store.path.map { !Machine.room(for: $0).isReadOnly } ?? false
            nextProbe = Clock.now + Self.probeInterval
            nextBlindTry = nextProbe
        }
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
                if isDegraded {
                    nextProbe = now
                    nextBlindTry = now
                }
                // At most twice: what cannot be stored now is not stored.
                if due != nil || isDegraded { commit() }
                if due != nil, retry == nil, !isDegraded { continue }
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
        let isDegraded = state.trouble != nil
        guard hasGroup || hasCursors || hasMemory || isDegraded || state.isDamaged else { return nil }
        if let retry { return retry }
        if state.isDamaged { return now }
        if hasGroup, state.isFlushing, !state.isTurnOpen { return now }
        // With a group or alone, no commit for cursors comes sooner than a second after the one before.
        var due = hasCursors && !isDegraded ? pacer.lastCommit + Self.turn : .distantFuture
        if isDegraded { due = nextProbe }
        if hasMemory, !isDegraded { due = min(due, pacer.lastCommit + Self.memoryWait) }
        if hasGroup {
            let start = groupStart ?? now
            groupStart = start
            due = min(due, start + pacer.wait(at: start))
        }
        // A turn takes the loop some microseconds.
        return state.isTurnOpen ? max(due, now + .milliseconds(1)) : due
    }

    private mutating func commit() {
        if store.state.withLock({ $0.isDamaged }) { abandon() }
        guard collect() else { return }
        if !isDegraded, commitToDisk() { return }
        if !change.entries.isEmpty { commitToMemory() }
        if Clock.now >= nextProbe { probe() }
    }

    // MARK: The disk

    /// - Returns: false when the disk did not take it; then transitions go into memory from here on.
    private mutating func commitToDisk() -> Bool {
        do throws(StoreError) {
            settle(try tryDisk(), isOnDisk: true)
        } catch {
            store.state.withLock { $0.counters.failedCommits += 1 }
            if error.cause == .damaged { store.state.withLock { $0.isDamaged = true } }
            if !isDegraded { degrade(error) }
            return false
        }
        reserve?.keep(at: Clock.now)
        pacer.committed(at: Clock.now)
        return true
    }

    /// A full disk may still take a commit: first in the room of the write-ahead log, which is there, then in the room
    /// that was kept.
    private mutating func tryDisk() throws(StoreError) -> Outbox.Outcome {
        func attempt() throws(StoreError) -> Outbox.Outcome {
            try store.shelves.withLock { shelves throws(StoreError) in
                guard let main = shelves?.main else { throw StoreError(.closed, "the outbox is not open") }
                return try main.commit(change, taking: shelves?.overflow)
            }
        }
        do throws(StoreError) { return try attempt() } catch { guard error.cause == .full else { throw error } }
        store.shelves.withLock { shelves in try? shelves?.main?.checkpoint() }
        do throws(StoreError) { return try attempt() } catch {
            guard error.cause == .full, reserve?.release() == true else { throw error }
        }
        store.log(.error, "the disk is full: the outbox lives on its reserve; make room on the disk")
        return try attempt()
    }

    // MARK: Memory

    private var isDegraded: Bool { store.trouble != nil }

    /// From here on transitions are kept in memory, under a new stream: what the disk has of the old one may lack what
    /// sinks are told now.
    private mutating func degrade(_ error: StoreError) {
        let stream: String
        do throws(StoreError) {
            stream = try store.shelves.withLock { shelves throws(StoreError) in
                let overflow = try Store.inMemory(behind: store.lastPosition, store.limits, store.vocabulary)
                shelves?.overflow = overflow
                return overflow.place.stream
            }
        } catch {
            // Out of memory: the group waits.
            retry = Clock.now + Self.turn
            return store.log(.error, "\(error)")
        }
        let now = Clock.now
        store.state.withLock { state in
            state.stream = stream
            state.trouble = error.description
        }
        isFull = error.cause == .full
        nextProbe = now + Self.probeInterval
        blindWait = Self.probeInterval
        nextBlindTry = nextProbe
        store.log(
            now >= nextComplaint ? .error : .debug,
            "the outbox cannot be written: \(error); transitions go on in memory under stream "
                + "\(stream) and are lost with the process; make room on the disk or look for its faults")
        if now >= nextComplaint { nextComplaint = now + Self.complaintInterval }
    }

    private mutating func commitToMemory() {
        var part = Outbox.Change()
        part.entries = change.entries
        part.last = change.last
        part.acknowledged = change.acknowledged
        do throws(StoreError) {
            let outcome = try store.shelves.withLock { shelves throws(StoreError) in
                guard let overflow = shelves?.overflow else { throw StoreError(.closed, "the outbox is closed") }
                return try overflow.commit(part)
            }
            settle(outcome, isOnDisk: false)
        } catch {
            // Memory refuses only when there is none.
            retry = Clock.now + Self.turn
            store.log(.error, "\(error)")
        }
    }

    /// Looks whether the disk can be written again, and moves everything there if so.
    private mutating func probe() {
        let now = Clock.now
        nextProbe = now + Self.probeInterval
        guard let path = store.path, let held = store.shelves.withLock({ $0?.overflow?.count }) else { return }
        let hasRoom = isFull && Machine.room(for: path).octets >= Self.leastRoom + 512 * held
        guard hasRoom || now >= nextBlindTry else { return }
        blindWait = min(TimeInterval(nanoseconds: blindWait.nanoseconds * 2), Self.complaintInterval)
        nextBlindTry = now + blindWait
        guard reopen(path) else { return }
        // In the middle of a turn what was collected before is enough.
        _ = collect()
        guard commitToDisk() else { return }
        store.log(
            now >= nextNotice ? .notice : .debug,
            "the outbox can be written again; \(held) transitions came from memory")
        nextNotice = now + Self.complaintInterval
    }

    /// Whether the database is open, perhaps again.
    private mutating func reopen(_ path: String) -> Bool {
        let isOpen = store.shelves.withLock { shelves -> Bool? in
            guard shelves?.main == nil, let overflow = shelves?.overflow else { return true }
            let opened = try? OutboxFile.open(
                path: path, limits: store.limits.ofFile, machine: store.machine, vocabulary: store.vocabulary,
                log: store.log)
            guard let opened else { return false }
            guard opened.last <= overflow.beginning else { return nil }
            shelves?.main = opened
            return true
        }
        if isOpen == nil {
            // Sinks are past it. It waits, unharmed.
            store.log(.error, "the outbox \(path) holds transitions of an earlier run; it is used after a restart")
            nextProbe = .distantFuture
        }
        return isOpen == true
    }

    /// Closes a damaged database; the next look sets it aside and makes a new one of what is whole.
    private mutating func abandon() {
        store.state.withLock { $0.isDamaged = false }
        guard store.path != nil, Clock.now >= nextRepair else { return }
        nextRepair = Clock.now + Self.complaintInterval
        store.shelves.withLock { $0?.main = nil }
        if !isDegraded { degrade(StoreError(.damaged, "the database is damaged")) }
        nextProbe = Clock.now
        nextBlindTry = nextProbe
    }

    // MARK: Parts

    /// Fills in the change. A group that could not be committed stays what it is, and newer transitions wait behind it.
    /// False in the middle of a turn of the loop, of which nothing is taken.
    private mutating func collect() -> Bool {
        store.state.withLock { state in
            guard !state.isTurnOpen else { return false }
            if change.entries.isEmpty {
                swap(&change.entries, &state.queue)
                change.last = state.last
            }
            // In memory cursors need no place, so those that the disk lacks are all of them.
            change.cursors = state.sinks.filter { $0.value.isDirty || state.trouble != nil }
                .map { ($0.key, $0.value.cursor) }
            change.remembered = state.remembered
            change.forgotten = state.forgotten
            // For a sink that comes later nothing is kept: it starts at the end.
            change.acknowledged = state.sinks.values.map(\.cursor).min() ?? change.last
            return true
        }
    }

    /// Takes the committed change out of the state, and wakes the sinks.
    private mutating func settle(_ outcome: Outbox.Outcome, isOnDisk: Bool) {
        retry = nil
        groupStart = nil
        store.committedLast.store(max(store.lastPosition, change.last), ordering: .releasing)
        let held = store.shelves.withLock { shelves in
            if isOnDisk { shelves?.overflow = nil }
            return shelves?.overflow?.count ?? 0
        }
        let written = isOnDisk ? Machine.octetsWrittenByThread : 0
        let (wakes, expired) = store.state.withLock { state in
            let count = UInt64(change.entries.count)
            state.counters.pending -= count
            if isOnDisk {
                state.trouble = nil
                state.counters.commits += 1
                state.counters.bytes += UInt64(outcome.octets)
                state.counters.written = written
                for (key, value) in change.remembered where state.remembered[key] == .some(value) {
                    state.remembered[key] = nil
                }
                state.forgotten.removeFirst(change.forgotten.count)
                for cursor in change.cursors where state.sinks[cursor.sink]?.cursor == cursor.sequence {
                    state.sinks[cursor.sink]?.isDirty = false
                }
            }
            state.counters.committed += count
            state.counters.inMemory = held
            let slowest = state.sinks.values.filter { $0.wake != nil }.map(\.cursor).min() ?? outcome.deleted
            let had = max(slowest, outcome.deletedBefore)
            if outcome.deleted > had { state.counters.expired += outcome.deleted - had }
            return (state.sinks.values.compactMap(\.wake), state.counters.expired)
        }
        if expiring.begins(total: expired) {
            store.log(
                .error, "the outbox is full, the oldest transitions expire: a sink has not taken them for too long")
        }
        if !change.entries.isEmpty { for wake in wakes { wake() } }
        change.entries.removeAll(keepingCapacity: true)
    }

    private func reportUnsaved() {
        let unsaved = store.counters.pending + (store.shelves.withLock { $0?.overflow?.count } ?? 0)
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
