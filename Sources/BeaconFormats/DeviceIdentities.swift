// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Recognises devices behind resolvable private addresses (Core 5.4, Vol 6, Part B, 1.3.2.3).
///
/// An address that was looked at is remembered, also when it is nobody's: a device sends many times from one address,
/// and a cipher run for each key and packet would be most of the work in a crowd.
public struct AddressResolver {
    /// The random address hash function `ah` (Core 5.4, Vol 3, Part H, 2.2.2) with the key at an index: 24 bits from
    /// `prand`; nil when the cipher refuses.
    public typealias Hash = (_ key: Int, _ prand: UInt32) -> UInt32?

    /// How many addresses are remembered unless told otherwise: a crowd of that many phones, in some 100 kB.
    public static let defaultCapacity = 4096

    private let identities: [BeaconIdentity]
    private let hash: Hash
    private let capacity: Int
    /// The index of the key for an address, ``nobody`` for none.
    private var results: [UInt64: Int32] = [:]
    /// The addresses in `results` in the order in which they came, as a ring.
    private var order: [UInt64] = []
    private var oldest = 0

    private static let nobody: Int32 = -1

    /// - Parameters:
    ///   - identities: of the devices, one for each key and in the order of the keys.
    ///   - capacity: addresses that are remembered, at least 1; past it the one that came first is forgotten.
    public init(identities: [BeaconIdentity], capacity: Int = defaultCapacity, hash: @escaping Hash) {
        self.identities = identities
        self.capacity = max(capacity, 1)
        self.hash = hash
        guard !identities.isEmpty else { return }
        results.reserveCapacity(self.capacity)
        order.reserveCapacity(self.capacity)
    }

    /// How many addresses are remembered.
    var count: Int { results.count }

    /// The device that made the address; nil for one that is no resolvable private address or that no key fits.
    public mutating func identity(of address: DeviceAddress) -> BeaconIdentity? {
        guard !identities.isEmpty, address.kind == .randomDevice, address.value >> 46 == 0b01 else { return nil }
        let key: Int32
        if let known = results[address.value] {
            key = known
        } else {
            key = resolve(address.value)
            remember(address.value, key)
        }
        return key == Self.nobody ? nil : identities[Int(key)]
    }

    private func resolve(_ address: UInt64) -> Int32 {
        let prand = UInt32(truncatingIfNeeded: address >> 24)
        let expected = UInt32(address & 0xFF_FFFF)
        for key in identities.indices where hash(key, prand) == expected { return Int32(key) }
        return Self.nobody
    }

    private mutating func remember(_ address: UInt64, _ key: Int32) {
        if order.count < capacity {
            order.append(address)
        } else {
            results[order[oldest]] = nil
            order[oldest] = address
            oldest = oldest + 1 == capacity ? 0 : oldest + 1
        }
        results[address] = key
    }
}
