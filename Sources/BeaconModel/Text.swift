// SPDX-License-Identifier: Apache-2.0

/// The value of a hexadecimal digit in ASCII, either case.
func hexadecimalDigit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
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

    /// Reads pairs of digits in either case; nil for an odd count or a foreign character.
    public static func octets(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var octets: [UInt8] = []
        octets.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = hexadecimalDigit(digits[index]), let low = hexadecimalDigit(digits[index + 1]) else {
                return nil
            }
            octets.append(high << 4 | low)
        }
        return octets
    }
}

/// UUIDs in the canonical spelling of RFC 9562, lower case with dashes.
public enum UUIDText {
    /// - Precondition: 16 octets, most significant first.
    public static func text(_ octets: [UInt8]) -> String {
        precondition(octets.count == 16, "a UUID is 16 octets")
        return [octets[0..<4], octets[4..<6], octets[6..<8], octets[8..<10], octets[10..<16]]
            .map { Hexadecimal.text($0) }.joined(separator: "-")
    }

    /// Reads either case, with dashes in their places or with none at all.
    public static func octets(_ text: String) -> [UInt8]? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 1 || parts.map(\.utf8.count) == [8, 4, 4, 4, 12] else { return nil }
        return Hexadecimal.octets(parts.joined()).flatMap { $0.count == 16 ? $0 : nil }
    }
}
