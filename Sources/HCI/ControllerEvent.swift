// SPDX-License-Identifier: Apache-2.0

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
        guard Self.isWhole(packet) else { return nil }
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

    /// How many commands the controller has room for (Num_HCI_Command_Packets), which Command Complete and Command
    /// Status tell, also those that answer no command; nil for other packets.
    public static func credits(_ packet: Span<UInt8>) -> UInt8? {
        guard isWhole(packet) else { return nil }
        return switch EventCode(rawValue: packet[1]) {
        case .commandComplete where packet[2] >= 3: packet[3]
        case .commandStatus where packet[2] >= 4: packet[4]
        default: nil
        }
    }

    private static func isWhole(_ packet: Span<UInt8>) -> Bool {
        packet.count >= 3 && packet[0] == PacketType.event.rawValue && packet.count >= 3 + Int(packet[2])
    }
}
