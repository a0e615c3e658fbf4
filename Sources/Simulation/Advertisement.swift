// SPDX-License-Identifier: Apache-2.0

/// What a beacon says in each advertisement.
public enum Advertisement: Equatable, Sendable {
    /// Apple's Proximity Beacon; `uuid` has 16 octets.
    case iBeacon(uuid: [UInt8], major: UInt16, minor: UInt16)
    /// AltBeacon 1.0 of Radius Networks; `id1` has 16 octets.
    case altBeacon(id1: [UInt8], id2: UInt16, id3: UInt16)
    /// Eddystone-UID; `namespace` has 10 octets, `instance` 6.
    case eddystoneUID(namespace: [UInt8], instance: [UInt8])
    /// Octets as they are, at most 31.
    case payload([UInt8])

    /// The longest AdvData of a legacy advertisement (Core 5.4, Vol 6, Part B, 2.3.1).
    public static let capacity = 31

    /// AdvData: AD structures from flags on.
    ///
    /// - Precondition: every part has its octets; the reader of scenario files makes sure of it.
    func octets(measuredPower: Int8) -> [UInt8] {
        // LE General Discoverable, BR/EDR Not Supported.
        let flags: [UInt8] = [0x02, 0x01, 0x06]
        let power = UInt8(bitPattern: measuredPower)
        func bigEndian(_ numbers: UInt16...) -> [UInt8] {
            numbers.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        }
        let octets: [UInt8]
        switch self {
        case .iBeacon(let uuid, let major, let minor):
            precondition(uuid.count == 16, "the UUID of an iBeacon is 16 octets")
            octets = flags + [0x1A, 0xFF, 0x4C, 0x00, 0x02, 0x15] + uuid + bigEndian(major, minor) + [power]
        case .altBeacon(let id1, let id2, let id3):
            precondition(id1.count == 16, "the first id of an AltBeacon is 16 octets")
            octets = flags + [0x1B, 0xFF, 0x18, 0x01, 0xBE, 0xAC] + id1 + bigEndian(id2, id3) + [power, 0x00]
        case .eddystoneUID(let namespace, let instance):
            precondition(namespace.count == 10 && instance.count == 6, "an Eddystone UID is 10 and 6 octets")
            octets =
                flags + [0x03, 0x03, 0xAA, 0xFE, 0x17, 0x16, 0xAA, 0xFE, 0x00, Self.powerAtOrigin(measuredPower)]
                + namespace + instance + [0x00, 0x00]
        case .payload(let payload):
            octets = payload
        }
        precondition(octets.count <= Self.capacity, "a legacy advertisement has at most 31 octets")
        return octets
    }

    /// Eddystone claims the strength at 0 m, by its specification 41 dB above that at 1 m.
    private static func powerAtOrigin(_ measuredPower: Int8) -> UInt8 {
        UInt8(bitPattern: Int8(clamping: Int(measuredPower) + 41))
    }
}
