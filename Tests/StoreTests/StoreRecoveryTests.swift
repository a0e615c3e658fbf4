// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct StoreRecoveryTests {
    private let folder: TemporaryFolder
    private let log = LogLines()

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Store {
        try Store(path: folder.database, vocabulary: World.vocabulary(), log: log.function)
    }

    private func withStore<Result>(_ body: (Store) async throws -> Result) async throws -> Result {
        let store = try open()
        defer { store.close() }
        return try await body(store)
    }

    /// Fills a database with the events 1 to `count`, acknowledged by "a" through 2.
    private func fill(_ count: UInt64) async throws -> String {
        try await withStore { store in
            store.register(sink: "a") {}
            for number in 1...count { store.append(World.event(number)) }
            try await store.waitUntilCommitted()
            return store.stream
        }
    }

    // MARK: Kills

    @Test("a process killed at a random moment: what was committed is there, and the stream goes on")
    func kills() async throws {
        var generator = SeededGenerator("kills")
        let rounds = runs("BEACOND_KILLS", 8)
        var committed: UInt64 = 0
        var stream = ""
        for round in 0..<rounds {
            let (database, notes) = (folder.database, folder.path + "/notes")
            let microseconds = UInt32.random(in: 20_000...700_000, using: &generator)
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [database = database as String, notes = notes as String, microseconds = microseconds as UInt32] in
                let store = try Store(path: database, vocabulary: World.vocabulary()) { _, _ in }
                let file = try LinuxIO.FileDescriptor.open(notes, O_WRONLY | O_CREAT, mode: 0o600)
                store.register(sink: "a") {
                    // What this process saw of the store, for the one that comes after it.
                    let line = Array("\(store.stream) \(store.lastPosition) ".utf8)
                    _ = unsafe pwrite(file.number, line, line.count, 0)
                    store.acknowledge(sink: "a", through: store.lastPosition - min(store.lastPosition, 500))
                }
                let killer = try LinuxIO.Thread(name: "killer") {
                    usleep(microseconds)
                    kill(getpid(), SIGKILL)
                }
                for number in (store.lastPosition + 1)... {
                    store.append(World.event(number))
                    usleep(500)
                }
                killer.join()
            }
            let seen = (try? String(contentsOfFile: notes, encoding: .utf8))?.split(separator: " ").map(String.init)
            if let seen, seen.count == 2 {
                if stream.isEmpty { stream = seen[0] }
                #expect(seen[0] == stream)
                committed = max(committed, try #require(UInt64(seen[1])))
            }
            try await withStore { store throws in
                #expect(store.lastPosition >= committed, "round \(round)")
                let present = store.cursor(of: "a")
                #expect(present == 0 || present + 500 <= store.lastPosition)
                if store.lastPosition > present {
                    #expect(try store.found(after: present) == events(present + 1...store.lastPosition))
                }
                committed = store.lastPosition
            }
        }
        #expect(committed > 0)
        #expect(log.all == [])
        print("kills: \(rounds) kills, \(committed) transitions committed")
    }

    // MARK: Damage

    @Test func aDamagedRecordIsAGap() async throws {
        _ = try await fill(12)
        do {
            let database = try Database(path: folder.database)
            try database.execute("UPDATE outbox SET record = zeroblob(length(record)) WHERE seq IN (3, 4, 7)")
            try database.execute("UPDATE outbox SET record = (SELECT record FROM outbox WHERE seq = 8) WHERE seq = 9")
            try database.execute("UPDATE outbox SET record = 'text' WHERE seq = 12")
        }
        try await withStore { store in
            let expected: [Found] =
                events(1...2) + [.gap(4, first: 3, last: 4)] + events(5...6) + [.gap(7, first: 7, last: 7)]
                + events(8...8) + [.gap(9, first: 9, last: 9)] + events(10...11) + [.gap(12, first: 12, last: 12)]
            #expect(try store.found() == expected)
            #expect(store.counters.damaged == 5)
            // In pieces of any size it is the same, and there is always progress.
            for limit in 1...4 {
                var pieces: [Found] = []
                var after: UInt64 = 0
                while after < 12 {
                    let piece = try store.found(after: after, limit: limit)
                    try #require((1...limit).contains(piece.count))
                    pieces += piece
                    switch piece.last {
                    case .event(let sequence, _), .gap(let sequence, _, _): after = sequence
                    case nil: break
                    }
                }
                let missing = pieces.reduce(into: Set<UInt64>()) { missing, found in
                    if case .gap(_, let first, let last) = found { missing.formUnion(first...last) }
                }
                #expect(missing == [3, 4, 7, 9, 12], "limit \(limit)")
                #expect(pieces.filter { if case .event = $0 { true } else { false } }.count == 7)
            }
            try store.read(after: 2, limit: 1) { _, _, gap in
                #expect((gap.wallTime.milliseconds - Clock.wall.milliseconds).magnitude < 60_000)
            }
        }
        #expect(log.all.contains { $0.contains("damaged records") })
    }

    @Test("salvage: what the only sink had is not sent again, although its cursor is lost")
    func aLostCursorAfterSalvage() async throws {
        _ = try await fill(6)
        try await withStore { store in
            store.register(sink: "a") {}
            store.acknowledge(sink: "a", through: 4)
        }
        do {
            let database = try Database(path: folder.database)
            try database.execute("DELETE FROM cursor")
            try database.execute("DELETE FROM meta")
        }
        try await withStore { store throws in
            store.register(sink: "a") {}
            #expect(store.cursor(of: "a") == 4)
            #expect(try store.found(after: 4) == events(5...6))
        }
    }

    @Test("damage that is met by a reader: the database is set aside at once, and what is whole goes on")
    func damageDuringARun() async throws {
        try await withStore { store in
            store.register(sink: "a") {}
            for number in UInt64(1)...2000 { store.append(World.event(number)) }
            try await store.waitUntilCommitted()
            let stream = store.stream
            try store.shelves.withLock { try $0?.main?.checkpoint() }
            // Pages in the middle of the table; the cache has them not once it is closed.
            let file = try FileHandle(forUpdating: URL(filePath: folder.database))
            let pages = try file.seekToEnd() / 4096
            for page in (pages / 3)..<(pages / 3 + 4) {
                try file.seek(toOffset: page * 4096)
                try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
            }
            try file.close()
            try store.shelves.withLock { try $0?.main?.database.execute("PRAGMA shrink_memory") }
            // Throws until the database was changed for another one.
            try await eventually("readable") { (try? store.found()).map { $0.count > 100 } ?? false }
            #expect(store.stream != stream)
            store.append(World.event(2001))
            try await store.waitUntilCommitted()
            #expect(store.lastPosition == 2001)
            let keys = try store.keys()
            #expect(keys.last == "\(store.stream) 1" || keys.last == "\(store.stream) 2001")
            #expect(Set(keys).count == keys.count)
            #expect(keys.contains { $0.contains(" gap ") })
            #expect(store.trouble == nil)
        }
        #expect(folder.files.contains { $0.hasPrefix("outbox.sqlite.damaged-") })
    }

    @Test func aDamagedCursorSendsAgain() async throws {
        _ = try await fill(6)
        try Database(path: folder.database).execute("UPDATE cursor SET seq = seq + 5")
        try await withStore { store in #expect(store.cursor(of: "a") == 0) }
    }

    @Test func aRecordBehindTheEndIsNone() async throws {
        _ = try await fill(4)
        try Database(path: folder.database).execute("UPDATE outbox SET seq = 9223372036854775807 WHERE seq = 4")
        try await withStore { store in
            #expect(try store.found() == events(1...3) + [.gap(4, first: 4, last: 4)])
            store.register(sink: "a") {}
            store.append(World.event(5))
            try await store.waitUntilCommitted()
            #expect(try store.found(after: 4) == events(5...5))
        }
    }

    @Test(
        "a database that cannot be trusted is set aside",
        arguments: ["text", "zeros", "changed number", "no stream", "tables of others", "negative schema", "no table"])
    func damagedDatabases(kind: String) async throws {
        let stream = try await fill(5)
        switch kind {
        case "text":
            try Data("this is no database, but it was here before".utf8).write(to: URL(filePath: folder.database))
        case "zeros": try Data(count: 8192).write(to: URL(filePath: folder.database))
        case "changed number": try Database(path: folder.database).execute("UPDATE meta SET last = 2")
        case "no stream": try Database(path: folder.database).execute("DELETE FROM meta")
        case "tables of others":
            try FileManager.default.removeItem(atPath: folder.database)
            try Database(path: folder.database).execute("CREATE TABLE wine (year INTEGER)")
        case "negative schema": try Database(path: folder.database).execute("PRAGMA user_version = -7")
        default: try Database(path: folder.database).execute("DROP TABLE cursor")
        }
        let before = try Data(contentsOf: URL(filePath: folder.database))
        try await withStore { store in
            #expect(store.stream != stream)
            // What can still be read goes on under the new stream.
            let isGone = ["text", "zeros", "tables of others"].contains(kind)
            let last: UInt64 = isGone ? 0 : 5
            #expect(store.lastPosition == last)
            store.register(sink: "a") {}
            store.append(World.event(last + 1))
            try await store.waitUntilCommitted()
            let found = try store.found(after: isGone ? 0 : 2)
            #expect(found == (isGone ? events(1...1) : events(3...6)))
        }
        let aside = try #require(folder.files.first { $0.hasPrefix("outbox.sqlite.damaged-") }, "\(folder.files)")
        #expect(log.all.count == 1)
        #expect(log.all.first?.contains(aside) == true)
        if kind == "text" { #expect(try Data(contentsOf: URL(filePath: folder.path + "/" + aside)) == before) }
    }

    @Test func aNewerDatabaseIsSetAsideUnharmed() async throws {
        let stream = try await fill(5)
        try Database(path: folder.database).execute("PRAGMA user_version = 4")
        let before = try Data(contentsOf: URL(filePath: folder.database))
        try await withStore { store in #expect(store.stream != stream) }
        let aside = try #require(folder.files.first { $0.hasPrefix("outbox.sqlite.newer-") })
        #expect(try Data(contentsOf: URL(filePath: folder.path + "/" + aside)) == before)
        #expect(log.all.first?.contains("schema 4") == true)
    }

    @Test("octets changed at random: it opens, and every record is what it was or is named in a gap")
    func randomDamage() async throws {
        var generator = SeededGenerator("randomDamage")
        let stream = try await fill(300)
        let original = try Data(contentsOf: URL(filePath: folder.database))
        let log = try await {
            // A process that was killed leaves its write-ahead log.
            let store = try open()
            defer { store.close() }
            store.register(sink: "a") {}
            for number in UInt64(301)...320 { store.append(World.event(number)) }
            try await store.waitUntilCommitted()
            return try Data(contentsOf: URL(filePath: folder.database + "-wal"))
        }()
        let rounds = runs("BEACOND_CORRUPTIONS", 100)
        var kept = 0
        var gaps = 0
        var salvaged = 0
        for round in 0..<rounds {
            for file in folder.files { try FileManager.default.removeItem(atPath: folder.path + "/" + file) }
            let hasLog = Bool.random(using: &generator)
            let damagesLog = hasLog && Bool.random(using: &generator)
            var changed = damagesLog ? log : original
            switch round % 4 {
            case 0:
                changed[Int.random(in: 0..<changed.count, using: &generator)] ^= UInt8.random(
                    in: 1...255, using: &generator)
            case 1:
                let start = Int.random(in: 0..<changed.count, using: &generator)
                let end = min(changed.count, start + Int.random(in: 1...512, using: &generator))
                for index in start..<end { changed[index] = UInt8.random(in: 0...255, using: &generator) }
            case 2: changed.removeLast(Int.random(in: 1..<changed.count, using: &generator))
            default:
                let page = 4096
                let first = Int.random(in: 0..<changed.count / page, using: &generator) * page
                let second = Int.random(in: 0..<changed.count / page, using: &generator) * page
                let octets = changed[first..<first + page]
                changed.replaceSubrange(first..<first + page, with: Data(changed[second..<second + page]))
                changed.replaceSubrange(second..<second + page, with: Data(octets))
            }
            try (damagesLog ? original : changed).write(to: URL(filePath: folder.database))
            if hasLog { try (damagesLog ? changed : log).write(to: URL(filePath: folder.database + "-wal")) }
            try await withStore { store throws in
                if store.stream == stream {
                    kept += 1
                    #expect(store.lastPosition >= (hasLog && !damagesLog ? 320 : 300), "round \(round)")
                } else if store.lastPosition > 0 {
                    salvaged += 1
                }
                let found = try store.found()
                var next: UInt64 = 1
                for found in found {
                    switch found {
                    case .event(let sequence, let number):
                        #expect(sequence == next && number == UInt32(sequence), "round \(round)")
                        next = sequence + 1
                    case .gap(let sequence, let first, let last):
                        gaps += 1
                        #expect(first == next && last == sequence, "round \(round)")
                        next = last + 1
                    }
                }
                #expect(next == store.lastPosition + 1, "round \(round)")
            }
        }
        print("randomDamage: of \(rounds) databases \(kept) kept, \(salvaged) salvaged, \(gaps) gaps")
        #expect(kept > 0 && gaps > 0 && salvaged > 0)
    }

    // MARK: Refusals

    @Test func pathsThatCannotBe() throws {
        for path in ["/nonexistent/folder/outbox.sqlite", folder.path, "/proc/outbox.sqlite"] {
            let error = #expect(throws: StoreError.self) {
                _ = try Store(path: path, vocabulary: World.vocabulary(), log: log.function)
            }
            #expect(error?.cause == .failed)
            #expect(error?.description.contains(path) == true)
            #expect(error?.description.contains("must exist and be writable") == true)
        }
        #expect(folder.files == [])
        #expect(log.all == [])
    }

    @Test func oneStoreAFile() async throws {
        try await withStore { store in
            let error = #expect(throws: StoreError.self) { _ = try open() }
            #expect(error?.cause == .busy)
            #expect(error?.description.contains("another process uses it") == true)
            store.register(sink: "a") {}
            store.append(World.event(1))
            try await store.waitUntilCommitted()
        }
        #expect(folder.files == ["outbox.sqlite", "outbox.sqlite.reserve"])
    }
}
