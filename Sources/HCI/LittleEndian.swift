// SPDX-License-Identifier: Apache-2.0

extension Span where Element == UInt8 {
    /// Two octets at `offset`, the low one first, as HCI sends numbers. The caller has checked the length.
    @inline(__always)
    func littleEndian16(at offset: Int) -> UInt16 {
        let octets = extracting(offset..<offset + 2)
        return UInt16(octets[0]) | UInt16(octets[1]) << 8
    }

    /// Six octets at `offset`, the low one first: a BD_ADDR. The caller has checked the length.
    @inline(__always)
    func littleEndian48(at offset: Int) -> UInt64 {
        // Of a slice of a known length the compiler makes few loads.
        let octets = extracting(offset..<offset + 6)
        var value: UInt64 = 0
        for index in 0..<6 { value |= UInt64(octets[index]) << UInt64(index * 8) }
        return value
    }
}
