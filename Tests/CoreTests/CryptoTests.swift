// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Crypto
import Testing

@Suite struct CryptoTests {
    private func block(_ text: String) throws -> [16 of UInt8] {
        let octets = try #require(Hexadecimal.octets(text))
        try #require(octets.count == 16)
        return [16 of UInt8] { octets[$0] }
    }

    private func octets(_ text: String) throws -> [UInt8] { try #require(Hexadecimal.octets(text)) }

    @Test("AES-128 as in FIPS 197, appendices B and C.1")
    func blockCipher() throws {
        for (key, plain, expected) in [
            (
                "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
                "69c4e0d86a7b0430d8cdb78070b4c55a"
            ),
            (
                "2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734",
                "3925841d02dc09fbdc118597196a0b32"
            ),
        ] {
            let cipher = try #require(AES128(key: block(key)))
            // Twice: a block must not depend on the one before it.
            for _ in 0..<2 {
                let result = try #require(cipher.encrypt(block(plain)))
                #expect(Hexadecimal.text((0..<16).map { result[$0] }) == expected)
            }
        }
    }

    @Test("ah as in Core 5.4, Vol 3, Part H, D.7")
    func addressHash() throws {
        let key = try #require(IdentityResolvingKey(block("ec0234a357c8ad05341010a60a397d9b")))
        #expect(key.hash(0x70_8194) == 0x0D_FBAA)
        #expect(key.hash(0xFF70_8194) == 0x0D_FBAA)
    }

    @Test func resolvesOnlyAddressesOfItsKey() throws {
        let key = try #require(IdentityResolvingKey(block("ec0234a357c8ad05341010a60a397d9b")))
        let other = try #require(IdentityResolvingKey(block("ec0234a357c8ad05341010a60a397d9a")))
        let address: UInt64 = 0x7081_940D_FBAA
        #expect(key.resolves(address: address))
        #expect(!other.resolves(address: address))
        for bit in 0..<48 { #expect(!key.resolves(address: address ^ 1 << UInt64(bit)), "bit \(bit)") }
        #expect(!key.resolves(address: address | 1 << 62))
        // The hash fits, but the two highest bits say static.
        let hash = try #require(key.hash(0xF0_8194))
        #expect(!key.resolves(address: 0xF081_9400_0000 | UInt64(hash)))
    }

    @Test("AES-128-CCM as in RFC 3610, packet vectors 1 and 2")
    func counterModeWithMAC() throws {
        let key = try block("c0c1c2c3c4c5c6c7c8c9cacbcccdcecf")
        let header = try octets("0001020304050607")
        for (nonce, cipher, tag, plain) in [
            (
                "00000003020100a0a1a2a3a4a5", "588c979a61c663d2f066d0c2c0f989806d5f6b61dac384", "17e8d12cfdf926e0",
                "08090a0b0c0d0e0f101112131415161718191a1b1c1d1e"
            ),
            (
                "00000004030201a0a1a2a3a4a5", "72c91a36e135f8cf291ca894085c87e3cc15c439c9e43a3b", "a091d56e10400916",
                "08090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
            ),
        ] {
            func open(_ cipher: [UInt8], _ tag: [UInt8], _ nonce: [UInt8], _ header: [UInt8]) -> [UInt8]? {
                AES128CCM.decrypt(cipher, tag: tag, key: key, nonce: nonce, authenticating: header)
            }
            let (cipher, tag, nonce) = (try octets(cipher), try octets(tag), try octets(nonce))
            #expect(open(cipher, tag, nonce, header) == Hexadecimal.octets(plain))

            func flipped(_ octets: [UInt8], _ bit: Int) -> [UInt8] {
                var octets = octets
                octets[bit / 8] ^= 1 << UInt8(bit % 8)
                return octets
            }
            for bit in 0..<cipher.count * 8 { #expect(open(flipped(cipher, bit), tag, nonce, header) == nil) }
            for bit in 0..<tag.count * 8 { #expect(open(cipher, flipped(tag, bit), nonce, header) == nil) }
            for bit in 0..<header.count * 8 { #expect(open(cipher, tag, nonce, flipped(header, bit)) == nil) }
            #expect(open(cipher, tag, nonce, []) == nil)
        }
    }

    @Test(
        "short messages, as another implementation (pyca/cryptography) makes them, and lengths that CCM does not know")
    func counterModeLengths() throws {
        let key = try block("c0c1c2c3c4c5c6c7c8c9cacbcccdcecf")
        let nonce = [UInt8](repeating: 0, count: 13)
        #expect(AES128CCM.decrypt([0x65], tag: [0xBA, 0xDC, 0xBC, 0x24], key: key, nonce: nonce) == [5])
        let empty = AES128CCM.decrypt(
            [], tag: [0xCE, 0x4F, 0x7F, 0x08], key: key, nonce: nonce, authenticating: [0x11])
        #expect(empty == [])
        #expect(AES128CCM.decrypt([], tag: [0xCE, 0x4F, 0x7F, 0x09], key: key, nonce: nonce) == nil)
        for count in 0..<32 {
            let octets = [UInt8](repeating: 1, count: count)
            #expect(AES128CCM.decrypt(octets, tag: [1, 2, 3, 4], key: key, nonce: octets) == nil)
            #expect(AES128CCM.decrypt([1, 2], tag: octets, key: key, nonce: nonce) == nil)
        }
    }
}
