// SPDX-License-Identifier: Apache-2.0

/// The value of a hexadecimal digit in ASCII, either case.
@inline(__always)
func hexadecimalDigit(_ character: UInt8) -> UInt8? {
    let value = digitValues[Int(character)]
    return value < 16 ? value : nil
}

/// The values of all characters as hexadecimal digits; 16 for what is none.
private let digitValues: [256 of UInt8] = [256 of UInt8] { index in
    switch UInt8(truncatingIfNeeded: index) {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt8(index) - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt8(index) - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt8(index) - UInt8(ascii: "A") + 10
    default: 16
    }
}

let hexadecimalDigits: [16 of UInt8] = [
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66,
]

/// Octets as hexadecimal digits.
public enum Hexadecimal {
    /// Lower-case digits, two an octet.
    public static func text(_ octets: some Sequence<UInt8>) -> String {
        var digits: [UInt8] = []
        for octet in octets {
            digits.append(hexadecimalDigits[Int(octet >> 4)])
            digits.append(hexadecimalDigits[Int(octet & 15)])
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// Appends lower-case digits, two an octet.
    ///
    /// - Parameters:
    ///   - isReversed: the last octet first, as little-endian numbers are written.
    ///   - separator: what stands between two octets.
    public static func append(
        _ octets: Span<UInt8>, isReversed: Bool = false, separator: UInt8? = nil, to text: inout [UInt8]
    ) {
        text.append(addingCapacity: octets.count * 3) {
            append(octets, isReversed: isReversed, separator: separator, to: &$0)
        }
    }

    static func append(
        _ octets: Span<UInt8>, isReversed: Bool, separator: UInt8?, to output: inout OutputSpan<UInt8>
    ) {
        for index in octets.indices {
            if let separator, index > 0 { output.append(separator) }
            append(octets[isReversed ? octets.count - 1 - index : index], to: &output)
        }
    }

    static func append(_ octet: UInt8, to output: inout OutputSpan<UInt8>) {
        output.append(hexadecimalDigits[Int(octet >> 4)])
        output.append(hexadecimalDigits[Int(octet & 15)])
    }

    /// Reads pairs of digits in either case; nil for an odd count or a foreign character.
    public static func octets(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        var octets: [UInt8] = []
        octets.reserveCapacity(digits.count / 2)
        return read(digits.span, into: &octets) ? octets : nil
    }

    /// Appends what pairs of digits in either case stand for; false for an odd count or a foreign character, with the
    /// octets in front of it appended.
    public static func read(_ digits: Span<UInt8>, into octets: inout [UInt8]) -> Bool {
        guard digits.count.isMultiple(of: 2) else { return false }
        var isSound = true
        octets.append(addingCapacity: digits.count / 2) { output in
            var index = 0
            while index < digits.count {
                guard let high = hexadecimalDigit(digits[index]), let low = hexadecimalDigit(digits[index + 1]) else {
                    isSound = false
                    return
                }
                output.append(high << 4 | low)
                index += 2
            }
        }
        return isSound
    }
}

/// Numbers as decimal digits.
public enum Decimal {
    /// The digits of the longest number.
    static let capacity = 20

    /// Appends at least `minimumDigits` digits, filled up with zeros; 20 at most.
    public static func append(_ value: UInt64, minimumDigits: Int = 1, to text: inout [UInt8]) {
        text.append(addingCapacity: capacity) {
            append(value, minimumDigits: max(1, min(minimumDigits, capacity)), to: &$0)
        }
    }

    static func append(_ value: UInt64, minimumDigits: Int = 1, to output: inout OutputSpan<UInt8>) {
        // Eight digits fit into a word.
        if value >= 100_000_000 || minimumDigits > 8 {
            append(value / 100_000_000, minimumDigits: minimumDigits - 8, to: &output)
            return append(value % 100_000_000, minimumDigits: 8, to: &output)
        }
        var digits: UInt64 = 0
        var count = 0
        var rest = value
        repeat {
            digits = digits << 8 | UInt64(UInt8(ascii: "0")) + rest % 10
            rest /= 10
            count += 1
        } while rest > 0 || count < minimumDigits
        for _ in 0..<count {
            output.append(UInt8(truncatingIfNeeded: digits))
            digits >>= 8
        }
    }
}

/// UUIDs in the canonical spelling of RFC 9562, lower case with dashes.
public enum UUIDText {
    /// Appends the spelling of 16 octets; of another count it has as many digits as there are octets.
    ///
    /// - Parameter isReversed: the octets stand least significant first.
    public static func append(_ octets: Span<UInt8>, isReversed: Bool = false, to text: inout [UInt8]) {
        text.append(addingCapacity: octets.count * 3) { append(octets, isReversed: isReversed, to: &$0) }
    }

    static func append(_ octets: Span<UInt8>, isReversed: Bool, to output: inout OutputSpan<UInt8>) {
        for index in octets.indices {
            if index == 4 || index == 6 || index == 8 || index == 10 { output.append(UInt8(ascii: "-")) }
            Hexadecimal.append(octets[isReversed ? octets.count - 1 - index : index], to: &output)
        }
    }

    /// Reads either case, with dashes in their places or with none at all.
    public static func octets(_ text: String) -> [UInt8]? {
        var digits = Array(text.utf8)
        if digits.count == 36 {
            let dashes: [4 of Int] = [23, 18, 13, 8]
            for index in dashes.indices where digits.remove(at: dashes[index]) != UInt8(ascii: "-") { return nil }
        }
        guard digits.count == 32 else { return nil }
        var octets: [UInt8] = []
        octets.reserveCapacity(16)
        return Hexadecimal.read(digits.span, into: &octets) ? octets : nil
    }
}
