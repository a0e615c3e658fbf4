// SPDX-License-Identifier: Apache-2.0

/// Which beacon it is: a format and up to 24 octets that the format defines.
///
/// A fixed-size value, so that the hot path compares and hashes it without touching the heap. What the octets mean is
/// described by the ``BeaconFormat`` of ``format``.
public struct BeaconIdentity: Hashable, Sendable {
    /// The longest identity in octets: AltBeacon and iBeacon need 20, an Eddystone URL 18.
    public static let capacity = 24

    public let format: FormatID
    /// Octets in use, 0 to 24.
    public let count: UInt8
    /// The octets, the first one most significant, zero behind the last.
    public let words: (high: UInt64, middle: UInt64, low: UInt64)

    public init(format: FormatID, count: UInt8, words: (high: UInt64, middle: UInt64, low: UInt64)) {
        self.format = format
        self.count = min(count, UInt8(Self.capacity))
        self.words = words
    }

    /// - Parameter octets: the first 24 count.
    public init(format: FormatID, octets: Span<UInt8>) {
        let count = min(octets.count, Self.capacity)
        func word(_ start: Int) -> UInt64 {
            var word: UInt64 = 0
            for index in start..<start + 8 { word = word << 8 | (index < count ? UInt64(octets[index]) : 0) }
            return word
        }
        self.init(format: format, count: UInt8(count), words: (word(0), word(8), word(16)))
    }

    /// The octet at `index`; 0 outside the identity.
    public subscript(index: Int) -> UInt8 {
        let word =
            switch index {
            case 0..<8: words.high
            case 8..<16: words.middle
            case 16..<24: words.low
            default: UInt64(0)
            }
        return UInt8(truncatingIfNeeded: word >> UInt64(56 - (index & 7) * 8))
    }

    /// All octets, zero behind the last.
    var octets: [24 of UInt8] {
        var octets = [24 of UInt8](repeating: 0)
        for index in 0..<8 {
            let shift = UInt64(56 - index * 8)
            octets[index] = UInt8(truncatingIfNeeded: words.high >> shift)
            octets[index + 8] = UInt8(truncatingIfNeeded: words.middle >> shift)
            octets[index + 16] = UInt8(truncatingIfNeeded: words.low >> shift)
        }
        return octets
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.words.high == right.words.high && left.words.middle == right.words.middle
            && left.words.low == right.words.low && left.format == right.format && left.count == right.count
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(words.high)
        hasher.combine(words.middle)
        hasher.combine(words.low)
        hasher.combine(UInt16(format.rawValue) << 8 | UInt16(count))
    }
}

/// The place of a format in the ``FormatCatalog`` of the process.
///
/// It is not stable between versions of the program: what is stored or sent spells the format's name.
public struct FormatID: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// A set of identities of one format in which leading fields are given and the rest may be anything, as with an
/// iBeacon region of a UUID, a UUID and a major, or all three.
public struct IdentityPattern: Hashable, Sendable {
    /// The given octets, zero where anything may stand.
    public let identity: BeaconIdentity
    /// How many leading octets are given.
    public let prefix: UInt8

    /// - Parameters:
    ///   - identity: octets behind `prefix` are ignored.
    ///   - prefix: leading octets that must be equal, 0 to 24.
    public init(identity: BeaconIdentity, prefix: UInt8) {
        self.prefix = min(prefix, UInt8(BeaconIdentity.capacity))
        let masks = Self.masks(self.prefix)
        let words = identity.words
        self.identity = BeaconIdentity(
            format: identity.format, count: identity.count,
            words: (words.high & masks.0, words.middle & masks.1, words.low & masks.2))
    }

    public func matches(_ other: BeaconIdentity) -> Bool {
        guard other.format == identity.format, other.count >= prefix else { return false }
        let masks = Self.masks(prefix)
        let difference =
            (identity.words.high ^ other.words.high) & masks.0 | (identity.words.middle ^ other.words.middle) & masks.1
            | (identity.words.low ^ other.words.low) & masks.2
        return difference == 0
    }

    private static func masks(_ prefix: UInt8) -> (UInt64, UInt64, UInt64) {
        func mask(_ octets: Int) -> UInt64 {
            octets <= 0 ? 0 : octets >= 8 ? .max : ~(UInt64.max >> UInt64(octets * 8))
        }
        let octets = Int(prefix)
        return (mask(octets), mask(octets - 8), mask(octets - 16))
    }
}
