// SPDX-License-Identifier: Apache-2.0

/// An identity resolving key (IRK): with it the resolvable private addresses of one device are recognised (Core 5.4,
/// Vol 6, Part B, 1.3.2.2 and 1.3.2.3).
public struct IdentityResolvingKey {
    private let cipher: AES128

    /// - Parameter key: most significant octet first, as people write it.
    public init?(_ key: [16 of UInt8]) {
        guard let cipher = AES128(key: key) else { return nil }
        self.cipher = cipher
    }

    /// The random address hash function `ah` (Core 5.4, Vol 3, Part H, 2.2.2): 24 bits from 24 bits.
    ///
    /// - Parameter random: `prand`, the upper half of the address; bits above the 24th are ignored.
    public func hash(_ random: UInt32) -> UInt32? {
        var block = [16 of UInt8](repeating: 0)
        block[13] = UInt8(truncatingIfNeeded: random >> 16)
        block[14] = UInt8(truncatingIfNeeded: random >> 8)
        block[15] = UInt8(truncatingIfNeeded: random)
        guard let hash = cipher.encrypt(block) else { return nil }
        return UInt32(hash[13]) << 16 | UInt32(hash[14]) << 8 | UInt32(hash[15])
    }

    /// Whether the device with this key made the address.
    ///
    /// - Parameter address: the 48 bits of a random address, the octet that is written first most significant. One
    ///   that is not a resolvable private address, whose two highest bits are 01, is nobody's.
    public func resolves(address: UInt64) -> Bool {
        guard address >> 46 == 0b01 else { return false }
        return hash(UInt32(truncatingIfNeeded: address >> 24)) == UInt32(address & 0xFF_FFFF)
    }
}
