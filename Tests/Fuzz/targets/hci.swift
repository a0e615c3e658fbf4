// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI

/// HCI framing, legacy and extended reports, and the joining of fragments.
///
/// The input is that of `forEachPacket`.
func fuzz(_ input: Span<UInt8>) {
    check(read(input) == read(input), "the same packets give other reports")
}

/// A digest of everything that is read from the packets.
private func read(_ input: Span<UInt8>) -> Int {
    var digest = Hasher()
    var parser = AdvertisingReportParser()
    // Octets of data that were put in and that may still be handed out.
    var credit = 0
    forEachPacket(in: input) { packet, time in
        if let event = ControllerEvent(packet) { checkEvent(event, packet) }

        let before = (reports: parser.reportCount, malformed: parser.malformed.total)
        var reports: UInt64 = 0
        credit += packet.count
        parser.parse(packet, at: time) { report, data in
            reports += 1
            credit -= data.count
            check(credit >= 0, "more data than octets came in")
            check(data.count <= (report.isExtended ? 1650 : 31), "\(data.count) octets of data")
            check(report.address.value < 1 << 48, "an address of more than 48 bits")
            check(!report.address.isAnonymous || report.address.value == 0, "an anonymous advertiser with an address")
            check(report.rssi != 0x7F && report.txPower != 0x7F, "the value for \"not available\" is no strength")
            digest.combine(report.eventType)
            digest.combine(report.address)
            digest.combine(report.rssi)
            digest.combine(report.txPower)
            digest.combine(report.advertisingSID)
            digest.combine(octets: data)
        }
        check(reports <= 255, "more reports than one event can hold")
        check(parser.reportCount - before.reports == reports, "\(reports) reports were handed out, others counted")
        // Each report is counted once at most, a fragment also for one that it displaces, the packet for what is behind.
        check(parser.malformed.total - before.malformed <= 2 * 255 + 2, "too many malformed reports for one event")
        if packet.count == 0 { check(parser.malformed.total > before.malformed, "an empty packet was not counted") }
    }
    return digest.finalize()
}

private func checkEvent(_ event: ControllerEvent, _ packet: Span<UInt8>) {
    guard case .commandComplete(_, _, let parameters) = event else { return }
    // Header, number of commands, opcode, status.
    check(parameters.count == Int(packet[2]) - 4, "\(parameters.count) parameters")
}
