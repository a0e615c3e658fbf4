// SPDX-License-Identifier: Apache-2.0

/// The advertising data of an iBeacon, for a machine that acts as one: the other way round of the decoder.
public struct IBeaconAdvertisement: Equatable, Sendable {
    /// 16 octets, most significant first.
    public let uuid: [UInt8]
    public let major: UInt16
    public let minor: UInt16
    /// Strength at 1 m in dBm, as receivers will reckon distances with it.
    public let measuredPower: Int8

    /// nil unless the UUID has 16 octets.
    public init?(uuid: [UInt8], major: UInt16, minor: UInt16, measuredPower: Int8) {
        guard uuid.count == 16 else { return nil }
        self.uuid = uuid
        self.major = major
        self.minor = minor
        self.measuredPower = measuredPower
    }

    /// Two AD structures, 30 octets: flags (LE general discoverable, no BR/EDR; what receivers that look at them expect)
    /// and the manufacturer specific data of the Proximity Beacon Specification.
    public var data: [UInt8] {
        [0x02, 0x01, 0x06, 0x1A, 0xFF, 0x4C, 0x00, 0x02, 0x15] + uuid
            + [
                UInt8(major >> 8), UInt8(truncatingIfNeeded: major), UInt8(minor >> 8),
                UInt8(truncatingIfNeeded: minor), UInt8(bitPattern: measuredPower),
            ]
    }
}
