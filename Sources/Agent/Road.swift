// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
public import BeaconModel
public import HCI
public import Presence

/// The road from packets to events: parse, decode, track, on the thread that calls it, without locks and without the
/// heap in the steady state.
public struct Road: ~Copyable {
    private var parser = AdvertisingReportParser()
    private var decoder: SightingDecoder
    private var presence: PresenceEngine
    private var adapters: [AdapterRule]

    public private(set) var packetCount: UInt64 = 0
    public private(set) var sightingCount: UInt64 = 0

    public init(_ configuration: AgentConfiguration) {
        decoder = SightingDecoder(configuration.decoder, identify: configuration.identify)
        presence = PresenceEngine(
            settings: configuration.presence, beacons: configuration.beacons, regions: configuration.regions)
        adapters = configuration.adapters
    }

    public var reportCount: UInt64 { parser.reportCount }
    public var malformed: MalformedCounts { parser.malformed }
    public var trackedCount: Int { presence.trackedCount }
    public var presentCount: Int { presence.presentCount }
    /// Sightings for whose beacons there was no place, and beacons that were forgotten for others, since the beginning.
    var crowded: (refused: UInt64, evicted: UInt64) { (presence.refusedCount, presence.evictedCount) }

    /// When something is due that no packet announces.
    public var nextDeadline: MonotonicTime { presence.nextDeadline }

    /// Takes one HCI packet, its H4 packet indicator in front.
    public mutating func receive(
        _ packet: Span<UInt8>, at time: MonotonicTime, from adapter: Name, emit: (borrowing Event) -> Void
    ) {
        packetCount += 1
        sightingCount += Self.walk(packet, time, adapter, offset(of: adapter), &parser, &decoder, &presence) {
            sighting, presence in
            presence.observe(sighting, emit: emit)
        }
    }

    /// Finds the sightings in a packet and leaves presence alone.
    public mutating func sightings(
        in packet: Span<UInt8>, at time: MonotonicTime, from adapter: Name, _ body: (borrowing Sighting) -> Void
    ) {
        packetCount += 1
        sightingCount += Self.walk(packet, time, adapter, offset(of: adapter), &parser, &decoder, &presence) {
            sighting, _ in body(sighting)
        }
    }

    /// Takes a sighting that no packet of ours brought.
    public mutating func observe(_ sighting: Sighting, emit: (borrowing Event) -> Void) {
        sightingCount += 1
        presence.observe(corrected(sighting), emit: emit)
    }

    /// With the strength as the configuration corrects that of its radio.
    func corrected(_ sighting: Sighting) -> Sighting {
        var sighting = sighting
        Self.correct(&sighting, by: offset(of: sighting.adapter))
        return sighting
    }

    /// The rooms as parameters of their own: so the compiler sees that they do not overlap, and checks nothing while it
    /// runs.
    private static func walk(
        _ packet: Span<UInt8>, _ time: MonotonicTime, _ adapter: Name, _ offset: Int,
        _ parser: inout AdvertisingReportParser, _ decoder: inout SightingDecoder, _ presence: inout PresenceEngine,
        _ body: (borrowing Sighting, inout PresenceEngine) -> Void
    ) -> UInt64 {
        var count: UInt64 = 0
        parser.parse(packet, at: time) { report, data in
            decoder.decode(report, data, at: time, from: adapter) { sighting in
                count += 1
                guard offset != 0 else { return body(sighting, &presence) }
                var corrected = copy sighting
                Self.correct(&corrected, by: offset)
                body(corrected, &presence)
            }
        }
        return count
    }

    /// dB to add to what that radio reports.
    private func offset(of adapter: Name) -> Int {
        for rule in adapters where rule.name == adapter { return rule.rssiOffset }
        return 0
    }

    /// A strength that was not measured stays so; the others stay within what HCI can say, −127 to 20 dBm.
    private static func correct(_ sighting: inout Sighting, by offset: Int) {
        guard let rssi = sighting.rssi else { return }
        sighting.rssi = Int8(min(max(Int(rssi) + offset, -127), 20))
    }

    public mutating func radio(
        _ adapter: Name, _ activity: RadioActivity, at time: MonotonicTime, emit: (borrowing Event) -> Void
    ) {
        presence.radio(adapter, activity, at: time, emit: emit)
    }

    public mutating func tick(_ time: MonotonicTime, emit: (borrowing Event) -> Void) {
        presence.tick(time, emit: emit)
    }

    /// Goes on by another configuration, whose formats are the same.
    mutating func reconfigure(
        _ configuration: AgentConfiguration, at time: MonotonicTime, emit: (borrowing Event) -> Void
    ) {
        decoder = SightingDecoder(configuration.decoder, identify: configuration.identify)
        adapters = configuration.adapters
        presence.reconfigure(
            settings: configuration.presence, beacons: configuration.beacons, regions: configuration.regions, at: time,
            emit: emit)
    }

    /// Each present beacon, as the `enter` event that would be right now.
    func forEachPresent(_ body: (borrowing Event) -> Void) { presence.forEachPresent(body) }

    /// What of a configured beacon should survive a restart; nil when there is nothing.
    func snapshot(of identity: BeaconIdentity, wallTime: (MonotonicTime) -> WallTime) -> [UInt8]? {
        presence.snapshot(of: identity, wallTime: wallTime)
    }

    /// The same of every configured beacon.
    func snapshot(wallTime: (MonotonicTime) -> WallTime, _ body: (BeaconIdentity, [UInt8]) -> Void) {
        presence.snapshot(wallTime: wallTime, body)
    }

    /// Takes a beacon back, before anything was heard; false when it is unknown, or the record damaged.
    mutating func restore(
        _ identity: BeaconIdentity, _ record: [UInt8], at time: MonotonicTime, wallTime: WallTime
    ) -> Bool {
        presence.restore(identity, record, at: time, wallTime: wallTime)
    }

    /// What presence knows of a beacon; nil when it is not tracked.
    public func insight(of identity: BeaconIdentity) -> BeaconInsight? { presence.insight(of: identity) }

    /// Each region with the number of beacons inside.
    func forEachRegion(_ body: (Name, UInt32) -> Void) { presence.forEachRegion(body) }

    /// Whether nobody can say if a region is occupied.
    func isUnknown(region: Name) -> Bool { presence.isUnknown(region: region) }

    /// Whether a region has more or fewer beacons inside than was told.
    var hasChangedRegions: Bool { presence.hasChangedRegions }

    /// The state of those regions, as a transition that leads there.
    mutating func takeChangedRegions(_ body: (borrowing Event) -> Void) { presence.takeChangedRegions(body) }

    /// Each present beacon and each region with somebody inside, as the transition that led there.
    func forEachState(at time: MonotonicTime, _ body: (borrowing Event) -> Void) {
        presence.forEachPresent(body)
        presence.forEachRegion { name, inside in
            guard inside > 0 else { return }
            var event = Event(kind: presence.isUnknown(region: name) ? .regionUnknown : .regionEnter, time: time)
            event.name = name
            event.isConfigured = true
            event.insideCount = inside
            body(event)
        }
    }
}
