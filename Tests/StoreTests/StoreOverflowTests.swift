// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import Store

/// A disk that cannot be written. A limit of the process stands in for it here; the harness fills a real one.
@Suite struct StoreOverflowTests {
    /// The kernel refuses what would make a file longer than this.
    private static func limitFiles(to octets: UInt?) {
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit()
        unsafe getrlimit(__rlimit_resource_t(1), &limit)
        limit.rlim_cur = octets ?? limit.rlim_max
        unsafe setrlimit(__rlimit_resource_t(1), &limit)
    }

    private static func append(_ numbers: ClosedRange<UInt64>, to store: Store) async throws {
        for number in numbers { store.append(World.event(number)) }
        try await store.waitUntilCommitted()
    }

    @Test("transitions go on in memory under a stream of their own, and into the database when it can be written")
    func memoryAndBack() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let log = LogLines()
            var store = try Store(path: folder.database, vocabulary: World.vocabulary(), log: log.function)
            store.register(sink: "a") {}
            store.register(sink: "b") {}
            try await Self.append(1...3, to: store)
            let first = store.stream
            #expect(store.trouble == nil)

            Self.limitFiles(to: 4096)
            try await Self.append(4...9, to: store)
            let second = store.stream
            #expect(second != first)
            #expect(store.trouble != nil)
            #expect(store.counters.inMemory == 6 && store.counters.pending == 0)
            let expected = (1...3).map { "\(first) \($0)" } + (1...6).map { "\(second) \($0)" }
            #expect(try store.keys() == expected)
            #expect(try store.found(after: 3) == events(4...9))
            store.acknowledge(sink: "a", through: 7)

            Self.limitFiles(to: nil)
            try await eventually("the disk") { store.trouble == nil }
            #expect(try store.keys() == expected)
            #expect(store.counters.inMemory == 0)
            try await Self.append(10...12, to: store)
            let all = expected + (7...9).map { "\(second) \($0)" }
            #expect(try store.keys() == all)
            #expect(log.all.filter { $0.contains("go on in memory") }.count == 1)
            #expect(log.all.last?.contains("6 transitions came from memory") == true)
            store.close()

            store = try Store(path: folder.database, vocabulary: World.vocabulary(), log: log.function)
            #expect(store.stream == second)
            #expect(try store.keys() == all)
            #expect(store.cursor(of: "a") == 7 && store.cursor(of: "b") == 0)
            store.register(sink: "a") {}
            store.register(sink: "b") {}
            try await Self.append(13...13, to: store)
            #expect(try store.keys() == all + ["\(second) 10"])
            // What every sink has goes, with the segment.
            store.acknowledge(sink: "a", through: 13)
            store.acknowledge(sink: "b", through: 12)
            try await eventually("less") { try store.keys(after: 12) == ["\(second) 10"] && store.counters.commits > 1 }
            store.close()
            #expect(try Database(path: folder.database).text("SELECT count(*) FROM segment") == "1")
        }
    }

    @Test("the end while the disk is full: what was in memory is gone, and no key comes again")
    func theEndInMemory() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let log = LogLines()
            var streams: Set<String> = []
            for round in UInt64(0)..<3 {
                Self.limitFiles(to: nil)
                let store = try Store(path: folder.database, vocabulary: World.vocabulary(), log: log.function)
                store.register(sink: "a") {}
                #expect(store.lastPosition == round * 2)
                try await Self.append(1...2, to: store)
                let disk = store.stream
                Self.limitFiles(to: 4096)
                try await Self.append(3...5, to: store)
                #expect(try store.keys(after: round * 2 + 2) == (1...3).map { "\(store.stream) \($0)" })
                #expect(store.stream != disk)
                streams.insert(store.stream)
                store.close()
                #expect(log.all.last?.contains("3 transitions that it could not store") == true)
            }
            #expect(streams.count == 3)
        }
    }

    @Test("memory is bounded: the oldest go, and a gap names them, in memory and later on the disk")
    func memoryIsBounded() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let log = LogLines()
            var limits = Store.Limits()
            limits.recordsInMemory = 10
            let store = try Store(
                path: folder.database, vocabulary: World.vocabulary(), limits: limits, log: log.function)
            store.register(sink: "a") {}
            try await Self.append(1...2, to: store)
            let first = store.stream
            Self.limitFiles(to: 4096)
            for group in stride(from: UInt64(3), through: 28, by: 2) {
                try await Self.append(group...group + 1, to: store)
            }
            let second = store.stream
            let expected =
                ["\(first) 1", "\(first) 2", "\(second) gap 1...16"] + (17...26).map { "\(second) \($0)" }
            #expect(try store.keys() == expected)
            #expect(store.counters.expired == 16)
            Self.limitFiles(to: nil)
            try await eventually("the disk") { store.trouble == nil }
            #expect(try store.keys() == expected)
            store.close()
        }
    }

    @Test("a disk that is full from the start")
    func fullAtTheStart() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            // The limit's error is no full disk, so the outbox of the start stands in for one that could not be opened.
            let store = try Store(path: folder.database, vocabulary: World.vocabulary()) { _, _ in }
            try store.shelves.withLock { shelves in
                shelves = Store.Shelves(overflow: try Store.inMemory(behind: 0, .init(), World.vocabulary()))
                for suffix in ["", "-wal"] { try? FileManager.default.removeItem(atPath: folder.database + suffix) }
            }
            let stream = try #require(store.shelves.withLock { $0?.overflow?.place.stream })
            store.state.withLock { state in
                state.trouble = "it is full"
                state.stream = stream
            }
            store.register(sink: "a") {}
            try await Self.append(1...4, to: store)
            let keys = (1...4).map { "\(stream) \($0)" }
            #expect(try store.keys() == keys)
            store.state.withLock { $0.isDamaged = true }
            store.signal.signal()
            try await eventually("the disk") { store.trouble == nil }
            #expect(try store.keys() == keys)
            store.close()
            let again = try Store(path: folder.database, vocabulary: World.vocabulary()) { _, _ in }
            #expect(again.stream == stream)
            #expect(try again.keys() == keys)
            again.close()
        }
    }

    @Test func octetsOfTheDiskAreCounted() async throws {
        let folder = try TemporaryFolder()
        let store = try Store(path: folder.database, vocabulary: World.vocabulary()) { _, _ in }
        defer { store.close() }
        store.register(sink: "a") {}
        try await Self.append(1...200, to: store)
        let counters = store.counters
        // A file system in memory counts nothing: this thread's own octets tell.
        let before = Machine.octetsWrittenByThread
        try Data(count: 65_536).write(to: URL(filePath: folder.path("control")))
        let isCounted = Machine.octetsWrittenByThread - before >= 65_536
        #expect(isCounted ? counters.written >= counters.bytes : counters.written == 0)
        #expect(counters.written < 1 << 20)
    }

    @Test func eachBootHasItsSegment() async throws {
        let folder = try TemporaryFolder()
        do {
            let outbox = try Outbox(
                path: folder.database, limits: .init(), boot: "0123", machine: "", vocabulary: World.vocabulary())
            var change = Outbox.Change()
            change.entries = (1...2).map { Outbox.Entry(sequence: $0, event: World.event($0)) }
            change.last = 2
            change.cursors = [("a", 0)]
            _ = try outbox.commit(change)
        }
        #expect(Machine.boot.count == 32)
        let store = try Store(path: folder.database, vocabulary: World.vocabulary()) { _, _ in }
        defer { store.close() }
        store.register(sink: "a") {}
        try await Self.append(3...3, to: store)
        var boots: [String] = []
        var keys: [UInt64] = []
        for position in [UInt64(0), 2] {
            try store.read(after: position, limit: .max) { place, position, _ in
                boots.append(place.boot)
                keys.append(position - place.base)
            }
        }
        #expect(boots == ["0123", "0123", Machine.boot])
        #expect(keys == [1, 2, 3], "the stream goes on")
    }
}
