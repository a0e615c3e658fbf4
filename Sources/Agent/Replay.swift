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
    /// Lines of a recording of sightings; nil for a capture.
    public var lineCount: UInt64?
    public var sightingCount: UInt64 = 0
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

/// A capture, or a recording of sightings, at full speed through the road, on its own clock.
public final class Replay {
    /// What is read.
    public enum Input: Sendable {
        /// HCI packets: a btsnoop file.
        case capture(path: String)
        /// One JSON object a line, as `docs/presence.md` has them.
        case recording(path: String)

        /// A file by its name: JSON lines end in `.jsonl`.
        public init(path: String) {
            self = path.hasSuffix(".jsonl") ? .recording(path: path) : .capture(path: path)
        }
    }

    private let configuration: AgentConfiguration
    private let decoder: FrameDecoder
    private let names: NameTable
    private let input: Input
    private let timeline = Timeline(origin: .capture)
    private let aliases: [BeaconIdentity: Name]

    public init(_ configuration: AgentConfiguration, names: NameTable, input: Input) {
        aliases = Dictionary(configuration.beacons.map { ($0.identity, $0.alias) }) { $1 }
        self.configuration = configuration
        decoder = configuration.decoder
        self.names = names
        self.input = input
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
        func failed(_ text: String) throws(AgentError) {
            guard road.packetCount > 0 || summary.lineCount ?? 0 > 0 else { throw .input(text) }
            summary.failure = text
        }
        switch input {
        case .capture(let path):
            let adapter = names.intern(SourceSpecification.capture(path: path).adapterName)
            do throws(CaptureReader.CaptureError) {
                var reader = try CaptureReader(path: path)
                while wantsMore {
                    let found = try reader.next { _, time, packet in
                        // A clock that was set back while it recorded: time never runs backwards.
                        last = max(last, time)
                        if everySighting {
                            road.sightings(in: packet, at: last, from: adapter) { emit(event($0)) }
                        } else {
                            road.receive(packet, at: last, from: adapter) { emit($0) }
                        }
                    }
                    if !found { break }
                }
                summary.endedEarly = reader.endedEarly
            } catch { try failed(error.description) }
        case .recording(let path):
            do throws(RecordingError) {
                var recording = try Recording(path: path, formats: decoder.catalog, names: names)
                while wantsMore, let line = try recording.next() {
                    summary.lineCount = recording.lineCount
                    switch line.content {
                    case .sighting(let sighting) where everySighting:
                        summary.sightingCount += 1
                        emit(event(road.corrected(sighting)))
                    case .sighting(let sighting): road.observe(sighting) { emit($0) }
                    case .radio(let name, let activity): road.radio(name, activity, at: line.time) { emit($0) }
                    case .moment: road.tick(line.time) { emit($0) }
                    }
                }
                summary.lineCount = recording.lineCount
            } catch { try failed(error.description) }
        }
        summary.packetCount = road.packetCount
        summary.reportCount = road.reportCount
        summary.sightingCount += road.sightingCount
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

    private func event(_ sighting: Sighting) -> Event {
        var event = Event(kind: .sighting, time: sighting.time)
        event.identity = sighting.identity
        event.name = aliases[sighting.identity] ?? .none
        event.address = sighting.address
        event.adapter = sighting.adapter
        event.measuredPower = sighting.measuredPower
        event.signal = Signal(
            last: sighting.rssi, filtered: sighting.rssi.map(Float.init), minimum: sighting.rssi,
            maximum: sighting.rssi, count: 1)
        return event
    }
}
