// SPDX-License-Identifier: Apache-2.0

extension Span where Element == UInt8 {
    /// An unsigned number of up to eight octets, most significant first. The caller has checked the length.
    func bigEndian(_ range: Range<Int>) -> UInt64 {
        var value: UInt64 = 0
        for index in range { value = value << 8 | UInt64(self[index]) }
        return value
    }

    /// An unsigned number of up to eight octets, least significant first. The caller has checked the length.
    func littleEndian(_ range: Range<Int>) -> UInt64 {
        var value: UInt64 = 0
        for index in range.reversed() { value = value << 8 | UInt64(self[index]) }
        return value
    }

    /// Two's complement of two octets, most significant first. The caller has checked the length.
    func bigEndianInt16(at offset: Int) -> Int16 {
        Int16(bitPattern: UInt16(self[offset]) << 8 | UInt16(self[offset + 1]))
    }

    func isEqual(to other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        guard count >= 8 else {
            for index in indices where self[index] != other[index] { return false }
            return true
        }
        // Eight at a time, the last ones together with some that were compared before.
        var offset = 0
        while offset < count {
            let place = Swift.min(offset, count - 8)
            guard word(at: place) == other.word(at: place) else { return false }
            offset += 8
        }
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

    /// Whether the octets are text.
    var isUTF8: Bool {
        do {
            _ = try UTF8Span(validating: self)
            return true
        } catch {
            return false
        }
    }

    /// The company id or service UUID that the payload of an AD structure begins with, low octet first.
    @inline(__always)
    var leadingKey: UInt16 { UInt16(self[0]) | UInt16(self[1]) << 8 }
}
