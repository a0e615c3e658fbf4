// SPDX-License-Identifier: Apache-2.0

/// A Bluetooth device address (BD_ADDR) with its kind (Core 5.4, Vol 6, Part B, 1.3).
public struct DeviceAddress: Hashable, Sendable {
    /// What kind of address it is, as the controller reports it; unknown values are kept.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        public var rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let publicDevice = Kind(rawValue: 0x00)
        public static let randomDevice = Kind(rawValue: 0x01)
        /// A public identity that the controller resolved from a private address.
        public static let publicIdentity = Kind(rawValue: 0x02)
        /// A random static identity that the controller resolved from a private address.
        public static let randomIdentity = Kind(rawValue: 0x03)
        /// An extended advertisement without an address.
        public static let anonymous = Kind(rawValue: 0xFF)
    }

    /// The 48 bits of the address: the octet that is written first is the most significant one.
    public var value: UInt64
    public var kind: Kind

    /// - Parameter value: the address; bits above the 48th are dropped.
    public init(value: UInt64, kind: Kind) {
        self.value = value & 0xFFFF_FFFF_FFFF
        self.kind = kind
    }

    public static let anonymous = DeviceAddress(value: 0, kind: .anonymous)

    public var isAnonymous: Bool { kind == .anonymous }

    /// Reads `AA:BB:CC:DD:EE:FF`, in either case.
    public init?(text: some StringProtocol, kind: Kind) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 6 else { return nil }
        var value: UInt64 = 0
        for part in parts {
            guard part.utf8.count == 2, part.utf8.allSatisfy({ hexadecimalDigit($0) != nil }),
                let octet = UInt64(part, radix: 16)
            else { return nil }
            value = value << 8 | octet
        }
        self.init(value: value, kind: kind)
    }
}
