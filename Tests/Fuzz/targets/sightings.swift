// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import HCI
import SinkKit

private let frames = FrameDecoder()
private let encoder = EventEncoder(
    gateway: "gateway", vocabulary: Vocabulary(formats: frames.catalog, names: NameTable()))

/// Which beacons the reports of packets are sightings of, and what is remembered of the addresses between them.
///
/// The input is that of `hci`. The table is small, so that addresses push each other out.
func fuzz(_ input: Span<UInt8>) {
    var parser = AdvertisingReportParser()
    var decoder = SightingDecoder(frames, capacity: 8)
    forEachPacket(in: input) { packet, time in
        parser.parse(packet, at: time) { report, data in
            let first = sightings(of: report, data, at: time, &decoder)
            // The second time out of memory, when the data are short enough to be remembered.
            check(sightings(of: report, data, at: time, &decoder) == first, "the same report gives other sightings")
        }
    }
}

private func sightings(
    of report: borrowing AdvertisingReport, _ data: Span<UInt8>, at time: MonotonicTime,
    _ decoder: inout SightingDecoder
) -> [BeaconIdentity] {
    let (address, rssi) = (report.address, report.rssi)
    var identities: [BeaconIdentity] = []
    decoder.decode(report, data, at: time, from: .none) { sighting in
        check(!identities.contains(sighting.identity), "a beacon twice in one report")
        check(sighting.address == address && sighting.rssi == rssi, "a sighting of another report")
        check(sighting.time == time, "another time")
        checkIdentity(sighting.identity, frames.catalog)
        identities.append(sighting.identity)
        if sighting.payload != nil { checkEvent(sighting) }
    }
    check(identities.count <= 3, "\(identities.count) beacons in one report")
    return identities
}

/// Holds that what a frame says can be told beside what is known of the beacon.
private func checkEvent(_ sighting: borrowing Sighting) {
    var event = Event(kind: .sighting, time: sighting.time)
    event.identity = sighting.identity
    event.address = sighting.address
    event.payload = sighting.payload
    var writer = JSONWriter()
    encoder.encode(Delivery(role: .sightings, event: event), stream: "stream", into: &writer)
    checkJSON(writer.bytes)
}
