// SPDX-License-Identifier: Apache-2.0

/// Writes JSON (RFC 8259) into a buffer of its own that is kept between documents, so that a steady stream of
/// documents allocates nothing.
///
/// It writes only; what is read, a library reads. The caller opens and closes containers in pairs.
public struct JSONWriter: Sendable {
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false

    public init() {
        bytes.reserveCapacity(512)
    }

    /// The document so far.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Forgets the document and keeps the buffer.
    public mutating func reset() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    // MARK: Structure

    public mutating func beginObject() { begin(UInt8(ascii: "{")) }
    public mutating func endObject() { end(UInt8(ascii: "}")) }
    public mutating func beginArray() { begin(UInt8(ascii: "[")) }
    public mutating func endArray() { end(UInt8(ascii: "]")) }

    /// Starts a member of the current object; its value must follow.
    public mutating func key(_ key: String) {
        string(key)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// Ends a document of a stream of JSON lines.
    public mutating func newline() {
        bytes.append(UInt8(ascii: "\n"))
        needsComma = false
    }

    // MARK: Values

    public mutating func null() { literal("null") }
    public mutating func boolean(_ value: Bool) { literal(value ? "true" : "false") }

    public mutating func integer(_ value: some FixedWidthInteger) {
        separate()
        if let small = Int64(exactly: value) { appendInteger(small) } else { bytes.append(contentsOf: "\(value)".utf8) }
    }

    /// A number with a fixed count of decimals, rounded half away from zero; `null` when it is not finite or beyond
    /// ±9e15 once scaled.
    public mutating func decimal(_ value: Double, decimals: Int) {
        var scale = 1.0
        for _ in 0..<decimals { scale *= 10 }
        let scaled = (value * scale).rounded()
        guard scaled.magnitude < 9e15 else { return null() }
        separate()
        var number = Int64(scaled)
        if number < 0 {
            bytes.append(UInt8(ascii: "-"))
            number = -number
        }
        let unit = Int64(scale)
        appendInteger(number / unit)
        var fraction = number % unit
        guard fraction != 0 else { return }
        bytes.append(UInt8(ascii: "."))
        var place = unit / 10
        while fraction > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(fraction / place))
            fraction %= place
            place /= 10
        }
    }

    /// Text with everything escaped that JSON wants escaped. Control characters of Unicode's C1 block and the marks
    /// that turn the direction of writing are escaped too: what a stranger sends must not disturb a terminal.
    public mutating func string(_ value: String) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        for scalar in value.unicodeScalars {
            switch scalar.value {
            case 0x22, 0x5C:
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(UInt8(scalar.value))
            case 0x0A: escape("n")
            case 0x0D: escape("r")
            case 0x09: escape("t")
            case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069:
                escape("u")
                hexadecimalDigit(scalar.value >> 12)
                hexadecimalDigit(scalar.value >> 8)
                hexadecimalDigit(scalar.value >> 4)
                hexadecimalDigit(scalar.value)
            case 0..<0x80: bytes.append(UInt8(scalar.value))
            default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Octets as a string of lower-case hexadecimal digits.
    public mutating func hexadecimal(_ octets: Span<UInt8>) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        for index in octets.indices {
            hexadecimalDigit(UInt32(octets[index] >> 4))
            hexadecimalDigit(UInt32(octets[index]))
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// `aa:bb:cc:dd:ee:ff`; `null` for an anonymous advertiser.
    public mutating func address(_ address: DeviceAddress) {
        if address.isAnonymous { null() } else { octetString(address.value, octets: 6) }
    }

    /// The last four octets of the address, `cc:dd:ee:ff`; `null` for an anonymous advertiser.
    public mutating func addressEnding(_ address: DeviceAddress) {
        if address.isAnonymous { null() } else { octetString(address.value & 0xFFFF_FFFF, octets: 4) }
    }

    /// RFC 3339 in UTC with milliseconds, `2026-11-30T21:09:00.123Z`. Years outside 0 to 9999 give `null`.
    public mutating func time(_ time: WallTime) {
        guard let date = CivilTime(time) else { return null() }
        separate()
        bytes.append(UInt8(ascii: "\""))
        date.append(to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    // MARK: Parts

    private mutating func begin(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func end(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    private mutating func literal(_ text: StaticString) {
        separate()
        text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    }

    private mutating func escape(_ character: Unicode.Scalar) {
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(UInt8(ascii: character))
    }

    private mutating func hexadecimalDigit(_ value: UInt32) {
        bytes.append(hexadecimalDigits[Int(value & 15)])
    }

    private mutating func octetString(_ value: UInt64, octets: Int) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        for index in (0..<octets).reversed() {
            let octet = UInt32(truncatingIfNeeded: value >> UInt64(index * 8))
            hexadecimalDigit(octet >> 4)
            hexadecimalDigit(octet)
            if index > 0 { bytes.append(UInt8(ascii: ":")) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func appendInteger(_ value: Int64) {
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = value.magnitude
        var digits = 1
        var bound: UInt64 = 10
        while digits < 19, rest >= bound {
            digits += 1
            bound *= 10
        }
        let start = bytes.count
        for _ in 0..<digits { bytes.append(UInt8(ascii: "0")) }
        for index in (start..<start + digits).reversed() {
            bytes[index] += UInt8(rest % 10)
            rest /= 10
        }
    }
}
