// SPDX-License-Identifier: Apache-2.0

extension Span where Element == UInt8 {
    /// Two octets at `offset`, the low one first, as HCI sends numbers. The caller has checked the length.
    @inline(__always)
    func littleEndian16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) | UInt16(self[offset + 1]) << 8
    }

    /// Six octets at `offset`, the low one first: a BD_ADDR. The caller has checked the length.
    @inline(__always)
    func littleEndian48(at offset: Int) -> UInt64 {
        var value: UInt64 = 0
        for index in (0..<6).reversed() { value = value << 8 | UInt64(self[offset + index]) }
        return value
    }
}
