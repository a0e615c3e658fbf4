// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Spells events as the flat JSON objects of `docs/events.md`.
public struct EventEncoder: Sendable {
    /// The version of the payloads, `v`. A key may be added without changing it; a change of meaning changes it.
    public static let version = 1

    private let gateway: String
    private let vocabulary: Vocabulary
    /// Whether each event says its moment on the clock of decisions, too: `t`, in seconds, as a replay of a recording
    /// that counts them so.
    public var writesMoment = false

    public init(gateway: String, vocabulary: Vocabulary) {
        self.gateway = gateway
        self.vocabulary = vocabulary
    }

    /// Appends one object, without a newline. `stream` is written only beside a sequence number.
    public func encode(_ delivery: borrowing Delivery, stream: String, into writer: inout JSONWriter) {
        let event = delivery.event
        writer.beginObject()
        writer.key("event")
        writer.string(event.kind.word)
        if writesMoment {
            writer.key("t")
            writer.decimal((event.time - .zero).seconds, decimals: 6)
        }
        writeTime(event, &writer)
        writeBody(event, &writer)
        if delivery.sequence > 0 {
            writer.key("stream")
            writer.string(stream)
            writer.key("seq")
            writer.integer(delivery.sequence)
            writer.key("replayed")
            writer.boolean(delivery.isReplayed)
            if delivery.boot != .none {
                writer.key("boot")
                writer.string(vocabulary.names[delivery.boot])
            }
        }
        writer.endObject()
    }

    /// Appends the present state that a transition of a beacon or a region led to: the payload of a retained
    /// `presence` topic.
    public func encodeState(_ event: borrowing Event, into writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("state")
        switch event.kind {
        case .enter, .known: writer.string("present")
        case .exit: writer.string("absent")
        case .regionEnter, .regionKnown: writer.string("inside")
        case .unknown, .regionUnknown: writer.string("unknown")
        case .regionExit: writer.string("outside")
        case .sighting, .adapter, .gap, .proximity, .ranging, .clone, .health, .flood: writer.null()
        }
        writeTime(event, &writer)
        writeBody(event, &writer)
        writer.endObject()
    }

    /// Appends the beacons inside a region at one moment, in the order of their ranks, as one object: the payload of a
    /// `ranging` topic.
    ///
    /// - Parameter round: `ranging` events of one region and time; nothing is written for none.
    public func encodeRanging(_ round: [Event], into writer: inout JSONWriter) {
        guard let first = round.first else { return }
        writer.beginObject()
        writer.key("event")
        writer.string(first.kind.word)
        writeTime(first, &writer)
        writer.key("region")
        writer.string(vocabulary.names[first.region])
        writer.key("inside")
        writer.integer(first.insideCount)
        writer.key("beacons")
        writer.beginArray()
        for event in round {
            writer.beginObject()
            writeBeacon(event, &writer)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }

    private func writeTime(_ event: borrowing Event, _ writer: inout JSONWriter) {
        writer.key("time")
        writer.time(event.wallTime)
        if !event.isClockSynchronized {
            writer.key("clock_synchronized")
            writer.boolean(false)
        }
        writer.key("v")
        writer.integer(Self.version)
        writer.key("gateway")
        writer.string(gateway)
    }

    private func writeBody(_ event: borrowing Event, _ writer: inout JSONWriter) {
        switch event.kind {
        case .sighting, .enter, .known, .proximity: writeBeacon(event, &writer)
        case .unknown:
            writeBeacon(event, &writer)
            writeBlindness(&writer)
        case .ranging:
            writer.key("region")
            writer.string(vocabulary.names[event.region])
            writer.key("rank")
            writer.integer(event.rank)
            writer.key("inside")
            writer.integer(event.insideCount)
            writeBeacon(event, &writer)
        case .clone:
            writeBeacon(event, &writer)
            writer.key("other_address")
            writer.address(event.otherAddress)
        case .exit:
            writeBeacon(event, &writer)
            writeExit(event, &writer)
        case .regionEnter, .regionExit, .regionUnknown, .regionKnown:
            writer.key("region")
            writer.string(vocabulary.names[event.name])
            writer.key("inside")
            writer.integer(event.insideCount)
            if event.kind == .regionExit { writeReason(event, &writer) }
            if event.kind == .regionUnknown { writeBlindness(&writer) }
        case .adapter:
            writer.key("adapter")
            writer.string(vocabulary.names[event.name])
            writer.key("state")
            writer.string(event.adapterState.word)
            writeTrouble(event, &writer)
        case .health:
            writer.key("healthy")
            writer.boolean(event.isHealthy)
            writeTrouble(event, &writer)
        case .flood:
            writer.key("tracked")
            writer.integer(event.insideCount)
            writer.key("refused")
            writer.integer(event.flood.refused)
            writer.key("evicted")
            writer.integer(event.flood.evicted)
        case .gap:
            writer.key("first_seq")
            writer.integer(event.gap.first)
            writer.key("last_seq")
            writer.integer(event.gap.last)
        }
    }

    private func writeBeacon(_ event: borrowing Event, _ writer: inout JSONWriter) {
        if let identity = event.identity {
            vocabulary.formats.write(identity, into: &writer)
        }
        if event.name != .none {
            writer.key("alias")
            writer.string(vocabulary.names[event.name])
        }
        // A device that is known by its address was spelled with it.
        let isSpelled = event.identity.map { vocabulary.formats[$0.format]?.fields.first?.key == "address" } ?? false
        if !isSpelled {
            writer.key("address")
            writer.address(event.address)
        }
        writer.key("address_ending")
        writer.addressEnding(event.address)
        if event.adapter != .none {
            writer.key("adapter")
            writer.string(vocabulary.names[event.adapter])
        }
        writer.key("rssi")
        writeOptional(event.signal.last, &writer)
        writer.key("rssi_filtered")
        if let filtered = event.signal.filtered { writer.decimal(Double(filtered), decimals: 1) } else { writer.null() }
        writer.key("rssi_min")
        writeOptional(event.signal.minimum, &writer)
        writer.key("rssi_max")
        writeOptional(event.signal.maximum, &writer)
        writer.key("count")
        writer.integer(event.signal.count)
        writer.key("measured_power")
        writeOptional(event.measuredPower, &writer)
        writer.key("proximity")
        writer.string(event.proximity.word)
        writer.key("accuracy")
        writer.decimal(Double(event.accuracy), decimals: 2)
        if event.accuracyUncertainty >= 0 {
            writer.key("accuracy_uncertainty")
            writer.decimal(Double(event.accuracyUncertainty), decimals: 2)
        }
        writer.key("signal_quality")
        if let filtered = event.signal.filtered {
            writer.string(SignalQuality(strength: filtered).word)
        } else {
            writer.null()
        }
        event.payload?.write(vocabulary.formats, into: &writer)
    }

    private func writeExit(_ event: borrowing Event, _ writer: inout JSONWriter) {
        writer.key("last_seen")
        if let lastSeen = event.lastSeenWallTime { writer.time(lastSeen) } else { writer.null() }
        writer.key("exit_time")
        writer.decimal(event.exitTime.seconds, decimals: 3)
        writeReason(event, &writer)
        writer.key("limited_by")
        writer.string(event.exitLimit.word)
        if let (asked, expected) = event.falseExits {
            // Of a day, because a rate of a second is a number that nobody can read.
            writer.key("false_exits_asked")
            writer.decimal(Double(asked) * 86_400, decimals: 3)
            writer.key("false_exits_expected")
            writer.decimal(Double(expected) * 86_400, decimals: 3)
        }
    }

    private func writeTrouble(_ event: borrowing Event, _ writer: inout JSONWriter) {
        guard event.trouble != .none else { return }
        writer.key("reason")
        writer.string(vocabulary.names[event.trouble])
    }

    private func writeBlindness(_ writer: inout JSONWriter) {
        writer.key("reason")
        writer.string("blind")
    }

    private func writeReason(_ event: borrowing Event, _ writer: inout JSONWriter) {
        writer.key("reason")
        writer.string(event.exitReason.word)
    }

    private func writeOptional(_ value: Int8?, _ writer: inout JSONWriter) {
        if let value { writer.integer(value) } else { writer.null() }
    }
}
