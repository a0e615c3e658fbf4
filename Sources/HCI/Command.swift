// SPDX-License-Identifier: Apache-2.0

/// The number of a command: group (OGF, 6 bits) and command (OCF, 10 bits).
public struct Opcode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

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

    /// LE Set Extended Scan Parameters (7.8.64) on the 1M PHY: own address public, no filter.
    public static func leSetExtendedScanParameters(_ parameters: ScanParameters) -> Command {
        Command(
            .leSetExtendedScanParameters,
            [0, 0, 0x01, parameters.isActive ? 1 : 0] + littleEndian(parameters.interval.slots)
                + littleEndian(parameters.window.slots))
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
    public static let commandDisallowed = Status(rawValue: 0x0C)

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

/// An answer to a command, or another event that the driver of a controller minds.
public enum ControllerEvent: Equatable, Sendable {
    /// Command Complete (7.7.14), with the return parameters behind the status.
    case commandComplete(Opcode, Status, parameters: [UInt8])
    /// Command Status (7.7.15).
    case commandStatus(Opcode, Status)
    /// Hardware Error (7.7.16).
    case hardwareError(code: UInt8)

    /// nil for other events, and for those that are too short.
    public init?(_ packet: Span<UInt8>) {
        guard packet.count >= 3, packet[0] == PacketType.event.rawValue, packet.count >= 3 + Int(packet[2]) else {
            return nil
        }
        let parameters = packet.extracting(3..<3 + Int(packet[2]))
        switch EventCode(rawValue: packet[1]) {
        case .commandComplete:
            // Number of commands that may be sent, opcode, status.
            guard parameters.count >= 4 else { return nil }
            self = .commandComplete(
                Opcode(rawValue: parameters.littleEndian16(at: 1)), Status(rawValue: parameters[3]),
                parameters: (4..<parameters.count).map { parameters[$0] })
        case .commandStatus:
            guard parameters.count >= 4 else { return nil }
            self = .commandStatus(
                Opcode(rawValue: parameters.littleEndian16(at: 2)), Status(rawValue: parameters[0]))
        case .hardwareError:
            guard parameters.count >= 1 else { return nil }
            self = .hardwareError(code: parameters[0])
        default: return nil
        }
    }
}
