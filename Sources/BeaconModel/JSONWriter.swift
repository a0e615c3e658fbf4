// SPDX-License-Identifier: Apache-2.0

/// Writes JSON (RFC 8259) into a buffer of its own that is kept between documents, so that a steady stream of
/// documents allocates nothing.
///
/// It writes only; what is read, a library reads. The caller opens and closes containers in pairs.
public struct JSONWriter: Sendable {
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false
    private var scratch: [UInt8] = []
    private var second = SpelledSecond()

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
    @_disfavoredOverload
    public mutating func key(_ key: String) {
        quote(key.utf8.span, isKey: true)
    }

    /// The same with a key that stands in the program, which is most of them and most of what is written: nobody has to
    /// look whether anything in it must be escaped.
    ///
    /// - Precondition: it is ASCII that stands for itself in a JSON string.
    public mutating func key(_ key: StaticString) {
        assert(key.isASCII && key.withUTF8Buffer { unsafe $0.allSatisfy { $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C } })
        append(capacity: key.utf8CodeUnitCount + 3) { output in
            output.append(UInt8(ascii: "\""))
            key.withUTF8Buffer { unsafe output.append(copying: Span(_unsafeElements: $0)) }
            output.append(UInt8(ascii: "\""))
            output.append(UInt8(ascii: ":"))
        }
        needsComma = false
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
        append(capacity: Decimal.capacity + 1) { output in
            if isNegative { output.append(UInt8(ascii: "-")) }
            Decimal.append(magnitude, to: &output)
        }
    }

    /// A number with a fixed count of decimals, rounded half away from zero; `null` when it is not finite or beyond
    /// ±9e15 once scaled.
    public mutating func decimal(_ value: Double, decimals: Int) {
        var scale = 1.0
        for _ in 0..<decimals { scale *= 10 }
        let scaled = (value * scale).rounded()
        guard scaled.magnitude < 9e15 else { return null() }
        let number = Int64(scaled)
        let unit = UInt64(scale)
        append(capacity: 2 * Decimal.capacity + 2) { output in
            if number < 0 { output.append(UInt8(ascii: "-")) }
            let (whole, fraction) = number.magnitude.quotientAndRemainder(dividingBy: unit)
            Decimal.append(whole, to: &output)
            guard fraction != 0 else { return }
            output.append(UInt8(ascii: "."))
            var rest = fraction
            var place = unit / 10
            while rest > 0 {
                output.append(UInt8(ascii: "0") + UInt8(rest / place))
                rest %= place
                place /= 10
            }
        }
    }

    /// Text with everything escaped that JSON wants escaped. Control characters of Unicode's C1 block and the marks
    /// that turn the direction of writing are escaped too: what a stranger sends must not disturb a terminal.
    public mutating func string(_ value: String) {
        quote(value.utf8.span, isKey: false)
    }

    /// Text in UTF-8. What is not UTF-8 is written as U+FFFD, as often as a `String` made of the octets has it.
    public mutating func string(utf8 octets: Span<UInt8>) {
        append(capacity: octets.count * longestEscape + 2) { output in
            output.append(UInt8(ascii: "\""))
            var rest = octets
            while true {
                do throws(UTF8.ValidationError) {
                    let valid = try UTF8Span(validating: rest)
                    escape(valid.span, into: &output)
                    break
                } catch {
                    escape(rest.extracting(..<error.byteOffsets.lowerBound), into: &output)
                    for octet in UTF8.encodedReplacementCharacter { output.append(octet) }
                    rest = rest.extracting(error.byteOffsets.upperBound...)
                }
            }
            output.append(UInt8(ascii: "\""))
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
        append(capacity: octets.count * 3 + 2) { output in
            output.append(UInt8(ascii: "\""))
            Hexadecimal.append(octets, isReversed: isReversed, separator: separator, to: &output)
            output.append(UInt8(ascii: "\""))
        }
    }

    /// 16 octets as a string, as ``UUIDText`` spells them.
    public mutating func uuid(_ octets: Span<UInt8>, isReversed: Bool = false) {
        append(capacity: octets.count * 3 + 2) { output in
            output.append(UInt8(ascii: "\""))
            UUIDText.append(octets, isReversed: isReversed, to: &output)
            output.append(UInt8(ascii: "\""))
        }
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
        guard second.spell(time) else { return null() }
        let text = second.text
        append(capacity: text.count + Decimal.capacity + 4) { output in
            output.append(UInt8(ascii: "\""))
            output.append(copying: text.span)
            output.append(UInt8(ascii: "."))
            Decimal.append(time.millisecondOfSecond, minimumDigits: 3, to: &output)
            output.append(UInt8(ascii: "Z"))
            output.append(UInt8(ascii: "\""))
        }
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

    /// Appends a value of at most `capacity` octets, in one go because to append to an array is dearer than to look at
    /// a few octets.
    @inline(__always)
    private mutating func append(capacity: Int, _ write: (_ output: inout OutputSpan<UInt8>) -> Void) {
        let needsComma = needsComma
        bytes.append(addingCapacity: capacity + 1) { output in
            if needsComma { output.append(UInt8(ascii: ",")) }
            write(&output)
        }
        self.needsComma = true
    }

    private mutating func quote(_ text: Span<UInt8>, isKey: Bool) {
        append(capacity: text.count * longestEscape + 3) { output in
            output.append(UInt8(ascii: "\""))
            escape(text, into: &output)
            output.append(UInt8(ascii: "\""))
            if isKey { output.append(UInt8(ascii: ":")) }
        }
        if isKey { needsComma = false }
    }

    /// Only the octets of an address that are wanted, the last ones.
    private mutating func octetString(_ value: UInt64, octets: Int) {
        let all = [8 of UInt8] { UInt8(truncatingIfNeeded: value >> UInt64(56 - $0 * 8)) }
        hexadecimal(all.span.extracting((8 - octets)...), separator: UInt8(ascii: ":"))
    }
}
