// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit

/// How the gateway fares, put together from the events that tell of it: the retained payload of the `health` topic.
struct HealthDocument {
    /// What the sink has sent since the start of the program, repetitions too, and what it has not.
    struct Sent {
        var states: UInt64 = 0
        var events: UInt64 = 0
        var sightings: UInt64 = 0
        /// Messages that the broker refused.
        var refused: UInt64 = 0
        /// Sightings of strangers beyond those that have topics.
        var withheld: UInt64 = 0
        var connections: UInt64 = 0
    }

    private struct Adapter {
        var name: Name
        var state: Event.AdapterState
        var trouble: Name
    }

    var sent = Sent()
    /// Something was noted that no document told yet.
    private(set) var isChanged = false
    /// Nothing is known before the first event.
    var isEmpty: Bool { newest == nil }

    private let gateway: String
    private let version: String
    private let names: NameTable
    private var adapters: [Adapter] = []
    private var isHealthy = true
    private var trouble = Name.none
    private var newest: (time: WallTime, isClockSynchronized: Bool)?
    /// Through which transition the broker has the stream.
    private var acknowledged: (stream: String, sequence: UInt64) = ("", 0)
    /// The last transition that was noted.
    private var noted: (stream: String, sequence: UInt64) = ("", 0)

    init(gateway: String, version: String, names: NameTable) {
        self.gateway = gateway
        self.version = version
        self.names = names
    }

    /// Takes a transition; one that comes again after a lost connection tells nothing new.
    mutating func note(_ delivery: borrowing Delivery, stream: String) {
        let (event, sequence) = (delivery.event, delivery.sequence)
        guard event.kind == .adapter || event.kind == .health else { return }
        guard sequence == 0 || stream != noted.stream || sequence > noted.sequence else { return }
        noted = (stream, sequence)
        newest = (event.wallTime, event.isClockSynchronized)
        isChanged = true
        if event.kind == .health {
            isHealthy = event.isHealthy
            trouble = event.trouble
        } else if let place = adapters.firstIndex(where: { $0.name == event.name }) {
            adapters[place].state = event.adapterState
            adapters[place].trouble = event.trouble
        } else {
            adapters.append(Adapter(name: event.name, state: event.adapterState, trouble: event.trouble))
        }
    }

    /// The broker has everything of a batch up to this transition.
    mutating func acknowledge(_ stream: String, through sequence: UInt64) { acknowledged = (stream, sequence) }

    /// The document, which counts as told.
    mutating func tell(_ counters: SinkHostCounters?, into writer: inout JSONWriter) {
        isChanged = false
        writer.beginObject()
        writer.key("healthy")
        writer.boolean(isHealthy)
        write(trouble, &writer)
        if let newest {
            writer.key("time")
            writer.time(newest.time)
            if !newest.isClockSynchronized {
                writer.key("clock_synchronized")
                writer.boolean(false)
            }
        }
        writer.key("v")
        writer.integer(EventEncoder.version)
        writer.key("gateway")
        writer.string(gateway)
        writer.key("version")
        writer.string(version)
        writer.key("adapters")
        writer.beginArray()
        for adapter in adapters {
            writer.beginObject()
            writer.key("adapter")
            writer.string(names[adapter.name])
            writer.key("state")
            writer.string(adapter.state.word)
            write(adapter.trouble, &writer)
            writer.endObject()
        }
        writer.endArray()
        writer.key("sent")
        writer.beginObject()
        for (key, count) in [
            ("states", sent.states), ("events", sent.events), ("sightings", sent.sightings),
            ("refused", sent.refused), ("withheld", sent.withheld), ("connections", sent.connections),
        ] {
            writer.key(key)
            writer.integer(count)
        }
        writer.endObject()
        if let counters {
            writer.key("queue")
            writer.beginObject()
            for (key, count) in [
                ("queued", counters.queued), ("conflated", counters.conflated), ("dropped", counters.dropped),
            ] {
                writer.key(key)
                writer.integer(count)
            }
            writer.endObject()
        }
        write(counters?.outbox, &writer)
        writer.endObject()
    }

    private func write(_ outbox: SinkHostCounters.Outbox?, _ writer: inout JSONWriter) {
        guard acknowledged.sequence > 0 || outbox != nil else { return }
        writer.key("outbox")
        writer.beginObject()
        if acknowledged.sequence > 0 {
            writer.key("stream")
            writer.string(acknowledged.stream)
            writer.key("acknowledged")
            writer.integer(acknowledged.sequence)
        }
        if let outbox {
            writer.key("waiting")
            writer.integer(outbox.waiting)
            if let oldest = outbox.oldest {
                writer.key("oldest")
                writer.time(oldest)
            }
            for (key, count) in [
                ("in_memory", outbox.inMemory), ("commits", outbox.commits), ("written", outbox.written),
            ] {
                writer.key(key)
                writer.integer(count)
            }
        }
        writer.endObject()
    }

    private func write(_ trouble: Name, _ writer: inout JSONWriter) {
        guard trouble != .none else { return }
        writer.key("reason")
        writer.string(names[trouble])
    }
}
