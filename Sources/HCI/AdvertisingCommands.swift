// SPDX-License-Identifier: Apache-2.0

extension Opcode {
    /// 7.8.5
    public static let leSetAdvertisingParameters = Opcode(rawValue: 0x2006)
    /// 7.8.7
    public static let leSetAdvertisingData = Opcode(rawValue: 0x2008)
    /// 7.8.9
    public static let leSetAdvertisingEnable = Opcode(rawValue: 0x200A)
    /// 7.8.53
    public static let leSetExtendedAdvertisingParameters = Opcode(rawValue: 0x2036)
    /// 7.8.54
    public static let leSetExtendedAdvertisingData = Opcode(rawValue: 0x2037)
    /// 7.8.56
    public static let leSetExtendedAdvertisingEnable = Opcode(rawValue: 0x2039)
    /// 7.8.59
    public static let leRemoveAdvertisingSet = Opcode(rawValue: 0x203C)

    /// The names of the commands in this file.
    static let advertisingNames: [Opcode: String] = [
        .leSetAdvertisingParameters: "LE Set Advertising Parameters",
        .leSetAdvertisingData: "LE Set Advertising Data",
        .leSetAdvertisingEnable: "LE Set Advertising Enable",
        .leSetExtendedAdvertisingParameters: "LE Set Extended Advertising Parameters",
        .leSetExtendedAdvertisingData: "LE Set Extended Advertising Data",
        .leSetExtendedAdvertisingEnable: "LE Set Extended Advertising Enable",
        .leRemoveAdvertisingSet: "LE Remove Advertising Set",
    ]
}

/// What a controller advertises: a legacy PDU that nobody can connect to and nobody can scan (ADV_NONCONN_IND), which
/// every receiver hears, whichever commands the controller takes.
public struct AdvertisingParameters: Equatable, Sendable {
    /// Time between two advertisements in slots of 0.625 ms, within 32 to 16,384 (20 ms to 10.24 s).
    public let intervalSlots: UInt16
    /// AD structures, at most 31 octets.
    public let data: [UInt8]

    /// Octets that a legacy advertisement has room for (Core 5.4, Vol 6, Part B, 2.3.1).
    public static let maximumData = 31

    /// - Parameters:
    ///   - nanoseconds: the interval, brought into the range.
    ///   - data: nil is returned when it is longer than ``maximumData``.
    public init?(nanoseconds: Int64, data: [UInt8]) {
        guard data.count <= Self.maximumData else { return nil }
        intervalSlots = UInt16(max(32, min(16_384, nanoseconds / 625_000)))
        self.data = data
    }
}

extension Command {
    /// The set of advertising that is ours among the sets of a controller with extended commands. The kernel numbers
    /// its own from 0 up, so the last number (7.8.53) is the one that it does not come to.
    private static let advertisingHandle: UInt8 = 0xEF

    /// LE Set Advertising Parameters (7.8.5): ADV_NONCONN_IND, own address public, all three channels, no filter.
    public static func leSetAdvertisingParameters(_ parameters: AdvertisingParameters) -> Command {
        let interval = octets(parameters.intervalSlots)
        return Command(
            .leSetAdvertisingParameters,
            interval + interval + [0x03, 0, 0] + [UInt8](repeating: 0, count: 6) + [0x07, 0])
    }

    /// LE Set Advertising Data (7.8.7): always 31 octets behind the length.
    public static func leSetAdvertisingData(_ parameters: AdvertisingParameters) -> Command {
        let padding = [UInt8](repeating: 0, count: AdvertisingParameters.maximumData - parameters.data.count)
        return Command(.leSetAdvertisingData, [UInt8(parameters.data.count)] + parameters.data + padding)
    }

    /// LE Set Advertising Enable (7.8.9).
    public static func leSetAdvertisingEnable(_ isEnabled: Bool) -> Command {
        Command(.leSetAdvertisingEnable, [isEnabled ? 1 : 0])
    }

    /// LE Set Extended Advertising Parameters (7.8.53): the legacy PDU ADV_NONCONN_IND (event properties 0x0010) on the
    /// 1M PHY, own address public, all three channels, no filter, no preference for the power, SID 0.
    public static func leSetExtendedAdvertisingParameters(_ parameters: AdvertisingParameters) -> Command {
        let interval = octets(parameters.intervalSlots) + [0]
        return Command(
            .leSetExtendedAdvertisingParameters,
            [advertisingHandle, 0x10, 0x00] + interval + interval + [0x07, 0, 0] + [UInt8](repeating: 0, count: 6)
                + [0, 0x7F, 0x01, 0, 0x01, 0, 0])
    }

    /// LE Set Extended Advertising Data (7.8.54): complete, not to be fragmented.
    public static func leSetExtendedAdvertisingData(_ parameters: AdvertisingParameters) -> Command {
        Command(
            .leSetExtendedAdvertisingData,
            [advertisingHandle, 0x03, 0x01, UInt8(parameters.data.count)] + parameters.data)
    }

    /// LE Set Extended Advertising Enable (7.8.56) for our set alone: until disabled, without a count of events.
    public static func leSetExtendedAdvertisingEnable(_ isEnabled: Bool) -> Command {
        Command(.leSetExtendedAdvertisingEnable, [isEnabled ? 1 : 0, 1, advertisingHandle, 0, 0, 0])
    }

    /// LE Remove Advertising Set (7.8.59): gives our set back.
    public static let leRemoveAdvertisingSet = Command(.leRemoveAdvertisingSet, [advertisingHandle])

    private static func octets(_ value: UInt16) -> [UInt8] {
        [UInt8(truncatingIfNeeded: value), UInt8(value >> 8)]
    }
}

extension Status {
    /// There is no such set of advertising.
    public static let unknownAdvertisingIdentifier = Status(rawValue: 0x42)
}
