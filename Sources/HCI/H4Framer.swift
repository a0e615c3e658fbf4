// SPDX-License-Identifier: Apache-2.0

/// Cuts a stream of octets into HCI packets (the UART transport H4: Core 5.4, Vol 4, Part A).
///
/// Octets come in any pieces. Only events and commands are handed out; data packets, which a scanner has no use for, are
/// passed over. An octet that begins no packet means that the stream is out of step, as after a lost octet on a line:
/// the way back is Reset and the answer to it, for which the framer then looks.
public struct H4Framer: Sendable {
    /// Room that a packet which is handed out needs: indicator, event header or command header, 255 octets.
    public static let packetCapacity = 259

    /// Octets that begin no packet.
    public private(set) var unknownPacketCount: UInt64 = 0
    /// Whether the beginning of packets is lost. It ends with the answer to Reset.
    public private(set) var isOutOfStep = false

    private var octets: [UInt8] = []
    /// First octet that was not used.
    private var head = 0
    /// Octets of a data packet that are still to be passed over.
    private var surplus = 0

    public init() {}

    /// Takes the first `count` octets of `piece`.
    public mutating func append(_ piece: [UInt8], count: Int) {
        if head == octets.count {
            octets.removeAll(keepingCapacity: true)
            head = 0
        } else if head > 4096 {
            octets.removeSubrange(..<head)
            head = 0
        }
        octets.append(contentsOf: piece.prefix(count))
    }

    /// Takes the next whole packet: its length, or nil when more octets are needed.
    ///
    /// - Parameter packet: gets the packet at its front, with the packet indicator; at least ``packetCapacity`` octets.
    public mutating func next(into packet: inout [UInt8]) -> Int? {
        while head < octets.count {
            if surplus > 0 {
                let passed = min(surplus, octets.count - head)
                head += passed
                surplus -= passed
                continue
            }
            if isOutOfStep, !findAnswerToReset() { return nil }
            guard let header = Self.headerLength(PacketType(rawValue: octets[head])) else {
                unknownPacketCount += 1
                isOutOfStep = true
                continue
            }
            guard octets.count - head >= header else { return nil }
            let type = PacketType(rawValue: octets[head])
            guard type == .event || type == .command else {
                surplus = header + dataLength(type)
                continue
            }
            let length = header + Int(octets[head + header - 1])
            guard octets.count - head >= length else { return nil }
            guard length <= packet.count else {
                head += length
                continue
            }
            for index in 0..<length { packet[index] = octets[head + index] }
            head += length
            return length
        }
        return nil
    }

    /// Octets up to and including the length; nil for an octet that begins no packet.
    private static func headerLength(_ type: PacketType) -> Int? {
        switch type {
        case .event: 3
        case .command, .synchronousData: 4
        case .aclData, .isochronousData: 5
        default: nil
        }
    }

    private func dataLength(_ type: PacketType) -> Int {
        switch type {
        case .synchronousData: Int(octets[head + 3])
        // The upper two bits of an isochronous length are reserved.
        case .isochronousData: Int(octets[head + 3]) | Int(octets[head + 4] & 0x3F) << 8
        default: Int(octets[head + 3]) | Int(octets[head + 4]) << 8
        }
    }

    /// Drops octets up to a Command Complete of Reset; false when there is none yet.
    private mutating func findAnswerToReset() -> Bool {
        // Indicator, event code, length, number of commands (any), opcode.
        let answer: [6 of UInt8?] = [0x04, 0x0E, 0x04, nil, 0x03, 0x0C]
        while octets.count - head >= 6 {
            var isAnswer = true
            for index in 0..<6 {
                if let octet = answer[index], octets[head + index] != octet { isAnswer = false }
            }
            if isAnswer {
                isOutOfStep = false
                return true
            }
            head += 1
        }
        return false
    }
}
