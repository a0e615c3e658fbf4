// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// The tables of the outbox, for one thread at a time.
///
/// What is missing between two sequence numbers is a gap: it was dropped, it expired, or it is damaged. So a gap needs
/// no record of its own, and a record that vanished for a reason that nobody knows is named as well.
final class Outbox {
    /// `user_version` of the database.
    static let schema: Int64 = 2

    struct Entry: Sendable {
        var sequence: UInt64
        var event: Event
    }

    /// How much it keeps for sinks that do not come; beyond, the oldest go first.
    struct Limits: Sendable {
        /// Sequence numbers that it spans.
        var records = Int.max
        /// Octets of the database's pages in use.
        var octets = Int64.max
        /// How old a record may be, by wall times that were stamped by a synchronised clock.
        var age = TimeInterval.seconds(1 << 32)
    }

    /// What one transaction writes.
    struct Change: Sendable {
        /// In order of their sequence numbers.
        var entries: [Entry] = []
        /// The highest sequence number that was given away, whether its event is among the entries or was dropped.
        var last: UInt64 = 0
        var cursors: [(sink: String, sequence: UInt64)] = []
        /// Every sink has everything through this one.
        var acknowledged: UInt64 = 0
        /// Blobs to keep by key; nil for one to drop.
        var remembered: [[UInt8]: [UInt8]?] = [:]
        /// Sinks whose cursors go.
        var forgotten: [String] = []
    }

    /// What a transaction did.
    struct Outcome {
        /// Of the records that were written.
        var octets = 0
        /// Everything through these was no longer kept before, and is not now.
        var deletedBefore: UInt64
        var deleted: UInt64
    }

    let stream: String
    /// The highest sequence number that was committed.
    private(set) var last: UInt64
    /// Everything through this one is no longer kept.
    private(set) var deleted: UInt64
    private(set) var cursors: [String: UInt64] = [:]
    /// What came from a damaged database stands behind this one. Its cursors may be among what was damaged, so a sink
    /// without one starts here and not at the end.
    private(set) var salvagedAfter: UInt64?

    private let database: Database
    private let codec: EventCodec
    private let limits: Limits
    private var record: [UInt8] = []
    private let insert: Statement
    private let delete: Statement
    private let setLast: Statement
    private let setCursor: Statement
    private let select: Statement
    private let setRemembered: Statement
    private let dropRemembered: Statement
    private let dropCursor: Statement
    private let oldest: Statement
    /// When the age of the oldest records was last looked at.
    private var agedAt: MonotonicTime?

    /// Opens an outbox, and makes it where there is none.
    ///
    /// - Parameters:
    ///   - path: nil keeps it in memory.
    ///   - machine: which machine this is. A database that came from another one goes on under a new stream, because
    ///     the other may go on as well.
    init(path: String?, limits: Limits, machine: String, vocabulary: Vocabulary) throws(StoreError) {
        codec = EventCodec(vocabulary: vocabulary)
        self.limits = limits
        database = try Database(path: path)
        if database.isReadOnly { throw StoreError(.failed, "open: the file is read-only") }
        try Self.configure(database, isFile: path != nil)
        try Self.create(database)
        insert = try Statement(database, "INSERT INTO outbox (seq, record) VALUES (?1, ?2)")
        delete = try Statement(database, "DELETE FROM outbox WHERE seq <= ?1")
        setLast = try Statement(database, "UPDATE meta SET last = ?1, crc = ?2")
        setCursor = try Statement(database, "INSERT OR REPLACE INTO cursor (sink, seq, crc) VALUES (?1, ?2, ?3)")
        select = try Statement(
            database, "SELECT seq, record FROM outbox WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3")
        setRemembered = try Statement(
            database, "INSERT OR REPLACE INTO remembered (key, value, crc) VALUES (?1, ?2, ?3)")
        dropRemembered = try Statement(database, "DELETE FROM remembered WHERE key = ?1")
        dropCursor = try Statement(database, "DELETE FROM cursor WHERE sink = ?1")
        oldest = try Statement(database, "SELECT seq, record FROM outbox ORDER BY seq LIMIT 1000")
        try Self.bind(database, to: machine)
        (stream, last) = try Self.readMeta(database)

        // No commit leaves a record behind the last number; one that stands there was changed.
        let impossible = try Statement(database, "DELETE FROM outbox WHERE seq > ?1")
        impossible.bind(1, Int64(last))
        try impossible.run()
        let first = try Statement(database, "SELECT min(seq) FROM outbox WHERE seq > 0")
        let firstKept = try first.step() ? UInt64(clamping: first.integer(0)) : 0
        first.reset()
        deleted = firstKept > 0 ? firstKept - 1 : last
        try readCursors()
    }

    // MARK: Opening

    private static func configure(_ database: Database, isFile: Bool) throws(StoreError) {
        // A person who looks at the file for a moment is no reason to fail.
        try database.execute("PRAGMA busy_timeout = 2000")
        // Before anything is written: a newer database stays as it is.
        let version = Int64(try database.text("PRAGMA user_version") ?? "") ?? 0
        if version > schema { throw StoreError(.newer, "it has schema \(version), this program knows \(schema)") }
        if version < 0 { throw StoreError(.damaged, "it has schema \(version)") }
        guard isFile else { return }
        // Nobody else writes sequence numbers into this stream, and no shared memory file is needed.
        try database.execute("PRAGMA locking_mode = EXCLUSIVE")
        let mode = try database.text("PRAGMA journal_mode = WAL")
        guard mode == "wal" else {
            throw StoreError(.failed, "open: no write-ahead log here, but \(mode ?? "nothing")")
        }
        try database.execute("PRAGMA synchronous = FULL")
        guard try database.text("PRAGMA synchronous") == "2" else {
            throw StoreError(.failed, "open: SQLite does not wait for the disk (synchronous is not FULL)")
        }
        let check = try database.text("PRAGMA quick_check(1)")
        guard check == "ok" else { throw StoreError(.damaged, check ?? "quick_check says nothing") }
    }

    private static func create(_ database: Database) throws(StoreError) {
        let version = try database.text("PRAGMA user_version")
        if version == "1" { return try database.transaction { () throws(StoreError) in try migrate(database) } }
        guard version == "0" else { return }
        guard try database.text("SELECT count(*) FROM sqlite_master") == "0" else {
            throw StoreError(.damaged, "it is a database of another program")
        }
        try database.transaction { () throws(StoreError) in
            try database.execute(
                "CREATE TABLE meta (stream TEXT NOT NULL, last INTEGER NOT NULL, crc INTEGER NOT NULL)")
            try database.execute("CREATE TABLE outbox (seq INTEGER PRIMARY KEY, record BLOB NOT NULL)")
            try database.execute(
                "CREATE TABLE cursor (sink TEXT PRIMARY KEY, seq INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID")
            let stream = newStream()
            let meta = try Statement(database, "INSERT INTO meta (stream, last, crc) VALUES (?1, 0, ?2)")
            meta.bind(1, stream)
            meta.bind(2, check(stream, 0))
            try meta.run()
            try migrate(database)
        }
    }

    /// From schema 1 to 2: the machine, and what is remembered.
    private static func migrate(_ database: Database) throws(StoreError) {
        try database.execute("CREATE TABLE machine (id TEXT NOT NULL)")
        try database.execute(
            "CREATE TABLE remembered (key BLOB PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID")
        try database.execute("PRAGMA user_version = 2")
    }

    private static func newStream() -> String {
        var generator = SystemRandomNumberGenerator()
        return Hexadecimal.text((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    private static func bind(_ database: Database, to machine: String) throws(StoreError) {
        let known = try database.text("SELECT id FROM machine")
        guard known != machine else { return }
        let last = try readMeta(database).last
        try database.transaction { () throws(StoreError) in
            try database.execute("DELETE FROM machine")
            let insert = try Statement(database, "INSERT INTO machine (id) VALUES (?1)")
            insert.bind(1, machine)
            try insert.run()
            // A database of schema 1 does not say where it was; it stays what it is.
            guard known != nil else { return }
            let stream = newStream()
            let update = try Statement(database, "UPDATE meta SET stream = ?1, crc = ?2")
            update.bind(1, stream)
            update.bind(2, check(stream, last))
            try update.run()
        }
    }

    private static func readMeta(_ database: Database) throws(StoreError) -> (stream: String, last: UInt64) {
        let meta = try Statement(database, "SELECT stream, last, crc FROM meta")
        guard try meta.step() else { throw StoreError(.damaged, "the stream id is missing") }
        let stream = meta.text(0)
        guard let last = UInt64(exactly: meta.integer(1)), meta.integer(2) == check(stream, last) else {
            throw StoreError(.damaged, "the last sequence number was changed")
        }
        return (stream, last)
    }

    private func readCursors() throws(StoreError) {
        let rows = try Statement(database, "SELECT sink, seq, crc FROM cursor")
        while try rows.step() {
            let sink = rows.text(0)
            // A damaged cursor starts over: what is sent twice has the same key, what is not sent is lost.
            let sequence = UInt64(exactly: rows.integer(1)) ?? 0
            cursors[sink] = rows.integer(2) == Self.check(sink, sequence) ? min(sequence, last) : deleted
        }
    }

    private static func check(_ text: String, _ sequence: UInt64) -> Int64 {
        var checksum = Checksum()
        checksum.add(sequence)
        checksum.add(text.utf8)
        return Int64(checksum.value)
    }

    // MARK: Writing

    /// Commits a change and deletes what nobody needs, or what there is no room for.
    func commit(_ change: Change) throws(StoreError) -> Outcome {
        let newLast = max(last, change.last)
        let capacity = UInt64(max(1, limits.records))
        var obsolete = max(change.acknowledged, newLast > capacity ? newLast - capacity : 0)
        // Once a minute is often enough for a bound of hours.
        let now = Clock.now
        let looksAtAge = Clock.isSynchronized && agedAt.map { now - $0 > .seconds(60) } ?? true
        if looksAtAge { obsolete = max(obsolete, try agedThrough()) }
        var outcome = Outcome(deletedBefore: deleted, deleted: max(deleted, obsolete))
        try database.transaction { () throws(StoreError) in
            for entry in change.entries {
                codec.encode(entry.event, sequence: entry.sequence, into: &record)
                insert.bind(1, Int64(clamping: entry.sequence))
                insert.bind(2, record)
                try insert.run()
                outcome.octets += record.count
            }
            if newLast > last {
                setLast.bind(1, Int64(clamping: newLast))
                setLast.bind(2, Self.check(stream, newLast))
                try setLast.run()
            }
            for sink in change.forgotten {
                dropCursor.bind(1, sink)
                try dropCursor.run()
            }
            for cursor in change.cursors {
                setCursor.bind(1, cursor.sink)
                setCursor.bind(2, Int64(clamping: cursor.sequence))
                setCursor.bind(3, Self.check(cursor.sink, cursor.sequence))
                try setCursor.run()
            }
            for (key, value) in change.remembered { try remember(key, value) }
            if obsolete > deleted { try delete(through: obsolete) }
            while try octetsInUse() > limits.octets, obsolete < newLast {
                obsolete = min(newLast, max(obsolete, deleted) + 256)
                try delete(through: obsolete)
            }
        }
        outcome.deleted = max(deleted, obsolete)
        if looksAtAge { agedAt = now }
        last = newLast
        deleted = outcome.deleted
        return outcome
    }

    private func delete(through sequence: UInt64) throws(StoreError) {
        delete.bind(1, Int64(clamping: sequence))
        try delete.run()
    }

    private func octetsInUse() throws(StoreError) -> Int64 {
        func number(_ sql: StaticString) throws(StoreError) -> Int64 { Int64(try database.text(sql) ?? "") ?? 0 }
        return try (number("PRAGMA page_count") - number("PRAGMA freelist_count")) * number("PRAGMA page_size")
    }

    /// Through which sequence number the records are too old. A record that was stamped before the clock was
    /// synchronised, or is damaged, is as old as the next one.
    private func agedThrough() throws(StoreError) -> UInt64 {
        defer { oldest.reset() }
        let limit = Clock.wall.milliseconds - limits.age.nanoseconds / 1_000_000
        var aged: UInt64 = 0
        while try oldest.step() {
            let sequence = UInt64(clamping: oldest.integer(0))
            guard let event = codec.decode(oldest.octets(1), sequence: sequence), event.isClockSynchronized else {
                continue
            }
            guard event.wallTime.milliseconds < limit else { break }
            aged = sequence
        }
        return aged
    }

    // MARK: What is remembered

    private func remember(_ key: [UInt8], _ value: [UInt8]?) throws(StoreError) {
        guard let value else {
            dropRemembered.bind(1, key)
            return try dropRemembered.run()
        }
        setRemembered.bind(1, key)
        setRemembered.bind(2, value)
        setRemembered.bind(3, Self.check(key, value))
        try setRemembered.run()
    }

    /// The blobs that are what they were when they were written.
    func remembered() throws(StoreError) -> [(key: [UInt8], value: [UInt8])] {
        var found: [(key: [UInt8], value: [UInt8])] = []
        let rows = try Statement(database, "SELECT key, value, crc FROM remembered")
        while try rows.step() {
            let (key, value) = (rows.octets(0), rows.octets(1))
            if rows.integer(2) == Self.check(key, value) { found.append((key, value)) }
        }
        return found
    }

    private static func check(_ key: [UInt8], _ value: [UInt8]) -> Int64 {
        var checksum = Checksum()
        checksum.add(UInt64(key.count))
        checksum.add(key)
        checksum.add(value)
        return Int64(checksum.value)
    }

    // MARK: Salvage

    /// Takes over, under this stream and with their numbers, the records of a damaged database that are what they
    /// were. What is missing between them is a gap, as always.
    ///
    /// - Returns: how many there were.
    func salvage(path: String) throws(StoreError) -> Int {
        let damaged = try Database(path: path)
        var taken: Set<UInt64> = []
        var end = (try? Self.readMeta(damaged))?.last ?? 0
        try database.transaction { () throws(StoreError) in
            // From both ends, up to the page that cannot be read.
            for sql: StaticString in [
                "SELECT seq, record FROM outbox ORDER BY seq", "SELECT seq, record FROM outbox ORDER BY seq DESC",
            ] {
                guard let rows = try? Statement(damaged, sql) else { continue }
                while (try? rows.step()) == true {
                    let (sequence, record) = (UInt64(clamping: rows.integer(0)), rows.octets(1))
                    guard sequence > 0, !taken.contains(sequence),
                        codec.decode(record, sequence: sequence) != nil
                    else { continue }
                    insert.bind(1, Int64(clamping: sequence))
                    insert.bind(2, record)
                    try insert.run()
                    taken.insert(sequence)
                }
            }
            end = max(end, taken.max() ?? 0)
            setLast.bind(1, Int64(clamping: end))
            setLast.bind(2, Self.check(stream, end))
            try setLast.run()
        }
        last = end
        // What stood before the first was acknowledged, as far as anybody knows.
        deleted = taken.min().map { $0 - 1 } ?? end
        if !taken.isEmpty { salvagedAfter = deleted }
        var known: [(sink: String, sequence: UInt64)] = []
        if let rows = try? Statement(damaged, "SELECT sink, seq, crc FROM cursor") {
            while (try? rows.step()) == true {
                let sequence = UInt64(exactly: rows.integer(1)) ?? 0
                let isWhole = rows.integer(2) == Self.check(rows.text(0), sequence)
                known.append((rows.text(0), isWhole ? min(sequence, end) : deleted))
            }
        }
        for cursor in known { cursors[cursor.sink] = cursor.sequence }
        var change = Change()
        change.cursors = known
        _ = try commit(change)
        return taken.count
    }

    // MARK: Reading

    /// At most `limit` entries of what comes behind `sequence`, in order and without a hole: a gap stands at the last
    /// sequence number that it says is missing. Also, how many records were damaged.
    func read(after sequence: UInt64, limit: Int) throws(StoreError) -> (entries: [Entry], damaged: Int) {
        guard sequence < last, limit > 0 else { return ([], 0) }
        var entries: [Entry] = []
        var damaged = 0
        var rows = 0
        var scanned = sequence
        select.bind(1, Int64(clamping: sequence))
        select.bind(2, Int64(clamping: last))
        select.bind(3, Int64(limit))
        while try select.step() {
            rows += 1
            scanned = UInt64(clamping: select.integer(0))
            if let event = codec.decode(select.octets(1), sequence: scanned) {
                Self.fillGap(&entries, after: sequence, before: scanned)
                entries.append(Entry(sequence: scanned, event: event))
            } else {
                damaged += 1
            }
        }
        Self.fillGap(&entries, after: sequence, before: (rows < limit ? last : scanned) + 1)
        return (Array(entries.prefix(limit)), damaged)
    }

    /// Appends a gap when something is missing between the last entry and `next`.
    private static func fillGap(_ entries: inout [Entry], after sequence: UInt64, before next: UInt64) {
        let first = (entries.last?.sequence ?? sequence) + 1
        guard first < next else { return }
        var event = Event(kind: .gap, time: .zero)
        event.gap = (first, next - 1)
        event.wallTime = Clock.wall
        event.isClockSynchronized = Clock.isSynchronized
        entries.append(Entry(sequence: next - 1, event: event))
    }
}
