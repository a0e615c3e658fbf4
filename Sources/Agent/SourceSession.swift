// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
public import BeaconModel
public import LinuxIO
import Presence
import SinkKit

/// One source that a command opens for a while, without sinks, store or control socket: for `scan` and `record`.
///
/// It holds the lock of the adapter, so that it never fights with a daemon over a radio.
public final class SourceSession {
    /// What is wanted of the source.
    public enum Wish {
        /// HCI packets as they come, with the time on the wall in microseconds since 1970.
        case packets((Span<UInt8>, Int64) -> Void)
        /// Events as JSON objects.
        case events(([UInt8]) -> Void)
    }

    private let wish: Wish
    private let locks: AdapterLocks
    private let sources: [any PacketSource]
    private let clockOffset: TimeInterval
    private let timeline: Timeline
    /// From the clock of the source to the wall, for packets: taken once, so that the distances in a recording are
    /// those of the packets whatever becomes of the wall clock meanwhile.
    private let wallOffset: TimeInterval
    private var road: Road
    private let encoder: EventEncoder
    private let vocabulary: Vocabulary
    private var writer = JSONWriter()
    private var hasScanned = false
    /// Why the source does not scan, while it does not.
    public private(set) var failure: String?

    /// Opens the sources of a configuration. Its presence settings are those of somebody who looks: a beacon shows with
    /// its first advertisement, and twice a second.
    ///
    /// - Parameter reportInterval: the least time between two sightings of one beacon; zero for each.
    public init(
        _ configuration: AgentConfiguration, names: NameTable, reportInterval: TimeInterval = .milliseconds(500),
        _ wish: Wish
    ) throws(AgentError) {
        self.wish = wish
        locks = try AdapterLocks(configuration.sources)
        let opened = try OpenSources(configuration, names: names)
        sources = opened.sources
        timeline = Timeline(origin: opened.captureBeginning == nil ? .system : .capture)
        clockOffset = opened.captureBeginning.map { $0 - Clock.now } ?? .zero
        wallOffset = opened.captureBeginning == nil ? Clock.wallOffset : .zero
        vocabulary = Vocabulary(formats: configuration.decoder.catalog, names: names)
        let gateway = if let id = configuration.gatewayID { id } else { try GatewayIdentity.ofThisMachine() }
        encoder = EventEncoder(gateway: gateway, vocabulary: vocabulary)
        var eager = configuration
        eager.presence.enterCount = 1
        eager.presence.reportInterval = reportInterval
        road = Road(eager)
    }

    /// Begins, driven by a loop that calls ``advance()`` when ``nextDeadline`` has come.
    public func start(in loop: EventLoop) throws(SystemError) {
        for source in sources {
            source.start(at: now, self)
            guard let descriptor = source.descriptor else { continue }
            _ = try loop.add(descriptor) { [unowned self] in source.advance(to: now, self) }
        }
    }

    /// On the machine's clock.
    public var nextDeadline: MonotonicTime {
        var deadline = sources.reduce(.distantFuture) { min($0, $1.nextDeadline) }
        if case .events = wish { deadline = min(deadline, road.nextDeadline) }
        return deadline == .distantFuture ? deadline : deadline + TimeInterval(nanoseconds: -clockOffset.nanoseconds)
    }

    public func advance() {
        for source in sources { source.advance(to: now, self) }
        if case .events = wish { road.tick(now) { deliver($0) } }
    }

    /// Nothing will come any more.
    ///
    /// A radio that never worked will not in the next seconds either, and somebody waits at a terminal; one that did work
    /// may come back.
    public var hasEnded: Bool { failure != nil && !hasScanned || sources.allSatisfy(\.hasEnded) }

    /// Lets go of the radio.
    public func stop() {
        for source in sources { source.stop() }
    }

    /// The clock of the source.
    private var now: MonotonicTime { Clock.now + clockOffset }

    private func deliver(_ event: borrowing Event) {
        guard case .events(let body) = wish else { return }
        var event = copy event
        timeline.stamp(&event)
        writer.reset()
        let role: DeliveryRoles = event.isTransition ? .transitions : .sightings
        encoder.encode(Delivery(role: role, event: event), stream: "", into: &writer)
        body(writer.bytes)
    }
}

extension SourceSession: PacketReceiver {
    func packet(_ packet: Span<UInt8>, at time: MonotonicTime, from adapter: Name) {
        switch wish {
        case .events: road.receive(packet, at: time, from: adapter) { deliver($0) }
        case .packets(let body):
            body(packet, (time + wallOffset).nanoseconds / 1000)
        }
    }

    func activity(_ activity: RadioActivity, at time: MonotonicTime, of adapter: Name) {
        if case .events = wish { road.radio(adapter, activity, at: time) { deliver($0) } }
    }

    func state(_ state: Event.AdapterState, at time: MonotonicTime, of adapter: Name) {
        if state == .scanning {
            hasScanned = true
            failure = nil
        }
        var event = Event(kind: .adapter, time: time)
        event.name = adapter
        event.adapterState = state
        deliver(event)
    }

    func failure(_ reason: String, of adapter: Name) {
        failure = "\(vocabulary.names[adapter]): \(reason)"
    }
}
