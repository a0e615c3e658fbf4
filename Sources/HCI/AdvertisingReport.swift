// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// One advertisement as a controller reports it: LE Advertising Report (Core 5.4, Vol 4, Part E, 7.7.65.2) or LE
/// Extended Advertising Report (7.7.65.13), without the data.
public struct AdvertisingReport: Sendable {
    /// Which of the two events it came in.
    public var isExtended: Bool
    public var eventType: AdvertisingEventType
    public var address: DeviceAddress
    /// dBm, −128 to 20; nil when the controller did not measure it (0x7F).
    public var rssi: Int8?
    /// The power at which the advertiser sent, dBm, −127 to 20; nil when not known (0x7F) and in legacy reports.
    public var txPower: Int8?
    /// Advertising set, 0 to 15; nil when there is none (0xFF) and in legacy reports.
    public var advertisingSID: UInt8?
    public var primaryPHY: PHY
    public var secondaryPHY: PHY

    /// Whether an advertisement with data that was sent in answer to a scan request.
    public var isScanResponse: Bool {
        isExtended ? eventType.isExtendedScanResponse : eventType == .legacyScanResponse
    }
}

/// The event type as it stands in the report: one octet of enumerated values in a legacy report, sixteen bits of flags
/// in an extended one. Unknown values are kept.
public struct AdvertisingEventType: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// SCAN_RSP in a legacy report.
    public static let legacyScanResponse = AdvertisingEventType(rawValue: 0x04)

    /// Flag of an extended report: the advertisement is a scan response.
    public var isExtendedScanResponse: Bool { rawValue & 0x08 != 0 }
    /// Flag of an extended report: a legacy PDU.
    public var isLegacyPDU: Bool { rawValue & 0x10 != 0 }
    /// Flags of an extended report: what became of the data.
    public var dataStatus: AdvertisingDataStatus { AdvertisingDataStatus(rawValue: UInt8(rawValue >> 5 & 3)) }

    /// The same flags with the data status `complete`, for a report that was joined from fragments.
    var joined: Self { Self(rawValue: rawValue & ~0x60) }
}

/// Data status of an extended report.
public struct AdvertisingDataStatus: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let complete = AdvertisingDataStatus(rawValue: 0)
    /// More fragments follow.
    public static let incomplete = AdvertisingDataStatus(rawValue: 1)
    /// Data was lost, no more fragments follow.
    public static let truncated = AdvertisingDataStatus(rawValue: 2)
}

/// Physical layer of an advertisement.
public struct PHY: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let none = PHY(rawValue: 0)
    public static let le1M = PHY(rawValue: 1)
    public static let le2M = PHY(rawValue: 2)
    public static let leCoded = PHY(rawValue: 3)
}
