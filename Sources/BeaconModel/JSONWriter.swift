// SPDX-License-Identifier: Apache-2.0

/// Writes JSON (RFC 8259) into a buffer of its own that is kept between documents, so that a steady stream of
/// documents allocates nothing.
///
/// It writes only; what is read, a library reads. The caller opens and closes containers in pairs.
public struct JSONWriter: Sendable {
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false
    private var scratch: [UInt8] = []

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
        self.key { $0.string(key) }
    }

    /// The same with a key that `write` writes as one string.
    public mutating func key(_ write: (inout JSONWriter) -> Void) {
        write(&self)
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

    @inlinable
    public mutating func integer(_ value: some FixedWidthInteger) {
        integer(UInt64(value.magnitude), isNegative: value < 0)
    }

    @usableFromInline
    mutating func integer(_ magnitude: UInt64, isNegative: Bool) {
        separate()
        if isNegative { bytes.append(UInt8(ascii: "-")) }
        Decimal.append(magnitude, to: &bytes)
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
        Decimal.append(UInt64(number / unit), to: &bytes)
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
        quote { escape(value.utf8.span, into: &$0) }
    }

    /// Text in UTF-8. What is not UTF-8 is written as U+FFFD, as often as a `String` made of the octets has it.
    public mutating func string(utf8 octets: Span<UInt8>) {
        quote { bytes in
            var rest = octets
            while true {
                do throws(UTF8.ValidationError) {
                    let valid = try UTF8Span(validating: rest)
                    return escape(valid.span, into: &bytes)
                } catch {
                    escape(rest.extracting(..<error.byteOffsets.lowerBound), into: &bytes)
                    bytes.append(contentsOf: UTF8.encodedReplacementCharacter)
                    rest = rest.extracting(error.byteOffsets.upperBound...)
                }
            }
        }
    }

    /// Text that `spell` appends as UTF-8.
    public mutating func string(_ spell: (_ text: inout [UInt8]) -> Void) {
        // Out of its place, because it is read while the document is written.
        var text: [UInt8] = []
        swap(&text, &scratch)
        text.removeAll(keepingCapacity: true)
        spell(&text)
        string(utf8: text.span)
        swap(&text, &scratch)
    }

    /// Octets as a string of lower-case hexadecimal digits, as ``Hexadecimal`` spells them.
    public mutating func hexadecimal(_ octets: Span<UInt8>, isReversed: Bool = false, separator: UInt8? = nil) {
        quote { Hexadecimal.append(octets, isReversed: isReversed, separator: separator, to: &$0) }
    }

    /// 16 octets as a string, as ``UUIDText`` spells them.
    public mutating func uuid(_ octets: Span<UInt8>, isReversed: Bool = false) {
        quote { UUIDText.append(octets, isReversed: isReversed, to: &$0) }
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
        quote { date.append(to: &$0) }
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

    private mutating func quote(_ write: (_ bytes: inout [UInt8]) -> Void) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        write(&bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Only the octets of an address that are wanted, the last ones.
    private mutating func octetString(_ value: UInt64, octets: Int) {
        let all = [8 of UInt8] { UInt8(truncatingIfNeeded: value >> UInt64(56 - $0 * 8)) }
        hexadecimal(all.span.extracting((8 - octets)...), separator: UInt8(ascii: ":"))
    }
}

/// Appends what stands for valid UTF-8 inside of a JSON string.
private func escape(_ text: Span<UInt8>, into bytes: inout [UInt8]) {
    // The longest that stands for one octet is \u007f.
    bytes.append(addingCapacity: text.count * 6) { output in
        var index = 0
        while index < text.count {
            let octet = text[index]
            index += 1
            switch octet {
            case 0x22, 0x5C:
                output.append(UInt8(ascii: "\\"))
                output.append(octet)
            case 0x20..<0x7F: output.append(octet)
            case 0x0A: append("n", to: &output)
            case 0x0D: append("r", to: &output)
            case 0x09: append("t", to: &output)
            case 0..<0x20, 0x7F: appendUnicode(UInt32(octet), to: &output)
            // U+0080 to U+00BF have two octets, U+2000 to U+2FFF three.
            case 0xC2 where text[index] < 0xA0:
                appendUnicode(UInt32(text[index]), to: &output)
                index += 1
            case 0xE2:
                let scalar = 0x2000 | UInt32(text[index] & 0x3F) << 6 | UInt32(text[index + 1] & 0x3F)
                switch scalar {
                case 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069:
                    appendUnicode(scalar, to: &output)
                    index += 2
                default: output.append(octet)
                }
            default: output.append(octet)
            }
        }
    }
}

private func append(_ character: Unicode.Scalar, to output: inout OutputSpan<UInt8>) {
    output.append(UInt8(ascii: "\\"))
    output.append(UInt8(ascii: character))
}

private func appendUnicode(_ scalar: UInt32, to output: inout OutputSpan<UInt8>) {
    append("u", to: &output)
    Hexadecimal.append(UInt8(truncatingIfNeeded: scalar >> 8), to: &output)
    Hexadecimal.append(UInt8(truncatingIfNeeded: scalar), to: &output)
}
