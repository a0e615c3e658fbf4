// SPDX-License-Identifier: Apache-2.0

public import BeaconFormats
public import BeaconModel
import Configuration
import Crypto
import LinuxIO
import Presence

/// A key with which the advertisements of one device are decrypted.
public struct BindKey: Sendable {
    /// The 48 bits of the device's address, as in ``DeviceAddress/value``.
    public let address: UInt64
    /// Most significant octet first, as people write it.
    public let key: [16 of UInt8]
}

/// A key that finds one device behind its resolvable private addresses.
public struct DeviceKey: Sendable {
    /// Of format `irk`.
    public let identity: BeaconIdentity
    /// Most significant octet first, as people write it.
    public let key: [16 of UInt8]

    /// nil when libcrypto refuses the cipher.
    init?(_ key: [16 of UInt8], format: FormatID) {
        guard let block = AES128(key: key)?.encrypt(FormatDefinition.fingerprintBlock) else { return nil }
        identity = BeaconIdentity(encryptedBlock: block, format: format)
        self.key = key
    }
}

extension AddressResolver {
    /// Recognises the devices with these keys. Not to be used by two threads at a time.
    public init(_ keys: [DeviceKey]) {
        let ciphers = keys.map { IdentityResolvingKey($0.key) }
        self.init(identities: keys.map(\.identity)) { key, prand in ciphers[key]?.hash(prand) }
    }
}

extension BindKeys {
    /// Opens what devices with these keys encrypt.
    convenience init(_ keys: [BindKey]) {
        self.init(keys.map { (DeviceAddress(value: $0.address, kind: .publicDevice), $0.key) }) {
            octets, tag, key, nonce in
            AES128CCM.decrypt(octets, tag: tag, key: key, nonce: nonce)
        }
    }
}

extension AgentConfiguration {
    /// The beacon that an address itself is: a device that is named by its address, or by the key that made it.
    var identify: (DeviceAddress) -> BeaconIdentity? {
        let resolver = AddressResolver(identityResolvingKeys)
        guard let format = decoder.catalog.id(named: FormatDefinition.device.format.name) else { return { _ in nil } }
        let devices = Set(beacons.map(\.identity).filter { $0.format == format })
        return { address in
            if let device = resolver.identity(of: address) { return device }
            let device = BeaconIdentity(address: address, format: format)
            return devices.contains(device) ? device : nil
        }
    }
}

/// Reads keys of 128 bits.
enum KeyText {
    static let expected = "32 hexadecimal digits"

    static func key(_ text: some StringProtocol) -> [16 of UInt8]? {
        guard let octets = Hexadecimal.octets(text), octets.count == 16 else { return nil }
        return [16 of UInt8] { octets[$0] }
    }

    /// Reads a file that holds nothing but a key, with white space around it.
    static func contents(of path: String) throws(Failure) -> [16 of UInt8] {
        let bytes: [UInt8]
        do { bytes = try FileDescriptor.contents(of: path, limit: 4096) } catch {
            throw Failure(description: error.description)
        }
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        let text = bytes.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
        guard let key = key(String(decoding: text, as: UTF8.self)) else {
            throw Failure(description: "expected a file that holds \(expected)")
        }
        return key
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }
}
