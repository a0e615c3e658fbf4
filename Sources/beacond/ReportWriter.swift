// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import HCI

/// Spells advertising reports for people and tests: `decode` and `replay --emit reports`.
enum ReportWriter {
    /// Writes the members of a report into the current object.
    static func write(_ report: borrowing AdvertisingReport, _ data: Span<UInt8>, _ writer: inout JSONWriter) {
        writer.key("event_type")
        writer.integer(report.eventType.rawValue)
        writer.key("address_type")
        writer.integer(report.address.kind.rawValue)
        writer.key("address")
        writer.address(report.address)
        writer.key("rssi")
        optional(report.rssi, &writer)
        writer.key("data")
        writer.hexadecimal(data)
        guard report.isExtended else { return }
        writer.key("legacy")
        writer.boolean(report.eventType.isLegacyPDU)
        writer.key("tx_power")
        optional(report.txPower, &writer)
        writer.key("sid")
        optional(report.advertisingSID, &writer)
        writer.key("primary_phy")
        writer.integer(report.primaryPHY.rawValue)
        writer.key("secondary_phy")
        writer.integer(report.secondaryPHY.rawValue)
        writer.key("data_status")
        switch report.eventType.dataStatus {
        case .complete: writer.string("complete")
        case .incomplete: writer.string("incomplete")
        case .truncated: writer.string("truncated")
        default: writer.string("reserved")
        }
    }

    static func writeFrames(_ data: Span<UInt8>, _ decoder: FrameDecoder, _ writer: inout JSONWriter) {
        writer.beginArray()
        decoder.forEachFrame(in: data) { frame, payload in decoder.write(frame, payload, into: &writer) }
        writer.endArray()
    }

    /// Writes the reasons that occurred, as an object.
    static func writeMalformed(_ counts: MalformedCounts, _ writer: inout JSONWriter) {
        writer.beginObject()
        for reason in MalformedReason.allCases where counts[reason] > 0 {
            writer.key(reason.word)
            writer.integer(counts[reason])
        }
        writer.endObject()
    }

    private static func optional(_ value: (some FixedWidthInteger)?, _ writer: inout JSONWriter) {
        if let value { writer.integer(value) } else { writer.null() }
    }
}
