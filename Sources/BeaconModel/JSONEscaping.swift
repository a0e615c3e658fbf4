// SPDX-License-Identifier: Apache-2.0

/// Octets of the longest that stands for one octet, `\u007f`.
let longestEscape = 6

/// Appends what stands for valid UTF-8 inside of a JSON string.
func escape(_ text: Span<UInt8>, into output: inout OutputSpan<UInt8>) {
    if text.isPlain { output.append(copying: text) } else { escapeOctets(text, into: &output) }
}

private func escapeOctets(_ text: Span<UInt8>, into output: inout OutputSpan<UInt8>) {
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

private func append(_ character: Unicode.Scalar, to output: inout OutputSpan<UInt8>) {
    output.append(UInt8(ascii: "\\"))
    output.append(UInt8(ascii: character))
}

private func appendUnicode(_ scalar: UInt32, to output: inout OutputSpan<UInt8>) {
    append("u", to: &output)
    Hexadecimal.append(UInt8(truncatingIfNeeded: scalar >> 8), to: &output)
    Hexadecimal.append(UInt8(truncatingIfNeeded: scalar), to: &output)
}

extension Span<UInt8> {
    /// Whether all of it is ASCII that stands for itself inside of a JSON string. Most text is: eight octets are looked
    /// at together, the last ones with some that were looked at before.
    @inline(__always)
    fileprivate var isPlain: Bool {
        if count >= 8 {
            var offset = 0
            while offset < count {
                guard isPlainWord(word(at: Swift.min(offset, count - 8))) else { return false }
                offset += 8
            }
            return true
        }
        if count >= 4 { return isPlainWord(halfWord(at: 0) << 32 | halfWord(at: count - 4)) }
        for index in indices where !isPlainWord(UInt64(self[index]) | 0x2020_2020_2020_2000) { return false }
        return true
    }

    /// Eight octets as a number; in a slice of a known length, of which the compiler makes a single load.
    @inline(__always)
    private func word(at offset: Int) -> UInt64 {
        let octets = extracting(offset..<offset + 8)
        var word: UInt64 = 0
        for index in 0..<8 { word |= UInt64(octets[index]) << UInt64(index * 8) }
        return word
    }

    @inline(__always)
    private func halfWord(at offset: Int) -> UInt64 {
        let octets = extracting(offset..<offset + 4)
        var word: UInt64 = 0
        for index in 0..<4 { word |= UInt64(octets[index]) << UInt64(index * 8) }
        return word
    }
}

/// Whether each of eight octets is of 0x20 to 0x7E and neither `"` nor `\`.
@inline(__always)
private func isPlainWord(_ word: UInt64) -> Bool {
    let ones: UInt64 = 0x0101_0101_0101_0101
    // Each sets the high bit of an octet that it looks for, or of one above such an octet.
    let isBelowSpace = word &- ones &* 0x20
    let isQuote = (word ^ ones &* 0x22) &- ones
    let isBackslash = (word ^ ones &* 0x5C) &- ones
    let isAbove = word | (word &+ ones)
    return (isBelowSpace | isQuote | isBackslash | isAbove) & (ones &* 0x80) == 0
}

extension OutputSpan<UInt8> {
    /// - Precondition: there is room.
    @inline(__always)
    mutating func append(copying text: Span<UInt8>) {
        precondition(text.count <= freeCapacity)
        unsafe withUnsafeMutableBufferPointer { buffer, count in
            unsafe text.withUnsafeBufferPointer { octets in
                // Safe: there is room, as was checked.
                _ = unsafe buffer.extracting(count...).initialize(fromContentsOf: octets)
            }
            count += text.count
        }
    }
}
