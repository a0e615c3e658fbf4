// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Crypto
import TestSupport
import Testing

/// Devices known by address or by key.
@Suite struct DeviceIdentityTests {
    private let catalog = FrameDecoder().catalog

    private func key(_ text: String) throws -> [16 of UInt8] {
        let octets = try #require(Hexadecimal.octets(text))
        return [16 of UInt8] { octets[$0] }
    }

    /// Made of its key's index and `prand` by a function that is easy to follow.
    private func hash(_ key: Int, _ prand: UInt32) -> UInt32 { (prand &* 7 &+ UInt32(key)) & 0xFF_FFFF }

    private func address(_ key: Int, _ prand: UInt32) -> DeviceAddress {
        DeviceAddress(value: UInt64(prand) << 24 | UInt64(hash(key, prand)), kind: .randomDevice)
    }

    private func identity(_ number: UInt8) -> BeaconIdentity {
        BeaconIdentity(format: FormatID(rawValue: 9), octets: [number].span)
    }

    // MARK: Formats

    @Test func addressesAreSpelledAsPeopleWriteThem() throws {
        let id = try #require(catalog.id(named: "device"))
        let field = try #require(catalog[id]?.fields.first)
        let address = DeviceAddress(value: 0xC47C_8D6A_0102, kind: .publicDevice)
        let identity = BeaconIdentity(address: address, format: id)
        #expect(identity.count == 6)
        var spelled: [String] = []
        catalog.forEachField(of: identity) { spelled.append("\($0.key)=\($1.description)") }
        #expect(spelled == ["address=c4:7c:8d:6a:01:02"])
        let octets = try #require(FormatCatalog.octets(field, text: "C4:7C:8D:6A:01:02"))
        #expect(BeaconIdentity(format: id, octets: octets.span) == identity)
        for text in ["", "c47c8d6a0102", "c4:7c:8d:6a:01", "c4:7c:8d:6a:01:02:03", "c4:7c:8d:6a:01:0g"] {
            #expect(FormatCatalog.octets(field, text: text) == nil)
        }
        // The kind of the address makes no other device.
        #expect(
            BeaconIdentity(address: DeviceAddress(value: address.value, kind: .randomDevice), format: id) == identity)
    }

    /// Another implementation (openssl enc -aes-128-ecb) encrypts the block to 99fcd21ba3c92b03234b828cad5b8fff.
    @Test func fingerprints() throws {
        let id = try #require(catalog.id(named: "irk"))
        let cipher = try #require(AES128(key: try key("ec0234a357c8ad05341010a60a397d9b")))
        let block = try #require(cipher.encrypt(FormatDefinition.fingerprintBlock))
        let identity = BeaconIdentity(encryptedBlock: block, format: id)
        var spelled: [String] = []
        catalog.forEachField(of: identity) { spelled.append("\($0.key)=\($1.description)") }
        #expect(spelled == ["irk_id=99fcd21ba3c92b03"])
    }

    @Test func noFrameIsADevice() {
        let decoder = FrameDecoder([.device, .irk])
        for vector in Vector.all {
            for packet in vector.packets {
                decoder.forEachFrame(in: packet.span) { _, _ in Issue.record("a frame in \(vector.id)") }
            }
        }
    }

    // MARK: Resolution

    @Test("the sample of Core 5.4, Vol 3, Part H, D.7, among other keys")
    func sample() throws {
        let keys = try [
            "00000000000000000000000000000000", "ec0234a357c8ad05341010a60a397d9b", "ffffffffffffffffffffffffffffffff",
        ].map { try #require(IdentityResolvingKey(try key($0))) }
        let resolver = AddressResolver(identities: (0..<3).map { identity($0) }) { keys[$0].hash($1) }
        for _ in 0..<2 {
            #expect(
                resolver.identity(of: DeviceAddress(value: 0x7081_940D_FBAA, kind: .randomDevice)) == identity(1))
            for bit in 0..<48 {
                let other = DeviceAddress(value: 0x7081_940D_FBAA ^ 1 << UInt64(bit), kind: .randomDevice)
                #expect(resolver.identity(of: other) == nil, "bit \(bit)")
            }
        }
    }

    /// Only a random address whose two highest bits are 01 is asked for.
    @Test func otherAddressesCostNothing() {
        var calls = 0
        let resolver = AddressResolver(identities: [identity(0)]) { _, _ in
            calls += 1
            return 0
        }
        for kind in [.publicDevice, .publicIdentity, .randomIdentity, .anonymous, .init(rawValue: 7)]
            as [DeviceAddress.Kind]
        {
            #expect(resolver.identity(of: DeviceAddress(value: 0x4000_0000_0000, kind: kind)) == nil)
        }
        for top in [0, 2, 3] as [UInt64] {
            #expect(resolver.identity(of: DeviceAddress(value: top << 46, kind: .randomDevice)) == nil)
        }
        #expect(calls == 0)
        #expect(resolver.identity(of: DeviceAddress(value: 0x4000_0000_0000, kind: .randomDevice)) == identity(0))
        #expect(calls == 1)
    }

    @Test func withoutKeysNobodyIsKnown() {
        let resolver = AddressResolver(identities: []) { _, _ in 0 }
        #expect(resolver.identity(of: DeviceAddress(value: 0x4000_0000_0000, kind: .randomDevice)) == nil)
    }

    @Test func aCipherThatRefusesFindsNobody() {
        let resolver = AddressResolver(identities: [identity(0)]) { _, _ in nil }
        #expect(resolver.identity(of: address(0, 0x40_0001)) == nil)
    }

    @Test func aCrowdIsResolved() {
        var random = SeededGenerator(seed: 17)
        let resolver = AddressResolver(identities: (0..<5).map { identity($0) }) { [self] key, prand in hash(key, prand)
        }
        for _ in 0..<10_000 {
            let key = Int.random(in: 0...5, using: &random)
            let prand = 0x40_0000 | UInt32.random(in: 0..<0x40_0000, using: &random)
            #expect(resolver.identity(of: address(key, prand)) == (key < 5 ? identity(UInt8(key)) : nil))
        }
    }
}
