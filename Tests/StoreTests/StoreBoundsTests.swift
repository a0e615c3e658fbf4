// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import LinuxIO
import TestSupport
import Testing

@testable import Store

@Suite struct StoreBoundsTests {
    private let folder: TemporaryFolder
    private let log = LogLines()

    init() throws { folder = try TemporaryFolder() }

    private func open(_ limits: Store.Limits = .init(), machine: String = "") throws -> Store {
        try Store(
            path: folder.database, vocabulary: World.vocabulary(), limits: limits, machine: machine, log: log.function)
    }

    @Test func theOldestGoWhenTheOctetsAreUsed() async throws {
        var limits = Store.Limits()
        limits.octets = 128 << 10
        let store = try open(limits)
        defer { store.close() }
        store.register(sink: "a") {}
        for number in UInt64(1)...4000 { store.append(World.event(number)) }
        try await store.waitUntilCommitted()
        let found = try store.found()
        guard case .gap(_, 1, let last) = found.first else { throw Missing(what: "a gap in the beginning") }
        #expect((1000..<3900).contains(last))
        #expect(Array(found.dropFirst()) == events(last + 1...4000))
        #expect(store.counters.expired == last)
        #expect(log.all.contains { $0.contains("outbox is full") })
    }

    @Test(.enabled(if: Clock.isSynchronized, "the age counts while the clock is synchronised"))
    func theOldGo() async throws {
        var limits = Store.Limits()
        limits.age = .seconds(3600)
        let store = try open(limits)
        store.register(sink: "a") {}
        for (number, age) in [(UInt64(1), Int64(7200)), (2, 7200), (3, 60)] {
            var event = World.event(number)
            event.wallTime = WallTime(milliseconds: Clock.wall.milliseconds - age * 1000)
            store.append(event)
        }
        try await store.waitUntilCommitted()
        store.close()
        let again = try open(limits)
        defer { again.close() }
        again.register(sink: "a") {}
        again.append(World.event(4))
        try await again.waitUntilCommitted()
        #expect(try again.found() == [.gap(2, first: 1, last: 2)] + events(3...4))
    }

    @Test func anotherMachineHasAnotherStream() async throws {
        var streams: [String] = []
        for (round, machine) in ["one", "two", "two", "one"].enumerated() {
            let store = try open(machine: machine)
            defer { store.close() }
            streams.append(store.stream)
            store.register(sink: "a") {}
            store.append(World.event(UInt64(round + 1)))
            try await store.waitUntilCommitted()
            #expect(try store.found() == events(1...UInt64(round + 1)), "nothing is lost")
        }
        #expect(streams[1] == streams[2])
        #expect(Set(streams).count == 3)
    }

    @Test func aForgottenSinkHoldsNothingBack() async throws {
        var store = try open()
        store.register(sink: "a") {}
        store.register(sink: "gone") {}
        store.append(World.event(1))
        try await store.waitUntilCommitted()
        store.close()
        store = try open()
        #expect(store.knownSinks == ["a", "gone"])
        store.register(sink: "a") {}
        store.forget(sink: "gone")
        store.acknowledge(sink: "a", through: 1)
        store.append(World.event(2))
        try await store.waitUntilCommitted()
        #expect(try store.found() == [.gap(1, first: 1, last: 1)] + events(2...2))
        store.close()
        store = try open()
        #expect(store.knownSinks == ["a"])
        store.close()
    }

    @Test func whatIsRememberedSurvives() throws {
        var store = try open()
        #expect(store.remembered().isEmpty)
        store.remember(key: [1], value: [1, 2, 3])
        store.remember(key: [2], value: [])
        store.remember(key: [3], value: [9])
        store.remember(key: [3], value: nil)
        store.close()
        store = try open()
        let found = store.remembered()
        #expect(found.map(\.key) == [[1], [2]])
        #expect(found.map(\.value) == [[1, 2, 3], []])
        store.remember(key: [1], value: nil)
        store.close()
        try Database(path: folder.database).execute("UPDATE remembered SET value = x'01'")
        store = try open()
        #expect(store.remembered().isEmpty, "a value that was changed is none")
        store.close()
    }

    @Test func anOlderSchemaIsOpened() async throws {
        var store = try open()
        store.register(sink: "a") {}
        store.append(World.event(1))
        try await store.waitUntilCommitted()
        let stream = store.stream
        store.close()
        do {
            let database = try Database(path: folder.database)
            try database.execute("DROP TABLE machine")
            try database.execute("DROP TABLE remembered")
            try database.execute("DROP TABLE segment")
            try database.execute("PRAGMA user_version = 1")
        }
        store = try open(machine: "one")
        #expect(store.stream == stream)
        #expect(try store.found() == events(1...1))
        store.close()
        #expect(log.all == [])
    }

    private struct Missing: Error { var what: String }
}
