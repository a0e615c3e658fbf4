// SPDX-License-Identifier: Apache-2.0

/// The number of a command: group (OGF, 6 bits) and command (OCF, 10 bits).
public struct Opcode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// 7.3.1
    public static let setEventMask = Opcode(rawValue: 0x0C01)
    /// 7.3.2
    public static let reset = Opcode(rawValue: 0x0C03)
    /// 7.4.1
    public static let readLocalVersionInformation = Opcode(rawValue: 0x1001)
    /// 7.4.6
    public static let readBDADDR = Opcode(rawValue: 0x1009)
    /// 7.8.1
    public static let leSetEventMask = Opcode(rawValue: 0x2001)
    /// 7.8.3
    public static let leReadLocalSupportedFeatures = Opcode(rawValue: 0x2003)
    /// 7.4.2
    public static let readLocalSupportedCommands = Opcode(rawValue: 0x1002)
    /// 7.8.10
    public static let leSetScanParameters = Opcode(rawValue: 0x200B)
    /// 7.8.11
    public static let leSetScanEnable = Opcode(rawValue: 0x200C)
    /// 7.8.64
    public static let leSetExtendedScanParameters = Opcode(rawValue: 0x2041)
    /// 7.8.65
    public static let leSetExtendedScanEnable = Opcode(rawValue: 0x2042)

    public var description: String {
        switch self {
        case .setEventMask: "Set Event Mask"
        case .reset: "Reset"
        case .readLocalVersionInformation: "Read Local Version Information"
        case .readBDADDR: "Read BD_ADDR"
        case .leSetEventMask: "LE Set Event Mask"
        case .leReadLocalSupportedFeatures: "LE Read Local Supported Features"
        case .readLocalSupportedCommands: "Read Local Supported Commands"
        case .leSetScanParameters: "LE Set Scan Parameters"
        case .leSetScanEnable: "LE Set Scan Enable"
        case .leSetExtendedScanParameters: "LE Set Extended Scan Parameters"
        case .leSetExtendedScanEnable: "LE Set Extended Scan Enable"
        default: Self.advertisingNames[self] ?? "command 0x\(String(rawValue, radix: 16))"
        }
    }
}

/// A command for a controller (Core 5.4, Vol 4, Part E, 5.4.1). Sections in the comments are of that part.
public struct Command: Equatable, Sendable {
    public var opcode: Opcode
    public var parameters: [UInt8]

    /// - Parameter parameters: at most 255 octets.
    public init(_ opcode: Opcode, _ parameters: [UInt8] = []) {
        precondition(parameters.count <= 255, "the parameter length is one octet")
        self.opcode = opcode
        self.parameters = parameters
    }

    /// The packet with its H4 packet indicator in front.
    public var packet: [UInt8] {
        [
            PacketType.command.rawValue, UInt8(truncatingIfNeeded: opcode.rawValue), UInt8(opcode.rawValue >> 8),
            UInt8(parameters.count),
        ] + parameters
    }

    /// The command in a packet with its H4 packet indicator in front; nil for other packets and those that are cut.
    public init?(packet: Span<UInt8>) {
        guard packet.count >= 4, packet[0] == PacketType.command.rawValue, packet.count >= 4 + Int(packet[3]) else {
            return nil
        }
        opcode = Opcode(rawValue: packet.littleEndian16(at: 1))
        parameters = (4..<4 + Int(packet[3])).map { packet[$0] }
    }

    /// LE Set Event Mask (7.8.1): advertising reports and, where the controller has them, the extended ones. Nothing
    /// else, because nothing else is read.
    public static func leSetEventMask(extendedReports: Bool) -> Command {
        Command(.leSetEventMask, [0x02, extendedReports ? 0x10 : 0, 0, 0, 0, 0, 0, 0])
    }

    /// Set Event Mask (7.3.1): the default, and LE Meta (bit 61), which the default leaves out.
    public static let setEventMask = Command(.setEventMask, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 0, 0x20])

    /// LE Set Scan Parameters (7.8.10): own address public, no filter.
    public static func leSetScanParameters(_ parameters: ScanParameters) -> Command {
        Command(
            .leSetScanParameters,
            [parameters.isActive ? 1 : 0] + littleEndian(parameters.interval.slots)
                + littleEndian(parameters.window.slots) + [0, 0])
    }

    /// LE Set Scan Enable (7.8.11). The controller's filter for duplicates is off: every advertisement is evidence.
    public static func leSetScanEnable(_ isEnabled: Bool) -> Command {
        Command(.leSetScanEnable, [isEnabled ? 1 : 0, 0])
    }

    /// LE Set Extended Scan Parameters (7.8.64) on the 1M PHY and, if wanted, the Coded PHY: own address public, no
    /// filter.
    ///
    /// The Coded PHY gets three times the interval and the window, as Linux itself asks for, because a packet takes up to
    /// eight times as long there.
    public static func leSetExtendedScanParameters(_ parameters: ScanParameters, onCodedPHY: Bool = false) -> Command {
        let type: UInt8 = parameters.isActive ? 1 : 0
        let interval = parameters.interval.slots
        let window = parameters.window.slots
        // 16,384 slots at most, so three times as many fit in 16 bits.
        let coded = onCodedPHY ? [type] + littleEndian(interval * 3) + littleEndian(window * 3) : []
        return Command(
            .leSetExtendedScanParameters,
            [0, 0, onCodedPHY ? 0x05 : 0x01, type] + littleEndian(interval) + littleEndian(window) + coded)
    }

    /// LE Set Extended Scan Enable (7.8.65): no filter for duplicates, until disabled, without pauses.
    public static func leSetExtendedScanEnable(_ isEnabled: Bool) -> Command {
        Command(.leSetExtendedScanEnable, [isEnabled ? 1 : 0, 0, 0, 0, 0, 0])
    }

    private static func littleEndian(_ value: UInt16) -> [UInt8] {
        [UInt8(truncatingIfNeeded: value), UInt8(value >> 8)]
    }
}

/// How a controller scans.
public struct ScanParameters: Equatable, Sendable {
    /// A scan interval or window in slots of 0.625 ms, within 4 to 16,384 (2.5 ms to 10.24 s).
    public struct Duration: Comparable, Sendable {
        public let slots: UInt16

        /// - Parameter nanoseconds: brought into the range.
        public init(nanoseconds: Int64) {
            slots = UInt16(max(4, min(16_384, nanoseconds / 625_000)))
        }

        public var nanoseconds: Int64 { Int64(slots) * 625_000 }

        public static func < (left: Self, right: Self) -> Bool { left.slots < right.slots }
    }

    public var interval: Duration
    public var window: Duration
    /// Asks advertisers for scan responses, which costs them and us power.
    public var isActive: Bool

    /// A window longer than the interval is cut to it.
    public init(interval: Duration, window: Duration, isActive: Bool) {
        self.interval = interval
        self.window = min(window, interval)
        self.isActive = isActive
    }
}

/// What a controller answers to a command: HCI status codes (Core 5.4, Vol 1, Part F). Unknown values are kept.
public struct Status: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let success = Status(rawValue: 0x00)
    public static let unknownCommand = Status(rawValue: 0x01)
    public static let commandDisallowed = Status(rawValue: 0x0C)
    public static let unsupportedFeature = Status(rawValue: 0x11)
    public static let invalidParameters = Status(rawValue: 0x12)

    /// Whether it says what the controller cannot do, as against what it would not do just now.
    public var isLackOfSupport: Bool {
        self == .unknownCommand || self == .unsupportedFeature || self == .invalidParameters
    }

    public var description: String {
        switch rawValue {
        case 0x00: "success"
        case 0x01: "unknown command (0x01)"
        case 0x0C: "command disallowed (0x0C)"
        case 0x11: "unsupported feature (0x11)"
        case 0x12: "invalid parameters (0x12)"
        default: "status 0x\(String(rawValue, radix: 16))"
        }
    }
}
