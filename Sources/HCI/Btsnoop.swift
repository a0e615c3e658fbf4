// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// The btsnoop file format: a header of 16 octets and records, everything big-endian (the layout of RFC 1761 with the
/// data links and the epoch of Bluetooth, as in BlueZ's btsnoop description).
public enum Btsnoop {
    /// Octets of the file header.
    public static let headerLength = 16
    /// Octets of a record's header.
    public static let recordHeaderLength = 24
    /// Longest packet of a record that can be meant: an HCI ACL packet has at most 4 + 65,535 octets.
    public static let maximumPacketLength = 65_540

    /// What the records hold.
    public enum DataLink: UInt32, Sendable {
        /// HCI packets without a packet indicator; the record's flags tell commands and events from data.
        case unencapsulated = 1001
        /// HCI packets with the H4 packet indicator in front.
        case uart = 1002
        /// The Linux monitor channel: the record's flags hold adapter index and opcode.
        case linuxMonitor = 2001
    }

    /// Why a file is no btsnoop file.
    public enum HeaderError: Error, Equatable, CustomStringConvertible {
        case tooShort
        case notBtsnoop
        case version(UInt32)
        case dataLink(UInt32)

        public var description: String {
            switch self {
            case .tooShort: "the file is shorter than a btsnoop header"
            case .notBtsnoop: "the file does not begin with \"btsnoop\""
            case .version(let version): "btsnoop version \(version), expected 1"
            case .dataLink(let link):
                "btsnoop data link \(link), expected 1001 (HCI), 1002 (H4) or 2001 (Linux monitor)"
            }
        }
    }

    /// The data link of a file that begins with these octets.
    public static func dataLink(of header: Span<UInt8>) throws(HeaderError) -> DataLink {
        guard header.count >= headerLength else { throw .tooShort }
        let identification: [8 of UInt8] = [0x62, 0x74, 0x73, 0x6E, 0x6F, 0x6F, 0x70, 0x00]
        for index in identification.indices where header[index] != identification[index] { throw .notBtsnoop }
        let version = header.bigEndian32(at: 8)
        guard version == 1 else { throw .version(version) }
        let number = header.bigEndian32(at: 12)
        guard let link = DataLink(rawValue: number) else { throw .dataLink(number) }
        return link
    }

    /// The header of one record.
    public struct Record: Sendable {
        /// Octets of the packet that follow in the file.
        public var includedLength: UInt32
        public var originalLength: UInt32
        public var flags: UInt32
        /// Nanoseconds since 1970, on the clock of the machine that recorded.
        public var time: MonotonicTime

        /// - Precondition: at least ``recordHeaderLength`` octets.
        public init(_ header: Span<UInt8>) {
            originalLength = header.bigEndian32(at: 0)
            includedLength = header.bigEndian32(at: 4)
            flags = header.bigEndian32(at: 8)
            // Microseconds since the year 0 AD; 0x00DCDDB30F2F8000 is the beginning of 1970.
            let stamp = UInt64(header.bigEndian32(at: 16)) << 32 | UInt64(header.bigEndian32(at: 20))
            let microseconds = Int64(truncatingIfNeeded: stamp &- 0x00DC_DDB3_0F2F_8000)
            let (nanoseconds, overflow) = microseconds.multipliedReportingOverflow(by: 1000)
            time = MonotonicTime(nanoseconds: overflow ? (microseconds < 0 ? .min : .max) : nanoseconds)
        }

        /// The H4 packet indicator of the record's packet when the packet itself has none in front; nil when the record
        /// holds no HCI packet (a note of the monitor).
        public func packetType(_ link: DataLink) -> PacketType? {
            switch link {
            case .uart: nil
            case .unencapsulated:
                // Bit 1: command or event; bit 0: received.
                flags & 2 != 0 ? (flags & 1 != 0 ? .event : .command) : .aclData
            case .linuxMonitor:
                switch flags & 0xFFFF {
                case 2: .command
                case 3: .event
                case 4, 5: .aclData
                case 6, 7: .synchronousData
                case 18, 19: .isochronousData
                default: nil
                }
            }
        }
    }
}

extension Span where Element == UInt8 {
    /// Four octets at `offset`, the high one first. The caller has checked the length.
    @inline(__always)
    func bigEndian32(at offset: Int) -> UInt32 {
        // Of a slice of a known length the compiler makes a single load.
        let octets = extracting(offset..<offset + 4)
        return UInt32(octets[0]) << 24 | UInt32(octets[1]) << 16 | UInt32(octets[2]) << 8 | UInt32(octets[3])
    }
}
