// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct StoreTests {
    private let folder: TemporaryFolder
    private let log = LogLines()

    init() throws { folder = try TemporaryFolder() }

    private func open(_ limits: Store.Limits = .init(), inMemory: Bool = false) throws -> Store {
        try Store(
            path: inMemory ? nil : folder.database, vocabulary: World.vocabulary(), limits: limits, log: log.function)
    }

    /// Opens, lets `body` work, and closes.
    private func withStore<Result>(
        _ limits: Store.Limits = .init(), inMemory: Bool = false, _ body: (Store) async throws -> Result
    ) async throws -> Result {
        let store = try open(limits, inMemory: inMemory)
        defer { store.close() }
        return try await body(store)
    }

    @Test func aTurnIsCommittedAsAWhole() async throws {
        try await withStore { store in
            #expect(store.append(World.event(1), opensTurn: true) == 1)
            #expect(store.append(World.event(2), opensTurn: true) == 2)
            #expect(!store.flush(until: Clock.now + .milliseconds(100)))
            #expect(store.lastPosition == 0)
            store.remember(key: [1], value: [2])
            store.endTurn()
            #expect(store.flush(until: Clock.now + .seconds(30)))
            #expect(store.lastPosition == 2)
            #expect(store.counters.commits == 1)
            #expect(store.remembered().map(\.value) == [[2]])
            // Closed in the middle of one, it loses nothing.
            _ = store.append(World.event(3), opensTurn: true)
        }
        try await withStore { store in #expect(store.lastPosition == 3) }
    }

    @Test(arguments: [false, true])
    func whatWasAppendedIsReadInOrder(inMemory: Bool) async throws {
        try await withStore(inMemory: inMemory) { store in
            let woken = Atomic(UInt64(0))
            // The store holds what it calls, which must not hold the store.
            store.register(sink: "a") { [unowned store] in
                // What the sink is woken for is there to be read.
                woken.store(store.lastPosition, ordering: .releasing)
            }
            for number in 1...50 { store.append(World.event(UInt64(number))) }
            #expect(try store.found() == [], "nothing is seen before it is committed")
            try await eventually("woken") { woken.load(ordering: .acquiring) == 50 }
            #expect(try store.found() == events(1...50))
            #expect(try store.found(after: 10, limit: 3) == events(11...13))
            #expect(try store.found(after: 50) == [])
            #expect(try store.found(after: .max) == [])
            #expect(try store.found(limit: 0) == [])
            #expect(store.lastPosition == 50)
            #expect(store.cursor(of: "a") == 0)
            let counters = store.counters
            #expect(counters.appended == 50 && counters.committed == 50 && counters.pending == 0)
            #expect(counters.bytes == 50 * 49)
            #expect((1...3).contains(counters.commits))
            try store.read(after: 0, limit: 1) { _, _, event in
                #expect(event.time == .zero && event.wallTime == World.event(1).wallTime)
            }
        }
        #expect(log.all == [])
        #expect(folder.files == (inMemory ? [] : ["outbox.sqlite", "outbox.sqlite.reserve"]))
    }

    @Test func streamsAreRandom() async throws {
        var streams: Set<String> = []
        for _ in 0..<3 { streams.insert(try await withStore(inMemory: true) { $0.stream }) }
        streams.insert(try await withStore { $0.stream })
        #expect(streams.count == 4)
        for stream in streams { #expect(Hexadecimal.octets(stream)?.count == 16) }
    }

    @Test func everythingSurvivesACleanEnd() async throws {
        let stream = try await withStore { store in
            store.register(sink: "a") {}
            for number in 1...10 { store.append(World.event(UInt64(number))) }
            try await store.waitUntilCommitted()
            store.acknowledge(sink: "a", through: 4)
            store.append(World.event(11))
            return store.stream
        }
        try await withStore { store in
            #expect(store.stream == stream)
            #expect(store.lastPosition == 11)
            #expect(store.cursor(of: "a") == 4)
            #expect(try store.found(after: 4) == events(5...11))
            store.register(sink: "a") {}
            store.append(World.event(12))
            try await store.waitUntilCommitted()
            #expect(try store.found(after: 10) == events(11...12))
        }
    }

    @Test func numbersAreNeverUsedAgain() async throws {
        for round in UInt64(0)..<3 {
            try await withStore { store in
                #expect(store.lastPosition == round * 2)
                store.register(sink: "a") {}
                store.append(World.event(round * 2 + 1))
                store.append(World.event(round * 2 + 2))
                try await store.waitUntilCommitted()
                store.acknowledge(sink: "a", through: .max)
                #expect(store.cursor(of: "a") == round * 2 + 2)
            }
        }
        // Nothing is kept, and still the next one goes on.
        let database = try Database(path: folder.database)
        #expect(try database.text("SELECT count(*) FROM outbox") == "0")
    }

    @Test func aRecordIsKeptUntilEveryKnownSinkHasIt() async throws {
        try await withStore { store in
            store.register(sink: "fast") {}
            store.register(sink: "slow") {}
            for number in 1...6 { store.append(World.event(UInt64(number))) }
            try await store.waitUntilCommitted()
            store.acknowledge(sink: "fast", through: 6)
            store.acknowledge(sink: "slow", through: 2)
            store.acknowledge(sink: "slow", through: 1)
            #expect(store.cursor(of: "slow") == 2, "a cursor never goes back")
        }
        // "slow" is known although it does not run now.
        try await withStore { store in
            store.register(sink: "fast") {}
            store.append(World.event(7))
            try await store.waitUntilCommitted()
            store.acknowledge(sink: "fast", through: 7)
        }
        try await withStore { store throws in
            #expect(try store.found() == [.gap(2, first: 1, last: 2)] + events(3...7))
            store.acknowledge(sink: "slow", through: 7)
        }
        try await withStore { store throws in #expect(try store.found(after: 6) == [.gap(7, first: 7, last: 7)]) }
        #expect(log.all == [])
    }

    @Test func anAcknowledgementIsCommittedByItself() async throws {
        try await withStore { store in
            store.register(sink: "a") {}
            for number in 1...3 { store.append(World.event(UInt64(number))) }
            try await store.waitUntilCommitted()
            let commits = store.counters.commits
            store.acknowledge(sink: "a", through: 2)
            try await eventually("the cursor's commit") { store.counters.commits > commits }
            #expect(try store.found() == [.gap(2, first: 1, last: 2)] + events(3...3))
        }
    }

    @Test func aNewSinkStartsAtTheEnd() async throws {
        try await withStore { store in
            store.register(sink: "a") {}
            store.append(World.event(1))
            try await store.waitUntilCommitted()
            store.register(sink: "b") {}
            #expect(store.cursor(of: "b") == 1)
            #expect(store.cursor(of: "nobody") == 0)
            store.append(World.event(2))
        }
        // It is known from then on, although it never acknowledged anything.
        try await withStore { store throws in
            store.register(sink: "b") {}
            #expect(store.cursor(of: "b") == 1)
            #expect(try store.found(after: 1) == events(2...2))
        }
    }

    @Test func aFullQueueDropsAndSaysExactlyWhat() async throws {
        try await withStore(.init(queue: 8)) { store in
            store.register(sink: "a") {}
            for number in 1...30 { store.append(World.event(UInt64(number))) }
            try await store.waitUntilCommitted()
            store.append(World.event(31))
            try await store.waitUntilCommitted()
            let counters = store.counters
            #expect(counters.dropped > 0)
            #expect(counters.appended == counters.committed + counters.dropped)
            var next: UInt64 = 1
            var missing: UInt64 = 0
            for found in try store.found() {
                switch found {
                case .event(let sequence, let number):
                    #expect(sequence == next && number == UInt32(sequence))
                    next += 1
                case .gap(let sequence, let first, let last):
                    #expect(first == next && last == sequence)
                    missing += last - first + 1
                    next = last + 1
                }
            }
            #expect(next == 32)
            #expect(missing == counters.dropped)
            try await eventually("the log") { log.all.contains { $0.contains("queue is full") } }
        }
    }

    @Test("a gap at the end of the stream is known without anything behind it, and after a restart")
    func aGapAtTheEnd() async throws {
        let last = try await withStore(.init(queue: 2)) { store in
            store.register(sink: "a") {}
            for number in 1...5 { store.append(World.event(UInt64(number))) }
            try await store.waitUntilCommitted()
            return store.lastPosition
        }
        try await withStore { store in
            #expect(store.lastPosition == last)
            guard case .gap(5, _, last: 5) = try store.found().last else {
                Issue.record("the stream ends with \(try store.found())")
                return
            }
        }
    }

    @Test func theOldestExpireWhenItIsFull() async throws {
        try await withStore(.init(records: 50)) { store in
            store.register(sink: "a") {}
            for number in 1...120 { store.append(World.event(UInt64(number))) }
            try await store.waitUntilCommitted()
            #expect(try store.found() == [.gap(70, first: 1, last: 70)] + events(71...120))
            #expect(try store.found(after: 60, limit: 2) == [.gap(70, first: 61, last: 70)] + events(71...71))
            #expect(store.counters.expired == 70)
            store.acknowledge(sink: "a", through: 110)
            for number in 121...160 { store.append(World.event(UInt64(number))) }
            try await store.waitUntilCommitted()
            #expect(store.counters.expired == 70, "what the sink had did not expire")
            #expect(try store.found(after: 110) == events(111...160))
        }
        #expect(log.all.filter { $0.contains("is full") }.count == 1)
    }

    @Test("a burst takes few commits")
    func groupCommit() async throws {
        try await withStore { store in
            store.register(sink: "a") {}
            let start = Clock.now
            for number in 1...1500 {
                store.append(World.event(UInt64(number)))
                if number.isMultiple(of: 10) { store.acknowledge(sink: "a", through: store.lastPosition) }
                try await Task.sleep(for: .milliseconds(1))
            }
            try await store.waitUntilCommitted()
            let seconds = (Clock.now - start).seconds
            let counters = store.counters
            #expect(counters.committed == 1500)
            #expect(Double(counters.commits) <= seconds + 10)
            #expect(counters.commits >= 2)
        }
    }

    @Test("the loop's calls do not wait while the disk works")
    func theLoopNeverWaits() async throws {
        try await withStore { store in
            store.register(sink: "a") {}
            // The writer holds this lock while it commits; a call that wanted it would never return.
            store.shelves.withLock { _ in
                store.append(World.event(1))
                store.register(sink: "b") {}
                store.acknowledge(sink: "a", through: 0)
                #expect(store.cursor(of: "a") == 0 && store.lastPosition == 0)
                #expect(store.counters.pending == 1)
                #expect(store.heartbeat > .zero)
            }
            try await store.waitUntilCommitted()
        }
    }

    @Test("the loop does not allocate: the queue keeps its room from one group to the next")
    func theQueueKeepsItsRoom() async throws {
        try await withStore { store in
            store.register(sink: "a") {}
            for round in 1...4 {
                for number in 1...20 { store.append(World.event(UInt64(number))) }
                try await eventually("round \(round)") { store.lastPosition == round * 20 }
                #expect(store.state.withLock { $0.queue.capacity } >= 4096)
            }
        }
    }

    @Test func theHeartbeatGoesOnWhenNothingHappens() async throws {
        try await withStore { store in
            let first = store.heartbeat
            try await eventually("two turns") { store.heartbeat - first > .milliseconds(1500) }
            #expect(Clock.now - store.heartbeat < .seconds(30))
            #expect(store.counters.commits == 0, "an idle store does not wear the disk")
        }
    }

    @Test func closingCommitsWhatIsPending() async throws {
        let store = try open()
        store.register(sink: "a") {}
        for number in 1...5 { store.append(World.event(UInt64(number))) }
        store.close()
        store.close()
        #expect(store.lastPosition == 5)
        store.append(World.event(6))
        store.acknowledge(sink: "a", through: 3)
        let error = #expect(throws: StoreError.self) { try store.found() }
        #expect(error?.cause == .closed)
        try await withStore { store throws in #expect(try store.found() == events(1...5)) }
        #expect(log.all == [])
    }

    @Test func flushingCommitsAtOnce() async throws {
        try await withStore { store throws in
            store.register(sink: "a") {}
            // The first group is committed soon; those behind it wait for others, longer and longer.
            for number in 1...50 {
                store.append(World.event(UInt64(number)))
                #expect(store.flush(until: Clock.now + .seconds(10)))
                #expect(store.lastPosition == UInt64(number))
            }
            #expect(try store.found() == events(1...50))
            #expect(store.flush(until: Clock.now), "there is nothing to wait for")
        }
    }

    @Test("no thread and no descriptor is left, and a failure to open leaves none either")
    func nothingIsLeftBehind() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            func round() throws {
                for path in [folder.database, nil] {
                    let store = try Store(path: path, vocabulary: World.vocabulary()) { _, _ in }
                    store.register(sink: "a") {}
                    store.append(World.event(1))
                    #expect(throws: StoreError.self) {
                        _ = try Store(path: folder.path, vocabulary: World.vocabulary()) { _, _ in }
                    }
                    store.close()
                }
            }
            try round()
            let before = (try entryCount(of: "/proc/self/fd"), try entryCount(of: "/proc/self/task"))
            for _ in 0..<20 { try round() }
            #expect(try entryCount(of: "/proc/self/fd") == before.0)
            // The test's own pool may have made or ended a few.
            #expect(try entryCount(of: "/proc/self/task") < before.1 + 10)
        }
    }
}
