// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Glibc
import LinuxIO
import SinkKit
import SinkRuntime
import Store
import Synchronization

/// What a ``ScriptedSink`` does and what was done to it.
final class Script: Sendable {
    struct Record {
        var calls: [String] = []
        /// What the destination has, in order.
        var written: [Delivery] = []
        /// The stream of each of them.
        var streams: [String] = []
        var rejected: [Delivery] = []
    }

    private static let scripts = Mutex<[String: Script]>([:])

    let name: String
    let onOpen: @Sendable (_ attempt: Int) -> SinkError?
    /// What a write of these deliveries leads to; may wait, to play a sink that hangs.
    let onWrite: @Sendable ([Delivery]) -> SinkError?
    let onIdle: @Sendable () -> SinkError?
    private let state = Mutex((record: Record(), opens: 0))

    init(
        _ name: String, onOpen: @escaping @Sendable (Int) -> SinkError? = { _ in nil },
        onWrite: @escaping @Sendable ([Delivery]) -> SinkError? = { _ in nil },
        onIdle: @escaping @Sendable () -> SinkError? = { nil }
    ) {
        self.name = name
        self.onOpen = onOpen
        self.onWrite = onWrite
        self.onIdle = onIdle
        Self.scripts.withLock { $0[name] = self }
    }

    static func named(_ name: String) -> Script? { scripts.withLock { $0[name] } }

    var record: Record { state.withLock { $0.record } }
    var written: [Delivery] { record.written }

    func note(_ call: String) { state.withLock { $0.record.calls.append(call) } }

    func nextOpen() -> Int {
        state.withLock {
            $0.opens += 1
            return $0.opens
        }
    }

    func take(_ deliveries: [Delivery], _ error: SinkError?, stream: String) {
        state.withLock { state in
            defer {
                let more = state.record.written.count - state.record.streams.count
                state.record.streams += Array(repeating: stream, count: more)
            }
            state.record.calls.append("write \(deliveries.count)")
            switch error?.disposition {
            case nil: state.record.written += deliveries
            case .retry(let accepted), .busy(let accepted), .disconnected(let accepted):
                state.record.written += deliveries.prefix(accepted)
            case .reject(let accepted):
                state.record.written += deliveries.prefix(accepted)
                state.record.rejected += deliveries.dropFirst(accepted).prefix(1)
            case .finished: break
            }
        }
    }
}

protocol SinkTraits: SendableMetatype {
    static var roles: DeliveryRoles { get }
    static var isDurable: Bool { get }
    static var servicesConnection: Bool { get }
    static var showsUnknown: Bool { get }
}

extension SinkTraits {
    static var roles: DeliveryRoles { [.transitions, .sightings] }
    static var isDurable: Bool { false }
    static var servicesConnection: Bool { false }
    static var showsUnknown: Bool { true }
}

/// As a debugging sink: everything, from memory.
enum LiveTraits: SinkTraits {}
/// As a broker: states, the outbox, a connection to look after, and no strangers.
enum BrokerTraits: SinkTraits {
    static var roles: DeliveryRoles { [.states, .transitions, .sightings] }
    static var isDurable: Bool { true }
    static var servicesConnection: Bool { true }
    static var showsUnknown: Bool { false }
}
/// All three roles from memory.
enum StatefulTraits: SinkTraits {
    static var roles: DeliveryRoles { [.states, .transitions, .sightings] }
}

struct ScriptedSink<Traits: SinkTraits>: ~Copyable, Sink {
    static var descriptor: SinkDescriptor {
        SinkDescriptor(
            kind: "scripted", summary: "Does as a test says.", section: Section([]), roles: Traits.roles,
            isDurable: Traits.isDurable, showsUnknown: { _ in Traits.showsUnknown },
            servicesConnection: Traits.servicesConnection)
    }

    private let script: Script

    init(_ configuration: Values, context: SinkContext) throws(SinkError) {
        guard let script = Script.named(context.name) else {
            throw SinkError(.reject(accepted: 0), "make", "no script of that name")
        }
        self.script = script
    }

    mutating func open() throws(SinkError) {
        let error = script.onOpen(script.nextOpen())
        script.note(error == nil ? "open" : "open failed")
        if let error { throw error }
    }

    mutating func write(_ batch: borrowing EventBatch) throws(SinkError) {
        let error = script.onWrite(batch.deliveries)
        script.take(batch.deliveries, error, stream: batch.stream)
        if let error { throw error }
    }

    mutating func idle(wake: Int32, until deadline: MonotonicTime) throws(SinkError) {
        if let error = script.onIdle() { throw error }
        var descriptor = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
        let left = max(0, (deadline - Clock.now).milliseconds + 1)
        _ = unsafe poll(&descriptor, 1, Int32(clamping: left))
    }

    mutating func reopen() throws(SinkError) { script.note("reopen") }

    mutating func close(isFinal: Bool) { script.note(isFinal ? "close finally" : "close") }
}

extension SinkWorker {
    /// A worker whose waits are short, around a sink that does as the script says.
    static func scripted<Traits: SinkTraits>(
        _ traits: Traits.Type, _ script: Script, capacity: Int = 1024, source: (any TransitionSource)? = nil,
        conflates: Bool = true, seed: UInt64 = 1, log: @escaping @Sendable (LogLevel, String) -> Void = { _, _ in },
        onFinished: @escaping @Sendable () -> Void = {}
    ) throws -> SinkWorker {
        try SinkWorker(
            registration: SinkRegistration(ScriptedSink<Traits>.self), configuration: Values(),
            context: Samples.context(script.name, log: log), queueCapacity: capacity, source: source,
            conflates: conflates, backoff: Backoff(base: .milliseconds(1), limit: .milliseconds(5), seed: seed),
            onFinished: onFinished)
    }

    /// - Parameter interval: far longer than it takes; under a sanitizer beside other tests a batch took ten seconds.
    func stopAndJoin(within interval: TimeInterval = .seconds(60)) -> Bool {
        stop(deadline: Clock.now + interval)
        return join()
    }
}

/// Whether the condition becomes true within 60 s: far longer than it takes, also on a busy machine.
func eventually(_ condition: () -> Bool) -> Bool {
    let end = Clock.now + .seconds(60)
    while Clock.now < end {
        if condition() { return true }
        usleep(2000)
    }
    return condition()
}

/// An outbox in memory.
final class FakeOutbox: TransitionSource {
    private struct State {
        var events: [Event] = []
        var cursors: [String: UInt64] = [:]
        var wakes: [@Sendable () -> Void] = []
        /// Positions that are damaged and not handed over.
        var missing: Set<UInt64> = []
        /// From these positions on, in order.
        var segments = [
            (first: UInt64(1), place: StreamSegment(stream: "00112233445566778899aabbccddeeff", base: 0, boot: ""))
        ]
    }

    var counters: StoreCounters { StoreCounters() }

    /// What comes next belongs to another stream.
    func begin(stream: String, boot: String) {
        state.withLock { state in
            let last = UInt64(state.events.count)
            state.segments.append((last + 1, StreamSegment(stream: stream, base: last, boot: boot)))
        }
    }

    private let state = Mutex(State())

    var lastPosition: UInt64 { state.withLock { UInt64($0.events.count) } }

    func append(_ event: Event) {
        let wakes = state.withLock { state in
            state.events.append(event)
            return state.wakes
        }
        for wake in wakes { wake() }
    }

    func lose(_ sequence: UInt64) { state.withLock { _ = $0.missing.insert(sequence) } }

    func register(sink: String, wake: @escaping @Sendable () -> Void) { state.withLock { $0.wakes.append(wake) } }

    func cursor(of sink: String) -> UInt64 { state.withLock { $0.cursors[sink] ?? 0 } }

    func read(after position: UInt64, limit: Int, _ body: (StreamSegment, UInt64, Event) -> Void) throws {
        let (events, missing, segments) = state.withLock { ($0.events, $0.missing, $0.segments) }
        let index = segments.lastIndex { $0.first <= position + 1 } ?? 0
        let end = index + 1 < segments.count ? Int(segments[index + 1].first) - 1 : events.count
        let rows = events.indices.dropFirst(Int(position)).prefix { $0 < end }
            .filter { !missing.contains(UInt64($0 + 1)) }
        for row in rows.prefix(limit) { body(segments[index].place, UInt64(row + 1), events[row]) }
    }

    func acknowledge(sink: String, through position: UInt64) {
        state.withLock { $0.cursors[sink] = max(position, $0.cursors[sink] ?? 0) }
    }
}

/// Whether something can be read from a descriptor before the time is over; −1 waits for the time only.
func waitForInput(_ descriptor: Int32, milliseconds: Int32) -> Bool {
    var descriptor = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&descriptor, 1, milliseconds) > 0
}
