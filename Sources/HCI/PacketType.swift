// SPDX-License-Identifier: Apache-2.0

/// HCI packet indicator of the UART transport, the octet in front of each packet (Core 5.4, Vol 4, Part A, 2).
public struct PacketType: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let command = PacketType(rawValue: 0x01)
    public static let aclData = PacketType(rawValue: 0x02)
    public static let synchronousData = PacketType(rawValue: 0x03)
    public static let event = PacketType(rawValue: 0x04)
    public static let isochronousData = PacketType(rawValue: 0x05)
}

/// HCI event code (Core 5.4, Vol 4, Part E, 7.7).
public struct EventCode: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let commandComplete = EventCode(rawValue: 0x0E)
    public static let commandStatus = EventCode(rawValue: 0x0F)
    public static let hardwareError = EventCode(rawValue: 0x10)
    public static let leMeta = EventCode(rawValue: 0x3E)
}

/// Subevent code of an LE Meta event (Core 5.4, Vol 4, Part E, 7.7.65).
public struct LESubevent: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let advertisingReport = LESubevent(rawValue: 0x02)
    public static let extendedAdvertisingReport = LESubevent(rawValue: 0x0D)
}
