// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Glibc
import LinuxIO
import Synchronization

/// The outbox of transitions: an SQLite database with one thread that writes it.
///
/// The loop appends, durable sinks read behind their cursors, live or late, on one path. A sink sees a transition only
/// after the disk has it. The key of a transition is (gateway, stream, sequence number); sequence numbers start at
/// 1, rise by one and are never used again within a stream. The store itself counts by position, across streams: see
/// ``StreamSegment``.
///
/// When the disk cannot be written, transitions go on in memory under a stream of their own, behind those that the disk
/// has, and move into the database once it can be written again.
///
/// ``close()`` must be called: until then the writer keeps the store alive.
public final class Store: Sendable {
    /// Sizes, apart from the code so that tests can reach them.
    struct Limits: Sendable {
        /// Sequence numbers that the outbox spans.
        var records = Int.max
        /// Octets that a file holds. A record and its row take about 150, so this is five days of a transition a second.
        var octets: Int64 = 64 << 20
        /// How old a record may become.
        var age = TimeInterval.seconds(30 * 86_400)
        /// Without a file, all of it is memory: about 2.5 MB.
        var recordsInMemory = 16_384
        /// Transitions that wait for the writer: four seconds of a thousand a second while a disk stalls.
        var queue = 4096

        var ofFile: Outbox.Limits { .init(records: records, octets: octets, age: age) }
    }

    struct Sink {
        var cursor: UInt64
        /// The database does not know the cursor yet.
        var isDirty = false
        /// nil for a sink of an earlier run.
        var wake: (@Sendable () -> Void)?
    }

    /// Where transitions are. What is in the first comes before what is in the second.
    struct Shelves {
        /// The database; nil while it cannot be opened.
        var main: Outbox?
        /// What the disk did not take.
        var overflow: Outbox?
    }

    struct State {
        /// Where the next transition belongs.
        var stream: String
        /// Why transitions are kept in memory only.
        var trouble: String?
        /// A reader met damage.
        var isDamaged = false
        var queue: [Outbox.Entry] = []
        /// The last position that was given away.
        var last: UInt64
        var sinks: [String: Sink]
        var counters = StoreCounters()
        /// What the database does not know yet.
        var remembered: [[UInt8]: [UInt8]?] = [:]
        var forgotten: [String] = []
        var isClosing = false
        /// The caller is about to append or remember more that belongs to what it appended.
        var isTurnOpen = false
        /// The writer sleeps and does not know of the turn.
        var wakesAtTurnEnd = false
        /// Commit without gathering: somebody waits.
        var isFlushing = false
    }

    let log: @Sendable (LogLevel, String) -> Void
    let limits: Limits
    /// nil in memory.
    let path: String?
    let machine: String
    let vocabulary: Vocabulary
    /// nil once it is closed. Held while the disk works: never lock it on the loop's thread.
    let shelves: Mutex<Shelves?>
    let state: Mutex<State>
    let signal: EventDescriptor
    private let salvagedAfter: UInt64?
    let committedLast: Atomic<UInt64>
    let lastTurn: Atomic<Int64>
    private let thread: Mutex<Thread?>

    /// Opens the outbox and starts its writer.
    ///
    /// - Parameters:
    ///   - path: the database; it is made where there is none, its folder is not. A damaged one or one of a newer
    ///     version is renamed and a new one is made. nil keeps the outbox in memory, under a new stream each time.
    ///   - machine: which machine this is, so that copies of one database on two machines never share a stream.
    ///   - maximumOctets: of the database; beyond, the oldest transitions go first.
    ///   - maximumAge: beyond which a transition goes, whether every sink had it or not.
    ///   - log: called on the writer's thread and by ``read(after:limit:_:)``.
    public convenience init(
        path: String?, vocabulary: Vocabulary, machine: String = "", maximumOctets: Int64? = nil,
        maximumAge: TimeInterval? = nil, log: @escaping @Sendable (LogLevel, String) -> Void
    ) throws(StoreError) {
        var limits = Limits()
        if let maximumOctets { limits.octets = maximumOctets }
        if let maximumAge { limits.age = maximumAge }
        try self.init(path: path, vocabulary: vocabulary, limits: limits, machine: machine, log: log)
    }

    init(
        path: String?, vocabulary: Vocabulary, limits: Limits, machine: String = "",
        log: @escaping @Sendable (LogLevel, String) -> Void
    ) throws(StoreError) {
        self.log = log
        self.limits = limits
        self.path = path
        self.machine = machine
        self.vocabulary = vocabulary
        let shelves = try Self.open(path, limits, machine, vocabulary, log)
        guard let outbox = shelves.main ?? shelves.overflow else { throw StoreError(.closed, "there is no outbox") }
        salvagedAfter = outbox.salvagedAfter
        committedLast = Atomic(outbox.last)
        lastTurn = Atomic(Clock.now.nanoseconds)
        var state = State(
            stream: outbox.place.stream, last: outbox.last, sinks: outbox.cursors.mapValues { Sink(cursor: $0) })
        if shelves.main == nil { state.trouble = "the disk cannot be written" }
        // The loop does not allocate: the room is there from the start, and costs memory only once it is used.
        state.queue.reserveCapacity(limits.queue)
        self.state = Mutex(state)
        self.shelves = Mutex(shelves)
        thread = Mutex(nil)
        do throws(SystemError) {
            signal = try EventDescriptor()
        } catch {
            throw StoreError(.failed, "cannot start the outbox: \(error)")
        }
        do throws(SystemError) {
            try thread.withLock { thread throws(SystemError) in
                thread = try Thread(name: "store") {
                    var writer = Writer(store: self)
                    writer.run()
                }
            }
        } catch {
            throw StoreError(.failed, "cannot start the outbox: \(error)")
        }
    }

    /// A disk that cannot be written, because it is full or mounted read-only, is no reason not to start: transitions
    /// are kept in memory until it can. Any other reason is a fault of the configuration that a person has to know of.
    private static func open(
        _ path: String?, _ limits: Limits, _ machine: String, _ vocabulary: Vocabulary,
        _ log: @Sendable (LogLevel, String) -> Void
    ) throws(StoreError) -> Shelves {
        guard let path else {
            return Shelves(main: try inMemory(behind: 0, limits, vocabulary))
        }
        func file() throws(StoreError) -> Outbox {
            try OutboxFile.open(path: path, limits: limits.ofFile, machine: machine, vocabulary: vocabulary, log: log)
        }
        do throws(StoreError) {
            return Shelves(main: try file())
        } catch {
            guard error.cause == .full || Machine.room(for: path).isReadOnly else { throw error }
            var reserve = SpaceReserve(path: path + ".reserve")
            if reserve.release(), let outbox = try? file() { return Shelves(main: outbox) }
            let overflow = try inMemory(behind: 0, limits, vocabulary)
            log(.error, "\(error); until then transitions are kept in memory and are lost with the process")
            return Shelves(overflow: overflow)
        }
    }

    static func inMemory(
        behind position: UInt64, _ limits: Limits, _ vocabulary: Vocabulary
    ) throws(StoreError) -> Outbox {
        try Outbox(
            path: nil, beginning: position, limits: .init(records: limits.recordsInMemory), machine: "",
            vocabulary: vocabulary)
    }

    // MARK: The loop

    /// Hands over a transition that is stamped with its wall time. Never waits for the disk; when the queue is full
    /// the transition is dropped, and its sequence number becomes part of a gap.
    ///
    /// - Parameter opensTurn: what is appended and remembered from here to ``endTurn()`` is committed together.
    /// - Returns: its position.
    @discardableResult
    public func append(_ event: Event, opensTurn: Bool = false) -> UInt64 {
        let (position, wakes) = state.withLock { state in
            state.last += 1
            state.counters.appended += 1
            state.isTurnOpen = state.isTurnOpen || opensTurn
            guard state.queue.count < limits.queue else {
                state.counters.dropped += 1
                return (state.last, false)
            }
            state.queue.append(Outbox.Entry(sequence: state.last, event: event))
            state.counters.pending += 1
            let wasEmpty = state.queue.count == 1
            if opensTurn { state.wakesAtTurnEnd = state.wakesAtTurnEnd || wasEmpty }
            return (state.last, wasEmpty && !opensTurn)
        }
        if wakes { signal.signal() }
        return position
    }

    /// The end of a turn of the caller, if one was open: now it may be committed.
    public func endTurn() {
        let wakes = state.withLock { state in
            defer { (state.isTurnOpen, state.wakesAtTurnEnd) = (false, false) }
            return state.wakesAtTurnEnd
        }
        if wakes { signal.signal() }
    }

    /// Has everything committed that was appended, and waits for it until the deadline, on `CLOCK_MONOTONIC`.
    ///
    /// - Returns: whether all of it is committed.
    @discardableResult
    public func flush(until deadline: MonotonicTime) -> Bool {
        state.withLock { $0.isFlushing = true }
        defer { state.withLock { $0.isFlushing = false } }
        while counters.pending > 0 {
            signal.signal()
            guard Clock.now < deadline else { return false }
            // A commit takes milliseconds; who flushes is about to end and has nothing else to do.
            usleep(2000)
        }
        return true
    }

    // MARK: Sinks

    /// Makes a sink known, before the first transition that it must not miss is appended.
    ///
    /// A sink that this outbox has seen before goes on behind its cursor, whatever happened in between. One that is
    /// new starts at the present end of the stream, at the first transition that is not committed yet; in a new
    /// database that is the beginning. From then on everything is kept for it until it is acknowledged or expires.
    ///
    /// - Parameter wake: called on the writer's thread, without a lock, after each commit that has something for the
    ///   sink; it must not wait. What was committed before is there to be read at once.
    public func register(sink: String, wake: @escaping @Sendable () -> Void) {
        let start = salvagedAfter ?? lastPosition
        state.withLock { $0.sinks[sink, default: Sink(cursor: start, isDirty: true)].wake = wake }
    }

    /// The last position that a sink has acknowledged; 0 for none, and for a sink that is not known.
    public func cursor(of sink: String) -> UInt64 {
        state.withLock { $0.sinks[sink]?.cursor ?? 0 }
    }

    /// Calls `body` for what was committed behind a position, in order: at most `limit` transitions of one segment.
    ///
    /// There are no holes: what is missing is an event of kind ``Event/Kind/gap`` that stands at the last missing
    /// position and is stamped with the moment at which it was noticed. May wait for the disk. Throws when the disk
    /// cannot be read, or after ``close()``.
    ///
    /// - Parameter limit: calls at most.
    public func read(
        after position: UInt64, limit: Int, _ body: (StreamSegment, UInt64, Event) -> Void
    ) throws(StoreError) {
        let reading: Outbox.Reading?
        do throws(StoreError) {
            reading = try shelves.withLock { shelves throws(StoreError) in
                guard let shelves else { throw StoreError(.closed, "the outbox is closed") }
                if let main = shelves.main, position < main.last { return try main.read(after: position, limit: limit) }
                guard let overflow = shelves.overflow, position >= overflow.beginning else { return nil }
                return try overflow.read(after: position, limit: limit)
            }
        } catch {
            if error.cause == .damaged {
                state.withLock { $0.isDamaged = true }
                signal.signal()
            }
            throw error
        }
        guard let reading else { return }
        if reading.damaged > 0 {
            state.withLock { $0.counters.damaged += UInt64(reading.damaged) }
            log(.error, "the outbox holds damaged records: sinks get a gap event for them; check the disk")
        }
        for entry in reading.entries { body(reading.place, entry.sequence, entry.event) }
    }

    /// Moves a sink's cursor forward, never back. It rides along with the next commit, which comes within a second;
    /// after a crash before that, what it covered is sent again.
    public func acknowledge(sink: String, through seq: UInt64) {
        let end = lastPosition
        state.withLock { state in
            guard let cursor = state.sinks[sink]?.cursor, min(seq, end) > cursor else { return }
            state.sinks[sink]?.cursor = min(seq, end)
            state.sinks[sink]?.isDirty = true
        }
    }

    /// Keeps nothing more for a sink that is no longer configured and has ended.
    public func forget(sink: String) {
        state.withLock { state in
            guard state.sinks.removeValue(forKey: sink) != nil else { return }
            state.forgotten.append(sink)
        }
    }

    /// The sinks whose cursors are kept, of this run and of earlier ones.
    public var knownSinks: [String] { state.withLock { $0.sinks.keys.sorted() } }

    // MARK: Memory of the caller

    /// Keeps a small value by key until it is replaced or, by nil, dropped. It rides along with the next commit, or is
    /// committed alone within a minute; until then it may be lost. Call it rarely: on change, not per sighting.
    public func remember(key: [UInt8], value: [UInt8]?) {
        state.withLock { $0.remembered[key] = .some(value) }
    }

    /// What was kept by an earlier run and is whole; nothing after the database was set aside. May wait for the disk.
    public func remembered() -> [(key: [UInt8], value: [UInt8])] {
        shelves.withLock { shelves in shelves?.main.flatMap { try? $0.remembered() } ?? [] }
    }

    // MARK: Health

    /// The stream to which the next transition belongs: 32 hexadecimal digits, random, made with each new database and
    /// each time that the disk cannot be written.
    public var stream: String { state.withLock { $0.stream } }

    /// Why transitions are kept in memory only; nil when the disk takes them.
    public var trouble: String? { state.withLock { $0.trouble } }

    /// The highest committed position; 0 for none.
    public var lastPosition: UInt64 { committedLast.load(ordering: .acquiring) }

    /// What the store did since it was opened.
    public var counters: StoreCounters { state.withLock { $0.counters } }

    /// When the writer last turned, on `CLOCK_MONOTONIC`: every second even when it is idle. A disk that takes long
    /// shows here.
    public var heartbeat: MonotonicTime { MonotonicTime(nanoseconds: lastTurn.load(ordering: .relaxed)) }

    /// Commits what is pending, ends the writer and closes the database. What is appended afterwards is
    /// lost; further calls do nothing.
    public func close() {
        state.withLock { ($0.isClosing, $0.isTurnOpen) = (true, false) }
        signal.signal()
        guard let writer = thread.withLock({ $0.take() }) else { return }
        writer.join()
        shelves.withLock { $0 = nil }
    }
}
