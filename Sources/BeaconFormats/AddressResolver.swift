// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Recognises devices behind resolvable private addresses (Core 5.4, Vol 6, Part B, 1.3.2.3).
///
/// It runs a cipher for each key, so the answer for an address should be remembered: ``SightingDecoder`` does.
public struct AddressResolver {
    /// The random address hash function `ah` (Core 5.4, Vol 3, Part H, 2.2.2) with the key at an index: 24 bits from
    /// `prand`; nil when the cipher refuses.
    public typealias Hash = (_ key: Int, _ prand: UInt32) -> UInt32?

    private let identities: [BeaconIdentity]
    private let hash: Hash

    /// - Parameter identities: of the devices, one for each key and in the order of the keys.
    public init(identities: [BeaconIdentity], hash: @escaping Hash) {
        self.identities = identities
        self.hash = hash
    }

    /// The device that made the address; nil for one that is no resolvable private address or that no key fits.
    public func identity(of address: DeviceAddress) -> BeaconIdentity? {
        guard address.kind == .randomDevice, address.value >> 46 == 0b01 else { return nil }
        let prand = UInt32(truncatingIfNeeded: address.value >> 24)
        let expected = UInt32(address.value & 0xFF_FFFF)
        return identities.indices.first { hash($0, prand) == expected }.map { identities[$0] }
    }
}
