// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// The tables of the outbox, for one thread at a time.
///
/// Its `seq` is a position; ``StreamSegment`` tells what number of which stream that is. What is missing between two sequence numbers is a gap: it was dropped, it expired, or it is damaged. So a gap needs
/// no record of its own, and a record that vanished for a reason that nobody knows is named as well.
final class Outbox {
    /// `user_version` of the database.
    static let schema: Int64 = 3

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

    private struct Segment {
        /// From this position on.
        var first: UInt64
        var place: StreamSegment
    }

    /// The position behind which it begins.
    let beginning: UInt64
    /// The highest position that was committed.
    private(set) var last: UInt64
    /// Everything through this one is no longer kept.
    private(set) var deleted: UInt64
    private(set) var cursors: [String: UInt64] = [:]
    /// What came from a damaged database stands behind this one. Its cursors may be among what was damaged, so a sink
    /// without one starts here and not at the end.
    private(set) var salvagedAfter: UInt64?

    /// In order; the last one is where it goes on, and has a row only once something is in it.
    private var segments: [Segment] = []
    private let seal: String
    let database: Database
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
    private let setSegment: Statement
    private let dropSegments: Statement
    /// When the age of the oldest records was last looked at.
    private var agedAt: MonotonicTime?

    /// Opens an outbox, and makes it where there is none.
    ///
    /// - Parameters:
    ///   - path: nil keeps it in memory.
    ///   - beginning: the position behind which one that is made begins.
    ///   - boot: the kernel's id of this boot.
    ///   - machine: which machine this is. A database that came from another one goes on under a new stream, because
    ///     the other may go on as well.
    init(
        path: String?, beginning: UInt64 = 0, limits: Limits, boot: String = Machine.boot, machine: String,
        vocabulary: Vocabulary
    ) throws(StoreError) {
        codec = EventCodec(vocabulary: vocabulary)
        self.limits = limits
        database = try Database(path: path)
        if database.isReadOnly { throw StoreError(.failed, "open: the file is read-only") }
        try Self.configure(database, isFile: path != nil)
        try Self.create(database, behind: beginning)
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
        setSegment = try Statement(
            database, "INSERT OR REPLACE INTO segment (first, stream, base, boot, crc) VALUES (?1, ?2, ?3, ?4, ?5)")
        dropSegments = try Statement(
            database, "DELETE FROM segment WHERE first < (SELECT max(first) FROM segment WHERE first <= ?1)")
        try Self.bind(database, to: machine)
        self.beginning = beginning
        (seal, last) = try Self.readMeta(database)

        // No commit leaves a record behind the last number; one that stands there was changed.
        let impossible = try Statement(database, "DELETE FROM outbox WHERE seq > ?1")
        impossible.bind(1, Int64(last))
        try impossible.run()
        let first = try Statement(database, "SELECT min(seq) FROM outbox WHERE seq > 0")
        let firstKept = try first.step() ? UInt64(clamping: first.integer(0)) : 0
        first.reset()
        deleted = firstKept > 0 ? firstKept - 1 : last
        try readSegments(boot)
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

    private static func create(_ database: Database, behind beginning: UInt64) throws(StoreError) {
        let version = Int64(try database.text("PRAGMA user_version") ?? "") ?? 0
        guard version < schema else { return }
        if version == 0 {
            guard try database.text("SELECT count(*) FROM sqlite_master") == "0" else {
                throw StoreError(.damaged, "it is a database of another program")
            }
        }
        try database.transaction { () throws(StoreError) in
            if version < 1 { try makeTables(database, behind: beginning) }
            if version < 2 { try addMachine(database) }
            try addSegments(database, behind: beginning)
            try database.execute("PRAGMA user_version = 3")
        }
    }

    private static func makeTables(_ database: Database, behind beginning: UInt64) throws(StoreError) {
        try database.execute(
            "CREATE TABLE meta (stream TEXT NOT NULL, last INTEGER NOT NULL, crc INTEGER NOT NULL)")
        try database.execute("CREATE TABLE outbox (seq INTEGER PRIMARY KEY, record BLOB NOT NULL)")
        try database.execute(
            "CREATE TABLE cursor (sink TEXT PRIMARY KEY, seq INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID")
        let stream = newStream()
        let meta = try Statement(database, "INSERT INTO meta (stream, last, crc) VALUES (?1, ?2, ?3)")
        meta.bind(1, stream)
        meta.bind(2, Int64(clamping: beginning))
        meta.bind(3, check(stream, beginning))
        try meta.run()
    }

    /// From schema 1 to 2: the machine, and what is remembered.
    private static func addMachine(_ database: Database) throws(StoreError) {
        try database.execute("CREATE TABLE machine (id TEXT NOT NULL)")
        try database.execute(
            "CREATE TABLE remembered (key BLOB PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID")
    }

    /// From schema 2 to 3: segments, of which there was one.
    private static func addSegments(_ database: Database, behind beginning: UInt64) throws(StoreError) {
        try database.execute(
            """
            CREATE TABLE segment (first INTEGER PRIMARY KEY, stream TEXT NOT NULL, base INTEGER NOT NULL,
                boot TEXT NOT NULL, crc INTEGER NOT NULL)
            """)
        let stream = try database.text("SELECT stream FROM meta") ?? ""
        try insertOnlySegment(database, stream: stream, behind: beginning)
    }

    private static func insertOnlySegment(
        _ database: Database, stream: String, behind base: UInt64
    ) throws(StoreError) {
        let statement = try Statement(
            database, "INSERT INTO segment (first, stream, base, boot, crc) VALUES (?1, ?2, ?3, '', ?4)")
        let segment = Segment(first: base + 1, place: StreamSegment(stream: stream, base: base, boot: ""))
        statement.bind(1, Int64(clamping: base + 1))
        statement.bind(2, stream)
        statement.bind(3, Int64(clamping: base))
        statement.bind(4, check(segment))
        try statement.run()
    }

    static func newStream() -> String {
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
            try database.execute("DELETE FROM segment")
            try insertOnlySegment(database, stream: stream, behind: 0)
        }
    }

    /// The word that goes into the check of the last position, which is the first stream's id, and the last position.
    private static func readMeta(_ database: Database) throws(StoreError) -> (seal: String, last: UInt64) {
        let meta = try Statement(database, "SELECT stream, last, crc FROM meta")
        guard try meta.step() else { throw StoreError(.damaged, "the stream id is missing") }
        let seal = meta.text(0)
        guard let last = UInt64(exactly: meta.integer(1)), meta.integer(2) == check(seal, last) else {
            throw StoreError(.damaged, "the last sequence number was changed")
        }
        return (seal, last)
    }

    private func readSegments(_ boot: String) throws(StoreError) {
        let rows = try Statement(database, "SELECT first, stream, base, boot, crc FROM segment ORDER BY first")
        while try rows.step() {
            let segment = Segment(
                first: UInt64(clamping: rows.integer(0)),
                place: StreamSegment(stream: rows.text(1), base: UInt64(clamping: rows.integer(2)), boot: rows.text(3)))
            guard segment.first > segment.place.base, rows.integer(4) == Self.check(segment) else {
                throw StoreError(.damaged, "where a stream begins was changed")
            }
            segments.append(segment)
        }
        guard let newest = segments.last, newest.first <= last + 1 else {
            throw StoreError(.damaged, "where a stream begins is missing")
        }
        guard newest.place.boot != boot else { return }
        segments.removeAll { $0.first > last }
        segments.append(
            Segment(
                first: last + 1,
                place: StreamSegment(stream: newest.place.stream, base: newest.place.base, boot: boot)))
    }

    /// Where the next transition belongs.
    var place: StreamSegment { segments[segments.count - 1].place }

    private func store(_ segment: Segment) throws(StoreError) {
        setSegment.bind(1, Int64(clamping: segment.first))
        setSegment.bind(2, segment.place.stream)
        setSegment.bind(3, Int64(clamping: segment.place.base))
        setSegment.bind(4, segment.place.boot)
        setSegment.bind(5, Self.check(segment))
        try setSegment.run()
    }

    private static func check(_ segment: Segment) -> Int64 {
        var checksum = Checksum()
        checksum.add(segment.first)
        checksum.add(segment.place.base)
        checksum.add(segment.place.stream.utf8)
        checksum.add(segment.place.boot.utf8)
        return Int64(checksum.value)
    }

    private func readCursors() throws(StoreError) {
        let rows = try Statement(database, "SELECT sink, seq, crc FROM cursor")
        while try rows.step() {
            let sink = rows.text(0)
            // A damaged cursor starts over: what is sent twice has the same key, what is not sent is lost. What every
            // sink has is deleted with the cursors that say so, so for a sink alone this is where it was.
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
    ///
    /// - Parameter overflow: what was kept in memory behind this one, or behind a later position, and comes before the
    ///   change. All of it is taken over, or nothing.
    func commit(_ change: Change, taking overflow: Outbox? = nil) throws(StoreError) -> Outcome {
        let oldSegments = segments
        do throws(StoreError) {
            return try write(change, overflow)
        } catch {
            segments = oldSegments
            throw error
        }
    }

    private func write(_ change: Change, _ overflow: Outbox?) throws(StoreError) -> Outcome {
        let newLast = max(last, max(change.last, overflow?.last ?? 0))
        let capacity = UInt64(max(1, limits.records))
        var obsolete = max(change.acknowledged, newLast > capacity ? newLast - capacity : 0)
        // Once a minute is often enough for a bound of hours.
        let now = Clock.now
        let looksAtAge = Clock.isSynchronized && agedAt.map { now - $0 > .seconds(60) } ?? true
        if looksAtAge { obsolete = max(obsolete, try agedThrough()) }
        var outcome = Outcome(deletedBefore: deleted, deleted: max(deleted, obsolete))
        try database.transaction { () throws(StoreError) in
            if let overflow { outcome.octets += try take(overflow) }
            for entry in change.entries {
                codec.encode(entry.event, sequence: entry.sequence, into: &record)
                insert.bind(1, Int64(clamping: entry.sequence))
                insert.bind(2, record)
                try insert.run()
                outcome.octets += record.count
            }
            if newLast > last {
                try setLast(newLast)
                if let newest = segments.last, newest.first > last { try store(newest) }
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
            // Those of what expired stay: a gap is named by its stream.
            if segments.count > 1, segments[1].first <= change.acknowledged {
                dropSegments.bind(1, Int64(clamping: change.acknowledged))
                try dropSegments.run()
            }
            if obsolete > deleted { try delete(through: obsolete) }
            while try octetsInUse() > limits.octets, obsolete < newLast {
                obsolete = min(newLast, max(obsolete, deleted) + 256)
                try delete(through: obsolete)
            }
        }
        outcome.deleted = max(deleted, obsolete)
        if looksAtAge { agedAt = now }
        while segments.count > 1, segments[1].first <= change.acknowledged { segments.removeFirst() }
        last = newLast
        deleted = outcome.deleted
        return outcome
    }

    private func setLast(_ position: UInt64) throws(StoreError) {
        setLast.bind(1, Int64(clamping: position))
        setLast.bind(2, Self.check(seal, position))
        try setLast.run()
    }

    /// Copies all records and segments of another one.
    ///
    /// - Returns: octets of the records.
    private func take(_ other: Outbox) throws(StoreError) -> Int {
        var octets = 0
        other.select.bind(1, 0)
        other.select.bind(2, Int64(clamping: other.last))
        other.select.bind(3, .max)
        defer { other.select.reset() }
        while try other.select.step() {
            let record = other.select.octets(1)
            insert.bind(1, other.select.integer(0))
            insert.bind(2, record)
            try insert.run()
            octets += record.count
        }
        segments.removeAll { $0.first > last }
        for segment in other.segments { try store(segment) }
        segments += other.segments
        return octets
    }

    /// Moves what the write-ahead log holds into the database, so that the room of the log can be used again.
    func checkpoint() throws(StoreError) { try database.execute("PRAGMA wal_checkpoint(RESTART)") }

    /// How many records it holds.
    var count: UInt64 { last - min(deleted, last) }

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
            try setLast(end)
            for segment in segments { try store(segment) }
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

    /// What was read: of one segment.
    struct Reading {
        var place: StreamSegment
        var entries: [Entry] = []
        /// Records that failed their check.
        var damaged = 0
    }

    /// At most `limit` entries of the segment that comes behind a position, in order and without a hole: a gap stands at
    /// the last position that it says is missing.
    func read(after position: UInt64, limit: Int) throws(StoreError) -> Reading? {
        guard position < last, limit > 0 else { return nil }
        let index = segments.lastIndex { $0.first <= position + 1 } ?? 0
        // Segments go once every sink is behind them: before the first one, nobody misses anything.
        let position = max(position, segments[index].first - 1)
        let end = index + 1 < segments.count ? min(last, segments[index + 1].first - 1) : last
        var reading = Reading(place: segments[index].place)
        var rows = 0
        var scanned = position
        select.bind(1, Int64(clamping: position))
        select.bind(2, Int64(clamping: end))
        select.bind(3, Int64(limit))
        while try select.step() {
            rows += 1
            scanned = UInt64(clamping: select.integer(0))
            if let event = codec.decode(select.octets(1), sequence: scanned) {
                reading.fillGap(after: position, before: scanned)
                reading.entries.append(Entry(sequence: scanned, event: event))
            } else {
                reading.damaged += 1
            }
        }
        reading.fillGap(after: position, before: (rows < limit ? end : scanned) + 1)
        reading.entries.removeLast(max(0, reading.entries.count - limit))
        return reading
    }
}

extension Outbox.Reading {
    /// Appends a gap when something is missing between the last entry and `next`.
    fileprivate mutating func fillGap(after position: UInt64, before next: UInt64) {
        let first = (entries.last?.sequence ?? position) + 1
        guard first < next else { return }
        var event = Event(kind: .gap, time: .zero)
        event.gap = (first - place.base, next - 1 - place.base)
        event.wallTime = Clock.wall
        event.isClockSynchronized = Clock.isSynchronized
        entries.append(Outbox.Entry(sequence: next - 1, event: event))
    }
}
