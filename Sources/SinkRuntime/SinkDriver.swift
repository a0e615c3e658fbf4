// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import LinuxIO
import SinkKit
import Store

/// Drives one sink on its thread: opens it, hands it batches, waits and tries again as the sink's errors say, until the
/// worker is asked to stop or the reader is gone.
final class SinkDriver {
    enum Ending {
        case stopped
        /// The destination is gone for good.
        case readerGone
        case couldNotBeMade
    }

    /// Longest batch: enough to make a system call or a round trip cheap, little enough to send again.
    static let batchSize = 128
    /// Rest for a destination that takes no more sightings: a few of the reports of a beacon a second still go out, and a
    /// transition waits no longer than a person notices.
    private static let busyPause = TimeInterval.milliseconds(50)
    /// How long sightings gather before they are written, so that a busy room does not wake the thread for each.
    private static let linger = TimeInterval.milliseconds(100)
    /// Longest rest while there is nothing to do; a sink that services a connection has its own, shorter needs.
    private static let longestRest = TimeInterval.seconds(10)
    /// Wait before the store is asked again when it did not have what it announced.
    private static let storePause = TimeInterval.seconds(1)

    private let inbox: Inbox
    private let context: SinkContext
    private let servicesConnection: Bool
    private let source: (any TransitionSource)?
    private var backoff: Backoff
    private var report: FailureReport

    private var batch = EventBatch(capacity: SinkDriver.batchSize)
    /// What was in the batch when the connection was lost and is not kept elsewhere; its turn is behind the states.
    private var held: [Delivery] = []
    private var isOpen = false
    /// It failed, and has not worked since.
    private var isFailing = false
    private var pauseEnd: MonotonicTime?
    private var lingerEnd: MonotonicTime?
    /// Through which position the store's transitions were taken on this connection.
    private var taken: UInt64 = 0
    /// Through which position they had been committed when this connection was made.
    private var replayedThrough: UInt64 = 0
    /// Where the stored transitions of the batch belong, and its boot as a name.
    private var segment = StreamSegment(stream: "", base: 0, boot: "")
    private var boot = Name.none

    init(
        inbox: Inbox, context: SinkContext, servicesConnection: Bool, source: (any TransitionSource)?, backoff: Backoff
    ) {
        self.inbox = inbox
        self.context = context
        self.servicesConnection = servicesConnection
        self.source = source
        self.backoff = backoff
        report = FailureReport(log: context.log)
    }

    /// Runs until the end.
    func run(_ registration: SinkRegistration, _ configuration: Values) -> Ending {
        let sink: any SinkBox
        do throws(SinkError) {
            sink = try registration.make(configuration, context)
        } catch {
            context.log(.error, "\(error)")
            inbox.withQueue { $0.failed(error.description) }
            _ = finish(.failed(reason: error.description))
            return .couldNotBeMade
        }
        let ending = serve(sink)
        sink.close(isFinal: true)
        let lost = finish(.finished)
        if lost > 0, ending == .stopped {
            context.log(.warning, "stopped before \(lost) events could be delivered")
        }
        return ending
    }

    private func serve(_ sink: any SinkBox) -> Ending {
        while !isTimeUp {
            // What fails is not tried again on the way out.
            if isFailing, isStopping { break }
            do throws(SinkError) {
                guard try turn(sink) else { break }
            } catch {
                guard recover(from: error, sink) else { return .readerGone }
            }
            report.losses(inbox.withQueue { $0.counters }, at: context.now())
        }
        return .stopped
    }

    private var isStopping: Bool { inbox.stopDeadline != nil }

    private var isTimeUp: Bool { inbox.stopDeadline.map { context.now() >= $0 } ?? false }

    // MARK: Steps

    /// Does the next thing: waits out a pause, opens, reopens, gathers, or writes. False when there is nothing left to do
    /// and the worker should stop.
    private func turn(_ sink: any SinkBox) throws(SinkError) -> Bool {
        if let end = pauseEnd {
            if context.now() < end {
                try rest(sink, until: end)
                return true
            }
            pauseEnd = nil
            if isOpen { inbox.withQueue { $0.enter(.open) } }
        }
        if !isOpen { try open(sink) }
        if inbox.takeReopenRequest() { try asConnection { () throws(SinkError) in try sink.reopen() } }
        if batch.isEmpty, let deadline = gather() {
            if isStopping { return false }
            try rest(sink, until: deadline)
            return true
        }
        try sink.write(batch)
        settleFirst(batch.count, as: .written)
        worked()
        return true
    }

    private func open(_ sink: any SinkBox) throws(SinkError) {
        try asConnection { () throws(SinkError) in try sink.open() }
        isOpen = true
        if let source {
            taken = source.cursor(of: context.name)
            replayedThrough = source.lastPosition
        }
        inbox.withQueue { $0.connected() }
        // A request to reopen that came before is fulfilled by this.
        _ = inbox.takeReopenRequest()
        context.log(isFailing ? .debug : .info, "open")
        worked()
    }

    /// Whatever an `open` or `reopen` that failed says of deliveries: there is no connection.
    private func asConnection(_ body: () throws(SinkError) -> Void) throws(SinkError) {
        do throws(SinkError) {
            try body()
        } catch {
            guard error.disposition != .finished else { throw error }
            throw SinkError(
                .disconnected(accepted: 0), error.operation, error.reason, longestWait: error.longestWait)
        }
    }

    /// Waits for something to do; a sink that keeps a connection alive does so meanwhile.
    private func rest(_ sink: any SinkBox, until deadline: MonotonicTime) throws(SinkError) {
        let deadline = min(deadline, inbox.stopDeadline ?? .distantFuture)
        if servicesConnection, isOpen {
            defer { inbox.wake.clear() }
            try sink.idle(wake: inbox.wake.number, until: deadline)
        } else {
            _ = inbox.wake.wait(until: deadline)
        }
    }

    // MARK: The batch

    /// Fills the empty batch; when there is nothing to write yet it returns how long to wait.
    private func gather() -> MonotonicTime? {
        let now = context.now()
        switch urgency() {
        case .nothing:
            lingerEnd = nil
            return now + Self.longestRest
        case .sightings where !isStopping:
            let end = lingerEnd ?? now + Self.linger
            lingerEnd = end
            if now < end { return end }
        case .sightings, .now: break
        }
        lingerEnd = nil
        fillBatch()
        guard batch.isEmpty else { return nil }
        // States wait for a commit, which is some tenths of a second away; what comes meanwhile should not wait for it.
        return now + (inbox.withQueue { $0.hasStates } ? Self.linger : Self.storePause)
    }

    private func urgency() -> SinkQueue.Urgency {
        let waiting = inbox.urgency()
        let isBehind = source.map { $0.lastPosition > taken } ?? false
        return isBehind || !held.isEmpty ? .now : waiting
    }

    /// States first, so that a reader knows what is before what has been; then transitions, then sightings.
    private func fillBatch() {
        let committed = source?.lastPosition ?? .max
        inbox.withQueue { $0.takeStates(into: &batch, committed: committed) }
        let again = min(held.count, batch.capacity - batch.count)
        for delivery in held.prefix(again) { batch.append(delivery) }
        held.removeFirst(again)
        if let source, !batch.isFull { read(source) }
        inbox.withQueue { $0.takeEvents(into: &batch) }
    }

    private func read(_ source: any TransitionSource) {
        // A batch has one stream: what is held may be of another one.
        guard source.lastPosition > taken, !batch.deliveries.contains(where: { $0.sequence > 0 }) else { return }
        do {
            try source.read(after: taken, limit: batch.capacity - batch.count) { place, position, event in
                enter(place)
                batch.append(
                    Delivery(
                        role: .transitions, event: event, sequence: position - place.base,
                        isReplayed: position <= replayedThrough, boot: boot))
                taken = position
                inbox.withQueue { $0.takeStored(position) }
            }
        } catch {
            inbox.withQueue { $0.failed("read the store: \(error)") }
            context.log(.error, "read the store: \(error)")
        }
    }

    private func enter(_ place: StreamSegment) {
        guard place != segment else { return }
        segment = place
        boot = context.vocabulary.names.intern(place.boot)
        batch.stream = place.stream
    }

    /// The front of the batch has come to an end, and the store may forget it.
    private func settleFirst(_ count: Int, as outcome: SinkQueue.Outcome) {
        guard count > 0 else { return }
        var sequence: UInt64 = 0
        inbox.withQueue { queue in
            for delivery in batch.deliveries[..<count] {
                queue.settle(delivery.role, as: outcome)
                sequence = max(sequence, delivery.sequence)
            }
        }
        if sequence > 0 { source?.acknowledge(sink: context.name, through: sequence + segment.base) }
        batch.removeFirst(count)
    }

    // MARK: Failure

    private func worked() {
        backoff.works(at: context.now())
        guard isFailing else { return }
        isFailing = false
        report.recovered()
    }

    /// Does what the error asks for. False when the reader is gone for good.
    private func recover(from error: SinkError, _ sink: any SinkBox) -> Bool {
        if case .busy(let accepted) = error.disposition {
            settleFirst(min(max(0, accepted), batch.count), as: .written)
            returnSightings()
            pauseEnd = context.now() + Self.busyPause
            return true
        }
        inbox.withQueue { $0.failed(error.description) }
        switch error.disposition {
        case .finished: return false
        case .busy: break
        case .retry(let accepted), .reject(let accepted), .disconnected(let accepted):
            settleFirst(min(max(0, accepted), batch.count), as: .written)
        }
        switch error.disposition {
        case .reject where !batch.isEmpty:
            settleFirst(1, as: .rejected)
            report.rejected(error, at: context.now())
            return true
        case .disconnected:
            isOpen = false
            sink.close(isFinal: false)
            unloadBatch()
        default:
            markRepeated()
        }
        isFailing = true
        let usual = backoff.delay(at: context.now())
        let delay = min(usual, error.longestWait ?? usual)
        pauseEnd = context.now() + delay
        inbox.withQueue { $0.enter(.waiting) }
        report.failed(error, nextTry: delay)
        return true
    }

    /// What is left of the batch waits in the queue again, so that transitions overtake it and newer sightings replace it.
    private func returnSightings() {
        for delivery in batch.deliveries {
            if delivery.role == .sightings {
                inbox.withQueue { $0.putBack(sighting: delivery.event) }
            } else {
                held.append(delivery)
            }
        }
        batch.removeAll()
    }

    /// The rest of the batch may reach the destination a second time.
    private func markRepeated() {
        let deliveries = batch.deliveries
        batch.removeAll()
        for delivery in deliveries { batch.append(Self.repeated(delivery)) }
    }

    /// After a lost connection all states are sent again and the store is read again; the rest is held for then.
    private func unloadBatch() {
        var live: [Delivery] = []
        for delivery in batch.deliveries {
            if delivery.role == .states {
                inbox.withQueue { $0.putBack(state: delivery.event) }
            } else if delivery.sequence > 0 {
                inbox.withQueue { $0.putBackStored() }
            } else {
                live.append(Self.repeated(delivery))
            }
        }
        batch.removeAll()
        held.insert(contentsOf: live, at: 0)
    }

    private static func repeated(_ delivery: Delivery) -> Delivery {
        var again = delivery
        again.isReplayed = delivery.role == .transitions
        return again
    }

    /// Nobody takes anything any more. Returns how many events are lost.
    private func finish(_ state: SinkState) -> UInt64 {
        for delivery in held { batch.append(delivery) }
        held.removeAll()
        let lost = inbox.withQueue { $0.end(state, inFlight: batch) }
        batch.removeAll()
        return lost
    }
}
