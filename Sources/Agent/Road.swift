// SPDX-License-Identifier: Apache-2.0

public import BeaconFormats
public import BeaconModel
public import HCI
public import Presence

/// The road from packets to events: parse, decode, track, on the thread that calls it, without locks and without the
/// heap in the steady state.
public final class Road {
    private var parser = AdvertisingReportParser()
    private var decoder: SightingDecoder
    private var presence: PresenceEngine

    public private(set) var packetCount: UInt64 = 0
    public private(set) var sightingCount: UInt64 = 0

    public init(decoder: consuming SightingDecoder, presence: consuming PresenceEngine) {
        self.decoder = decoder
        self.presence = presence
    }

    public var reportCount: UInt64 { parser.reportCount }
    public var malformed: MalformedCounts { parser.malformed }
    public var trackedCount: Int { presence.trackedCount }
    public var presentCount: Int { presence.presentCount }

    /// When something is due that no packet announces.
    public var nextDeadline: MonotonicTime { presence.nextDeadline }

    /// Takes one HCI packet, its H4 packet indicator in front.
    public func receive(
        _ packet: Span<UInt8>, at time: MonotonicTime, from adapter: Name, emit: (borrowing Event) -> Void
    ) {
        sightings(in: packet, at: time, from: adapter) { presence.observe($0, emit: emit) }
    }

    /// Finds the sightings in a packet and leaves presence alone.
    public func sightings(
        in packet: Span<UInt8>, at time: MonotonicTime, from adapter: Name, _ body: (borrowing Sighting) -> Void
    ) {
        packetCount += 1
        parser.parse(packet, at: time) { report, data in
            decoder.decode(report, data, at: time, from: adapter) { sighting in
                sightingCount += 1
                body(sighting)
            }
        }
    }

    public func radio(
        _ adapter: Name, _ activity: RadioActivity, at time: MonotonicTime, emit: (borrowing Event) -> Void
    ) {
        presence.radio(adapter, activity, at: time, emit: emit)
    }

    public func tick(_ time: MonotonicTime, emit: (borrowing Event) -> Void) {
        presence.tick(time, emit: emit)
    }

    func reconfigure(
        _ settings: PresenceSettings, _ beacons: [BeaconRule], _ regions: [RegionRule], at time: MonotonicTime,
        emit: (borrowing Event) -> Void
    ) {
        presence.reconfigure(settings: settings, beacons: beacons, regions: regions, at: time, emit: emit)
    }

    /// Each present beacon, as the `enter` event that would be right now.
    func forEachPresent(_ body: (borrowing Event) -> Void) { presence.forEachPresent(body) }

    /// Each region with the number of beacons inside.
    func forEachRegion(_ body: (Name, UInt32) -> Void) { presence.forEachRegion(body) }

    /// Each present beacon and each region with somebody inside, as the transition that led there.
    func forEachState(at time: MonotonicTime, _ body: (borrowing Event) -> Void) {
        presence.forEachPresent(body)
        presence.forEachRegion { name, inside in
            guard inside > 0 else { return }
            var event = Event(kind: .regionEnter, time: time)
            event.name = name
            event.isConfigured = true
            event.insideCount = inside
            body(event)
        }
    }
}
