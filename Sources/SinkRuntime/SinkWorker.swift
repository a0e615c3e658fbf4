// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import Configuration
public import LinuxIO
public import SinkKit
import Store
import Synchronization

/// One configured sink with its queue and its thread.
///
/// The loop's thread offers events and never waits; the worker's thread makes the sink, opens it, writes batches and
/// recovers from failures. A slow or dead destination costs this sink's deliveries and nobody else's.
public final class SinkWorker: Sendable {
    /// How long after the deadline of ``stop(deadline:)`` a sink may take to notice it and to say good-bye: a second for
    /// an answer that is on its way, and one for the last round trip.
    public static let closingTime = TimeInterval.seconds(2)

    /// Beacons and regions of which the state is known: as many beacons as presence tracks.
    private static let stateCapacity = 10_000

    /// The name of this instance in the configuration.
    public let name: String

    private let registration: SinkRegistration
    private let configuration: Values
    private let context: SinkContext
    private let source: (any TransitionSource)?
    private let backoff: Backoff
    private let onFinished: @Sendable () -> Void
    private let roles: DeliveryRoles
    private let showsUnknown: Bool
    private let queueCapacity: Int
    private let inbox: Inbox
    private let thread = Mutex<Thread?>(nil)

    /// Makes a worker whose thread does not run yet; it can be offered events already.
    ///
    /// - Parameters:
    ///   - configuration: the values of the sink's own section.
    ///   - context: what the sink may use; its clock is `CLOCK_MONOTONIC`. Its `isStopping` becomes true as well when the deadline of
    ///     ``stop(deadline:)`` has passed.
    ///   - queueCapacity: transitions and sightings that may wait in memory, about 0.25 KiB each.
    ///   - source: the outbox, used when the kind is durable. Without one its transitions go through the queue and are
    ///     lost with the process.
    ///   - conflates: false keeps every sighting until the queue is full, for a replay in which ``isBehind`` holds the
    ///     reader back.
    ///   - backoff: waits between tries.
    ///   - onFinished: called once, on the worker's thread, when the sink says that its reader is gone for good.
    /// - Throws: when the process has no descriptors left.
    public init(
        registration: SinkRegistration, configuration: Values, context: SinkContext, queueCapacity: Int = 1024,
        source: (any TransitionSource)? = nil, conflates: Bool = true, backoff: Backoff = Backoff(),
        onFinished: @escaping @Sendable () -> Void = {}
    ) throws(SystemError) {
        let descriptor = registration.descriptor
        self.registration = registration
        self.configuration = configuration
        self.source = descriptor.isDurable && descriptor.roles.contains(.transitions) ? source : nil
        self.backoff = backoff
        self.onFinished = onFinished
        self.queueCapacity = max(1, queueCapacity)
        name = context.name
        roles = descriptor.roles
        showsUnknown = descriptor.showsUnknown(configuration)
        let inbox = try Inbox(
            queue: SinkQueue(
                capacity: self.queueCapacity, batchSize: SinkDriver.batchSize,
                stateCapacity: roles.contains(.states) ? Self.stateCapacity : 0,
                holdsTransitions: roles.contains(.transitions) && self.source == nil, conflates: conflates))
        self.inbox = inbox
        self.context = SinkContext(
            name: context.name, gateway: context.gateway, vocabulary: context.vocabulary, version: context.version,
            log: context.log,
            isStopping: { [now = context.now, isStopping = context.isStopping] in
                isStopping() || inbox.stopDeadline.map { now() >= $0 } ?? false
            }, now: context.now, commands: context.commands, inventory: context.inventory,
            counters: { [source = self.source, name = context.name] in
                Self.hostCounters(of: name, inbox, source)
            })
    }

    /// What the host does for a sink, as the sink may tell it.
    private static func hostCounters(
        of name: String, _ inbox: Inbox, _ source: (any TransitionSource)?
    ) -> SinkHostCounters {
        let total = inbox.withQueue { $0.counters.total }
        var counters = SinkHostCounters(queued: total.queued, conflated: total.conflated, dropped: total.dropped)
        guard let source else { return counters }
        let (cursor, last, store) = (source.cursor(of: name), source.lastPosition, source.counters)
        var outbox = SinkHostCounters.Outbox(
            waiting: last - min(cursor, last), inMemory: store.inMemory, commits: store.commits, written: store.written)
        // A disk that cannot be read is told of where transitions are read.
        try? source.read(after: cursor, limit: 1) { _, _, event in outbox.oldest = event.wallTime }
        counters.outbox = outbox
        return counters
    }

    /// Starts the thread and, for a durable sink, makes it known to the outbox: what is committed from here on is its.
    public func start() throws(SystemError) {
        if let source {
            source.register(sink: name) { [inbox] in inbox.wake.signal() }
            let cursor = source.cursor(of: name)
            inbox.withQueue { $0.startReading(behind: cursor) }
        }
        try thread.withLock { thread throws(SystemError) in
            thread = try Thread(name: "sink-\(name)") {
                [inbox, context, source, backoff, registration, configuration, onFinished] in
                let driver = SinkDriver(
                    inbox: inbox, context: context, servicesConnection: registration.descriptor.servicesConnection,
                    source: source, backoff: backoff)
                let ending = driver.run(registration, configuration)
                if ending == .readerGone { onFinished() }
                inbox.ended.signal()
            }
        }
    }

    /// Hands over an event. Never blocks on the destination and, once every beacon was seen, never allocates.
    ///
    /// The sink gets it in each role that it asked for: unconfigured beacons only when it shows them, transitions of a
    /// durable sink not from here but from the outbox.
    ///
    /// - Parameter position: where the transition is in the outbox; 0 when it is in none. Its state is not told before it
    ///   is committed.
    public func offer(_ event: borrowing Event, at position: UInt64 = 0) {
        let event = copy event
        inbox.offer { queue in
            guard event.isTransition else {
                if roles.contains(.sightings), shows(event) { queue.offerSighting(event) }
                return
            }
            if roles.contains(.states), StateTable.holds(event) {
                queue.offerState(event, at: source == nil ? 0 : position)
            }
            if roles.contains(.transitions), source == nil, shows(event) { queue.offerTransition(event) }
        }
    }

    /// Whether more than half of the queue is taken. A reader that can wait, as in a replay, waits while it is.
    public var isBehind: Bool { inbox.withQueue { $0.count } > queueCapacity / 2 }

    /// Makes a state known that was reached before this sink was there.
    public func prime(_ event: borrowing Event) {
        let event = copy event
        guard roles.contains(.states), StateTable.holds(event) else { return }
        inbox.offer { $0.offerState(event) }
    }

    /// The sink has ended for good: its reader went away, or it could not be made.
    public var hasEnded: Bool {
        switch counters.state {
        case .failed, .finished: true
        case .starting, .open, .waiting: false
        }
    }

    /// SIGUSR1: the sink closes its files and opens them again, before the next batch.
    public func reopen() { inbox.reopen() }

    /// Asks the thread to write what waits, until the deadline on the context's clock, to close the sink and to end.
    /// Returns at once. A destination that fails is not tried again; what the outbox holds stays there.
    public func stop(deadline: MonotonicTime) { inbox.stop(deadline: deadline) }

    /// Waits for the thread, at most until ``closingTime`` after the deadline of ``stop(deadline:)``; without that, for
    /// as long as it takes.
    ///
    /// - Returns: false when a sink hangs in a call. Its thread is abandoned then: it ends with the process, which must
    ///   not wait for it.
    @discardableResult
    public func join() -> Bool {
        guard let thread = thread.withLock({ $0.take() }) else { return true }
        let deadline = inbox.stopDeadline.map { $0 + Self.closingTime } ?? .distantFuture
        guard inbox.ended.wait(until: deadline) else { return false }
        thread.join()
        return true
    }

    /// The account and the state at this moment.
    public var counters: SinkCounters {
        let held = source?.lastPosition ?? 0
        return inbox.withQueue { queue in
            queue.storeHolds(through: held)
            return queue.counters
        }
    }

    private func shows(_ event: borrowing Event) -> Bool {
        switch event.kind {
        case .sighting, .enter, .exit, .unknown, .known, .proximity, .ranging, .clone:
            event.isConfigured || showsUnknown
        case .regionEnter, .regionExit, .regionUnknown, .regionKnown, .adapter, .gap, .health, .flood: true
        }
    }
}
