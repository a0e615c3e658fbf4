// SPDX-License-Identifier: Apache-2.0

extension Btsnoop {
    /// The header of a file whose records hold H4 packets (data link 1002).
    public static let uartHeader: [UInt8] =
        [0x62, 0x74, 0x73, 0x6E, 0x6F, 0x6F, 0x70, 0x00] + bigEndian(1) + bigEndian(DataLink.uart.rawValue)

    /// Appends a record that holds a packet, its H4 packet indicator in front. The flags say what a reader that looks at
    /// them wants to know: bit 0 for what came from the controller, bit 1 for commands and events.
    ///
    /// - Parameter microseconds: since 1970.
    public static func append(_ packet: Span<UInt8>, at microseconds: Int64, to bytes: inout [UInt8]) {
        let length = UInt32(packet.count)
        let type = packet.isEmpty ? PacketType.event : PacketType(rawValue: packet[0])
        let isReceived = type != .command
        let isControl = type == .command || type == .event
        bytes += bigEndian(length)
        bytes += bigEndian(length)
        bytes += bigEndian((isReceived ? 1 : 0) | (isControl ? 2 : 0))
        // Lost packets before this one: none that anybody counted.
        bytes += bigEndian(0)
        let stamp = UInt64(bitPattern: microseconds) &+ 0x00DC_DDB3_0F2F_8000
        bytes += bigEndian(UInt32(truncatingIfNeeded: stamp >> 32))
        bytes += bigEndian(UInt32(truncatingIfNeeded: stamp))
        for index in packet.indices { bytes.append(packet[index]) }
    }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}
