// SPDX-License-Identifier: Apache-2.0

/// An answer to a command, or another event that the driver of a controller minds.
public enum ControllerEvent: Equatable, Sendable {
    /// Command Complete (7.7.14), with the return parameters behind the status and the number of commands that may be
    /// sent now (Num_HCI_Command_Packets).
    case commandComplete(Opcode, Status, parameters: [UInt8], credits: UInt8)
    /// Command Status (7.7.15).
    case commandStatus(Opcode, Status, credits: UInt8)
    /// Command Complete for no command: only the number of commands that may be sent now.
    case credits(UInt8)
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
            guard parameters.count >= 3 else { return nil }
            let opcode = Opcode(rawValue: parameters.littleEndian16(at: 1))
            guard opcode.rawValue != 0 else {
                self = .credits(parameters[0])
                return
            }
            guard parameters.count >= 4 else { return nil }
            self = .commandComplete(
                opcode, Status(rawValue: parameters[3]), parameters: (4..<parameters.count).map { parameters[$0] },
                credits: parameters[0])
        case .commandStatus:
            guard parameters.count >= 4 else { return nil }
            let opcode = Opcode(rawValue: parameters.littleEndian16(at: 2))
            self =
                opcode.rawValue == 0
                ? .credits(parameters[1])
                : .commandStatus(opcode, Status(rawValue: parameters[0]), credits: parameters[1])
        case .hardwareError:
            guard parameters.count >= 1 else { return nil }
            self = .hardwareError(code: parameters[0])
        default: return nil
        }
    }
}
