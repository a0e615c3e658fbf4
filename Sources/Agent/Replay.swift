// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
public import BeaconModel
import Glibc
public import HCI
public import LinuxIO
import Presence
import Scanner
public import SinkKit
import SinkRuntime

/// What a replay found.
public struct ReplaySummary: Sendable {
    public var packetCount: UInt64 = 0
    public var reportCount: UInt64 = 0
    public var malformed = MalformedCounts()
    /// Different beacons that entered; nil when presence was not asked.
    public var beaconCount: UInt64?
    public var eventCount: UInt64?
    /// Deliveries by what became of them, when a sink took them.
    public var counts: [(word: String, count: UInt64)] = []
    /// The file ended in the middle of a record.
    public var endedEarly = false
    /// Why the rest of the file could not be read.
    public var failure: String?

    public init() {}
}

/// A capture at full speed through the road, on the capture's own clock.
public final class Replay {
    private let configuration: AgentConfiguration
    private let decoder: FrameDecoder
    private let names: NameTable
    private let path: String
    private let adapter: Name
    private let timeline = Timeline(origin: .capture)

    public init(_ configuration: AgentConfiguration, names: NameTable, path: String) {
        self.configuration = configuration
        decoder = configuration.decoder
        self.names = names
        self.path = path
        adapter = names.intern(SourceSpecification.capture(path: path).adapterName)
    }

    /// Hands each event to `body`, stamped with the capture's time, until `body` returns false.
    ///
    /// - Parameter everySighting: every advertisement of a beacon in place of what presence makes of them.
    public func run(
        everySighting: Bool = false, _ body: (borrowing Event) -> Bool
    ) throws(AgentError) -> ReplaySummary {
        var road = Road(configuration)
        var summary = ReplaySummary()
        var events: UInt64 = 0
        var beacons: Set<BeaconIdentity> = []
        var wantsMore = true
        var last = MonotonicTime.zero
        func emit(_ event: borrowing Event) {
            var event = copy event
            timeline.stamp(&event)
            events += 1
            if event.kind == .enter, let identity = event.identity { beacons.insert(identity) }
            wantsMore = body(event) && wantsMore
        }
        do {
            var reader = try CaptureReader(path: path)
            while wantsMore {
                let found = try reader.next { _, time, packet in
                    // A clock that was set back while it recorded: time never runs backwards.
                    last = max(last, time)
                    if everySighting {
                        road.sightings(in: packet, at: last, from: adapter) { emit(Self.event($0)) }
                    } else {
                        road.receive(packet, at: last, from: adapter) { emit($0) }
                    }
                }
                if !found { break }
            }
            summary.endedEarly = reader.endedEarly
        } catch {
            guard road.packetCount > 0 else { throw .input(error.description) }
            summary.failure = error.description
        }
        summary.packetCount = road.packetCount
        summary.reportCount = road.reportCount
        summary.malformed = road.malformed
        summary.beaconCount = everySighting ? nil : UInt64(beacons.count)
        summary.eventCount = events
        return summary
    }

    /// Gives the events to a sink and waits for it, so that nothing is dropped.
    public func run(
        into instance: AgentConfiguration.SinkInstance, registry: SinkRegistry, version: String, log: Log
    ) throws(AgentError) -> ReplaySummary {
        guard let registration = registry[instance.kind] else {
            throw .configuration("no sink of kind \(instance.kind)")
        }
        let context = SinkContext(
            name: instance.name, gateway: configuration.gatewayID ?? "replay",
            vocabulary: Vocabulary(formats: decoder.catalog, names: names), version: version,
            log: { log($0, "sink \(instance.name): \($1)") }, isStopping: { false }, now: { Clock.now })
        let worker: SinkWorker
        do {
            worker = try SinkWorker(
                registration: registration, configuration: instance.values, context: context,
                queueCapacity: instance.queueCapacity, conflates: false)
            try worker.start()
        } catch { throw .system(error) }
        // The worker is asked once for a quarter of its queue, because a question takes a lock.
        let stride = max(1, instance.queueCapacity / 4)
        var countdown = 0
        var summary = try run { event in
            if countdown == 0 {
                while worker.isBehind, !worker.hasEnded { usleep(200) }
                countdown = stride
            }
            countdown -= 1
            worker.offer(event)
            return countdown > 0 || !worker.hasEnded
        }
        worker.stop(deadline: Clock.now + .seconds(60))
        _ = worker.join()
        let counts = worker.counters.total
        summary.counts = [
            ("written", counts.written), ("rejected", counts.rejected), ("dropped", counts.dropped),
        ]
        if let error = worker.counters.lastError, counts.written < counts.offered { summary.failure = error }
        return summary
    }

    private static func event(_ sighting: Sighting) -> Event {
        var event = Event(kind: .sighting, time: sighting.time)
        event.identity = sighting.identity
        event.address = sighting.address
        event.adapter = sighting.adapter
        event.measuredPower = sighting.measuredPower
        event.signal = Signal(
            last: sighting.rssi, filtered: sighting.rssi.map(Float.init), minimum: sighting.rssi,
            maximum: sighting.rssi, count: 1)
        return event
    }
}
