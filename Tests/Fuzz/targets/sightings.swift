// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import HCI

private let frames = FrameDecoder()

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
    }
    check(identities.count <= 3, "\(identities.count) beacons in one report")
    return identities
}
