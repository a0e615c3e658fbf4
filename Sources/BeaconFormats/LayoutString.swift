// SPDX-License-Identifier: Apache-2.0

/// A beacon format in one line, as the AltBeacon library for Android takes it (class `BeaconParser`, method
/// `setBeaconLayout`): `m:2-3=0215,i:4-19,i:20-21,i:22-23,p:24-24`.
///
/// Terms are separated by commas. Offsets are decimal and inclusive, and count from the company id of manufacturer data
/// or from the service UUID of service data, which are octets 0 and 1.
///
/// | term | meaning |
/// | --- | --- |
/// | `m:2-3=beac` | the octets that mark the format, most significant first; several must all fit |
/// | `s:0-1=feaa` | service data of this 16-bit UUID instead of manufacturer data; then `m` may be missing |
/// | `i:4-19` | an identifier; with `l` little-endian, with `v` (the last one) as short as the frame ends |
/// | `p:24-24` | strength at 1 m, one signed octet; `p:3-3:-41` adds to it, `p:-:-59` is the same for every frame |
/// | `d:25-25` | a value that goes along; with `l` little-endian |
/// | `x` | frames that go with those of another layout and name no beacon themselves |
public struct LayoutString: Equatable, Sendable {
    /// The most identifiers of one layout, `id1` to `id8`.
    public static let maximumIdentifiers = 8

    struct Match: Equatable, Sendable {
        var first: Int
        var octets: [UInt8]
    }

    struct Field: Equatable, Sendable {
        var range: ClosedRange<Int>
        var isLittleEndian: Bool
        var isVariable: Bool
    }

    enum Power: Equatable, Sendable {
        case octet(at: Int, correction: Int)
        case constant(Int8)
    }

    /// nil for manufacturer data.
    let serviceUUID: UInt16?
    let matches: [Match]
    /// Together at most ``BeaconIdentity/capacity`` octets; none for frames that name no beacon.
    let identifiers: [Field]
    let power: Power?
    let data: [Field]

    /// - Throws: the first mistake.
    public init(_ text: String) throws(LayoutError) {
        var parser = LayoutParser(text)
        try parser.parse()
        serviceUUID = parser.serviceUUID
        matches = parser.matches
        identifiers = parser.identifiers
        power = parser.power
        data = parser.data
    }

    /// The company that octets 0 and 1 must be, when the layout fixes both.
    public var companyID: UInt16? {
        guard serviceUUID == nil, let low = octet(at: 0), let high = octet(at: 1) else { return nil }
        return UInt16(low) | UInt16(high) << 8
    }

    /// Whether it describes manufacturer data.
    public var isManufacturerData: Bool { serviceUUID == nil }

    /// What octets 2 and 3 must be, when the layout fixes both.
    var code: UInt16? {
        guard let high = octet(at: 2), let low = octet(at: 3) else { return nil }
        return UInt16(high) << 8 | UInt16(low)
    }

    private func octet(at offset: Int) -> UInt8? {
        for match in matches where match.octets.indices.contains(offset - match.first) {
            return match.octets[offset - match.first]
        }
        return nil
    }
}

/// What is wrong with a layout string, and where.
public struct LayoutError: Error, Equatable, CustomStringConvertible {
    /// In characters from 1; one past the last when something is missing.
    public let column: Int
    /// One clause.
    public let text: String

    public var description: String { "column \(column): \(text)" }
}
