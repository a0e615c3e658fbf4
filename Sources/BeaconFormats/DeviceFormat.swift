// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

// Identities that no frame carries: they come from the address that an advertisement was sent from.

extension FormatDefinition {
    /// A device known by its address, which must be a public or a static one to stay the same. The identity is the six
    /// octets of the address as it is written, without its kind.
    public static let device = FormatDefinition(
        name: "device",
        fields: [
            IdentityField(
                key: "address",
                spelling: .custom(
                    spell: { octets, text in Hexadecimal.append(octets, separator: UInt8(ascii: ":"), to: &text) },
                    parse: { text in DeviceAddress(text: text, kind: .publicDevice).map { $0.octets } }),
                summary: "Bluetooth device address.", example: "c4:7c:8d:6a:11:22")
        ],
        in: .unframed, decode: { _, _ in nil }, describe: { _, _ in })

    /// A device known by its identity resolving key, whatever resolvable private address it uses at the moment. The
    /// identity is a fingerprint of the key, so that nothing that is sent or stored gives the key away.
    public static let irk = FormatDefinition(
        name: "irk",
        fields: [
            IdentityField(
                key: "irk_id", spelling: .hexadecimal(octets: 8),
                summary: "Fingerprint of an identity resolving key, as events spell it.")
        ],
        in: .unframed, decode: { _, _ in nil }, describe: { _, _ in })

    /// The block that a key encrypts (AES-128) to its fingerprint, the first eight octets of what comes out.
    public static let fingerprintBlock = [16 of UInt8] { Array("beacond.irk.id.1".utf8)[$0] }
}

extension BeaconIdentity {
    /// The device with an address.
    ///
    /// - Parameter format: of ``FormatDefinition/device`` in the catalog.
    public init(address: DeviceAddress, format: FormatID) {
        self.init(format: format, count: 6, words: (address.value << 16, 0, 0))
    }

    /// The device with a key.
    ///
    /// - Parameters:
    ///   - encryptedBlock: what the key makes of ``FormatDefinition/fingerprintBlock``.
    ///   - format: of ``FormatDefinition/irk`` in the catalog.
    public init(encryptedBlock: [16 of UInt8], format: FormatID) {
        self.init(format: format, octets: encryptedBlock.span.extracting(..<8))
    }
}

extension DeviceAddress {
    fileprivate var octets: [UInt8] {
        (0..<6).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64($0 * 8)) }
    }
}
