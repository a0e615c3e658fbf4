// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI

/// A btsnoop file: the header, the records, and the packets in them at the times that they claim.
///
/// The input is the file. How `CaptureReader` gets at the octets of a real one is left to the unit tests: its buffer
/// would cost more time than all the rest.
func fuzz(_ input: Span<UInt8>) {
    let link: Btsnoop.DataLink
    do {
        link = try Btsnoop.dataLink(of: input)
    } catch {
        return check(!error.description.isEmpty, "an error without words")
    }
    check(input.count >= Btsnoop.headerLength, "a header of \(input.count) octets")
    var parser = AdvertisingReportParser()
    var reader = InputReader(input)
    _ = reader.span(Btsnoop.headerLength)
    while !reader.isAtEnd {
        let header = reader.span(Btsnoop.recordHeaderLength)
        guard header.count == Btsnoop.recordHeaderLength else { break }
        let record = Btsnoop.Record(header)
        checkTime(record.time, header)
        guard record.includedLength <= UInt32(Btsnoop.maximumPacketLength) else { break }
        let octets = reader.span(Int(record.includedLength))
        guard octets.count == Int(record.includedLength) else { break }
        let type = record.packetType(link)
        check(link != .uart || type == nil, "a second packet indicator")
        let packet = (type.map { [$0.rawValue] } ?? []) + octets.array
        var reports = 0
        parser.parse(packet.span, at: record.time) { _, data in
            reports += 1
            check(data.count <= 1650, "\(data.count) octets of data")
        }
        check(reports <= 255, "more reports than one event can hold")
    }
}

/// Holds that a time stamp is the one in the file, or the nearest one that there is.
private func checkTime(_ time: MonotonicTime, _ header: Span<UInt8>) {
    var stamp: UInt64 = 0
    for index in 16..<24 { stamp = stamp << 8 | UInt64(header[index]) }
    let microseconds = Int64(bitPattern: stamp &- 0x00DC_DDB3_0F2F_8000)
    if time.nanoseconds == .max {
        check(microseconds > Int64.max / 1000, "a time stamp at the end of time")
    } else if time.nanoseconds == .min {
        check(microseconds < Int64.min / 1000, "a time stamp at the beginning of time")
    } else {
        check(time.nanoseconds == microseconds * 1000, "another time stamp")
    }
}
