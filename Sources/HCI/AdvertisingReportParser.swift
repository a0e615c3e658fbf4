// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Finds the advertising reports in HCI packets and joins the fragments of extended ones.
///
/// Everything comes from the air or a file: whatever the octets are, a bad report costs only itself, is counted by
/// reason, and never traps. Nothing is allocated after `init`.
public struct AdvertisingReportParser: ~Copyable {
    public private(set) var malformed = MalformedCounts()
    /// Advertising reports that were handed out.
    public private(set) var reportCount: UInt64 = 0

    private var fragments = FragmentStore()

    public init() {}

    /// Forgets the counts and what waits for its end, and keeps the memory.
    public mutating func reset() {
        malformed = MalformedCounts()
        reportCount = 0
        fragments.removeAll()
    }

    /// Calls `body` with each report in `packet` and its data, in order. Packets of other kinds hold none.
    ///
    /// - Parameters:
    ///   - packet: one HCI packet with its H4 packet indicator in front.
    ///   - time: when it was received; fragments that are more than a second apart do not belong together.
    public mutating func parse(
        _ packet: Span<UInt8>, at time: MonotonicTime,
        _ body: (borrowing AdvertisingReport, Span<UInt8>) -> Void
    ) {
        guard packet.count > 0 else { return malformed.count(.truncatedPacket) }
        guard packet[0] == PacketType.event.rawValue else { return }
        // Indicator, event code, parameter length.
        guard packet.count >= 3, packet.count >= 3 + Int(packet[2]) else { return malformed.count(.truncatedPacket) }
        guard packet[1] == EventCode.leMeta.rawValue else { return }
        let end = 3 + Int(packet[2])
        if packet.count > end { malformed.count(.trailingOctets) }
        // Subevent code, number of reports.
        guard end >= 4 else { return malformed.count(.truncatedPacket) }
        switch LESubevent(rawValue: packet[3]) {
        case .advertisingReport:
            guard end >= 5 else { return malformed.count(.truncatedReport) }
            parseLegacy(packet.extracting(5..<end), count: packet[4], body)
        case .extendedAdvertisingReport:
            guard end >= 5 else { return malformed.count(.truncatedReport) }
            parseExtended(packet.extracting(5..<end), count: packet[4], at: time, body)
        default: break
        }
    }

    /// Reports follow each other whole: event type, address type, address, data length, data, RSSI.
    private mutating func parseLegacy(
        _ reports: Span<UInt8>, count: UInt8, _ body: (borrowing AdvertisingReport, Span<UInt8>) -> Void
    ) {
        let header = 9
        var offset = 0
        for _ in 0..<count {
            guard reports.count - offset >= header + 1 else { return malformed.count(.truncatedReport) }
            let length = Int(reports[offset + 8])
            let end = offset + header + length
            guard reports.count > end else { return malformed.count(.truncatedReport) }
            if length > 31 {
                malformed.count(.oversizedData)
            } else {
                reportCount += 1
                body(
                    AdvertisingReport(
                        isExtended: false, eventType: AdvertisingEventType(rawValue: UInt16(reports[offset])),
                        address: Self.address(reports, kind: reports[offset + 1], at: offset + 2),
                        rssi: Self.decibels(reports[end]), txPower: nil, advertisingSID: nil, primaryPHY: .le1M,
                        secondaryPHY: .none),
                    reports.extracting(offset + header..<end))
            }
            offset = end + 1
        }
        if offset < reports.count { malformed.count(.octetsBehindReports) }
    }

    /// Reports follow each other whole: event type (2), address type, address (6), primary and secondary PHY, SID,
    /// TX power, RSSI, periodic interval (2), direct address type, direct address (6), data length, data.
    private mutating func parseExtended(
        _ reports: Span<UInt8>, count: UInt8, at time: MonotonicTime,
        _ body: (borrowing AdvertisingReport, Span<UInt8>) -> Void
    ) {
        let header = 24
        var offset = 0
        for _ in 0..<count {
            guard reports.count - offset >= header else { return malformed.count(.truncatedReport) }
            let end = offset + header + Int(reports[offset + 23])
            guard reports.count >= end else { return malformed.count(.truncatedReport) }
            let sid = reports[offset + 11]
            let report = AdvertisingReport(
                isExtended: true, eventType: AdvertisingEventType(rawValue: reports.littleEndian16(at: offset)),
                address: Self.address(reports, kind: reports[offset + 2], at: offset + 3),
                rssi: Self.decibels(reports[offset + 13]), txPower: Self.decibels(reports[offset + 12]),
                advertisingSID: sid == 0xFF ? nil : sid, primaryPHY: PHY(rawValue: reports[offset + 9]),
                secondaryPHY: PHY(rawValue: reports[offset + 10]))
            receive(report, reports.extracting(offset + header..<end), at: time, body)
            offset = end
        }
        if offset < reports.count { malformed.count(.octetsBehindReports) }
    }

    private mutating func receive(
        _ report: AdvertisingReport, _ data: Span<UInt8>, at time: MonotonicTime,
        _ body: (borrowing AdvertisingReport, Span<UInt8>) -> Void
    ) {
        // A legacy PDU is never fragmented, so it neither ends nor continues what is pending for its address.
        if report.eventType.isLegacyPDU || fragments.isEmpty && report.eventType.dataStatus == .complete {
            reportCount += 1
            return body(report, data)
        }
        let key = FragmentKey(address: report.address, advertisingSID: report.advertisingSID)
        switch report.eventType.dataStatus {
        case .complete:
            var joined = report
            joined.eventType = report.eventType.joined
            reportCount += 1
            switch fragments.finish(key, with: data, at: time, { body(joined, $0) }) {
            case .joined: break
            case .nothingPending: body(report, data)
            case .tooLong:
                reportCount -= 1
                malformed.count(.unfinishedData)
            }
        case .incomplete:
            let lost = fragments.append(data, to: key, at: time)
            for _ in 0..<lost { malformed.count(.unfinishedData) }
        default:
            // Truncated, or the value that is reserved: no more will come, and half an advertisement is none.
            fragments.remove(key)
            malformed.count(.truncatedData)
        }
    }

    @inline(__always)
    private static func address(_ reports: Span<UInt8>, kind: UInt8, at offset: Int) -> DeviceAddress {
        let kind = DeviceAddress.Kind(rawValue: kind)
        return kind == .anonymous ? .anonymous : DeviceAddress(value: reports.littleEndian48(at: offset), kind: kind)
    }

    /// A signed octet in dBm; 0x7F means not available. −128 lies below the specified range, but controllers send it
    /// and it can only mean a very weak signal.
    @inline(__always)
    private static func decibels(_ octet: UInt8) -> Int8? {
        octet == 0x7F ? nil : Int8(bitPattern: octet)
    }
}
