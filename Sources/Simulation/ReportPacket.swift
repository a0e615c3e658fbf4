// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// One advertisement as the H4 packet that a controller sends for it: an HCI event with a single report.
///
/// Written apart from the parser in `HCI`, so that what one of them gets wrong does not cancel out.
struct ReportPacket {
    var address: DeviceAddress
    /// dBm, −127 to 20.
    var rssi: Int8
    /// At most 31 octets.
    var data: [UInt8]

    /// LE Advertising Report (Core 5.4, Vol 4, Part E, 7.7.65.2) of an ADV_NONCONN_IND.
    func writeLegacy(into packet: inout [UInt8]) {
        begin(&packet, subevent: 0x02, parameters: 12)
        packet.append(0x03)
        packet.append(address.kind.rawValue)
        append(address, to: &packet)
        packet.append(UInt8(truncatingIfNeeded: data.count))
        packet.append(contentsOf: data)
        packet.append(UInt8(bitPattern: rssi))
    }

    /// LE Extended Advertising Report (7.7.65.13) of the same legacy PDU.
    func writeExtended(into packet: inout [UInt8]) {
        begin(&packet, subevent: 0x0D, parameters: 26)
        // Event type: legacy ADV_NONCONN_IND, complete.
        packet.append(0x10)
        packet.append(0x00)
        packet.append(address.kind.rawValue)
        append(address, to: &packet)
        // Primary PHY LE 1M, no packets on the secondary channel, no advertising SID, TX power not available.
        packet.append(0x01)
        packet.append(0x00)
        packet.append(0xFF)
        packet.append(0x7F)
        packet.append(UInt8(bitPattern: rssi))
        // No periodic advertising (2 octets), and direct address type and address, which mean nothing here (7).
        for _ in 0..<9 { packet.append(0x00) }
        packet.append(UInt8(truncatingIfNeeded: data.count))
        packet.append(contentsOf: data)
    }

    /// H4 type, event code LE Meta, length, subevent code and a count of one.
    private func begin(_ packet: inout [UInt8], subevent: UInt8, parameters: Int) {
        packet.removeAll(keepingCapacity: true)
        packet.append(0x04)
        packet.append(0x3E)
        packet.append(UInt8(truncatingIfNeeded: parameters + data.count))
        packet.append(subevent)
        packet.append(0x01)
    }

    private func append(_ address: DeviceAddress, to packet: inout [UInt8]) {
        for shift in stride(from: 0, to: 48, by: 8) {
            packet.append(UInt8(truncatingIfNeeded: address.value >> UInt64(shift)))
        }
    }
}
