// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Foundation
import TestSupport
import Testing

/// Encrypted BTHome. The cipher here is none: the tag is right when it repeats the last octet of the key, so that any
/// counter can be sent; that the real one opens what devices send, the vectors show.
@Suite struct BindKeyFormatTests {
    private static let address = DeviceAddress(value: 0xA4C1_38AA_BBCC, kind: .publicDevice)
    private static let stranger = DeviceAddress(value: 0xA4C1_38AA_BBCD, kind: .publicDevice)

    private func keys(_ last: UInt8 = 7) -> BindKeys {
        var key = [16 of UInt8](repeating: 0)
        key[15] = last
        return BindKeys([(Self.address, key)]) { ciphertext, tag, key, _ in
            tag.allSatisfy { $0 == key[15] } ? ciphertext : nil
        }
    }

    /// A battery of 97 % under a counter.
    private func packet(counter: UInt32, tag: UInt8 = 7, information: String = "41") throws -> [UInt8] {
        let counter = (0..<4).map { UInt8(truncatingIfNeeded: counter >> UInt32($0 * 8)) }
        let payload = "d2fc" + information + "0161" + Hexadecimal.text(counter + [tag, tag, tag, tag])
        let octets = try #require(Hexadecimal.octets(payload))
        return [UInt8(octets.count + 1), 0x16] + octets
    }

    private func battery(_ data: [UInt8], _ keys: BindKeys, from address: DeviceAddress = address) throws -> [Int?] {
        try decodedFrames(data, FrameDecoder(bindKeys: keys), from: address).map {
            let frame = try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            #expect(frame["encrypted"] as? Bool == true)
            return (frame["values"] as? [String: Int])?["battery"]
        }
    }

    @Test func opensOnlyWhatItsDeviceSent() throws {
        let keys = keys()
        #expect(try battery(packet(counter: 1000), keys) == [97])
        #expect(try battery(packet(counter: 1001), keys, from: Self.stranger) == [nil])
        #expect(try battery(packet(counter: 1001), keys, from: .anonymous) == [nil])
        #expect(keys.counts == BindKeys.Counts())
        #expect(try battery(packet(counter: 1001, tag: 8), keys) == [nil])
        #expect(keys.counts.undecipherable == 1)
    }

    /// The kind of an address is not what a person writes down.
    @Test func theKindOfTheAddressDoesNotMatter() throws {
        let random = DeviceAddress(value: Self.address.value, kind: .randomDevice)
        #expect(try battery(packet(counter: 1), keys(), from: random) == [97])
    }

    @Test func aCounterThatGoesBackIsDroppedAndCounted() throws {
        let keys = keys()
        #expect(try battery(packet(counter: 5000), keys) == [97])
        #expect(try battery(packet(counter: 5000), keys) == [97], "an advertisement is sent several times")
        #expect(try battery(packet(counter: 4999), keys) == [])
        #expect(try battery(packet(counter: 100), keys) == [])
        #expect(keys.counts.replayed == 2)
        #expect(try battery(packet(counter: 5001), keys) == [97])
        #expect(try battery(packet(counter: .max), keys) == [97])
    }

    /// A forged packet with a high counter must not lock the device out.
    @Test func aForgedCounterIsNotTaken() throws {
        let keys = keys()
        #expect(try battery(packet(counter: 5000), keys) == [97])
        #expect(try battery(packet(counter: .max, tag: 9), keys) == [nil])
        #expect(try battery(packet(counter: 5001), keys) == [97])
    }

    @Test func aDeviceThatBeganAnewIsHeard() throws {
        let keys = keys()
        #expect(try battery(packet(counter: 5000), keys) == [97])
        #expect(try battery(packet(counter: 99), keys) == [97])
        #expect(try battery(packet(counter: 100), keys) == [97])
        #expect(keys.counts.replayed == 0)
    }

    /// Two decoders that share the keys share the counters; a reload that makes new ones does not.
    @Test func theCountersBelongToTheKeys() throws {
        let keys = keys()
        #expect(try battery(packet(counter: 5000), keys) == [97])
        #expect(try battery(packet(counter: 4000), keys) == [])
        #expect(try battery(packet(counter: 4000), self.keys()) == [97])
    }

    @Test func clearTextOfADeviceWithAKeyIsDropped() throws {
        let keys = keys()
        let data: [UInt8] = [6, 0x16, 0xD2, 0xFC, 0x40, 0x01, 0x61]
        #expect(try decodedFrames(data, FrameDecoder(bindKeys: keys), from: Self.address) == [])
        #expect(keys.counts.unencrypted == 1)
        #expect(try decodedFrames(data, FrameDecoder(bindKeys: keys), from: Self.stranger).count == 1)
    }

    /// Neither with somebody else's address in the payload nor from somebody else's with the device's in it.
    @Test func anAddressInThePayloadDoesNotLeadPastTheKey() throws {
        let keys = keys()
        func data(_ address: String) throws -> [UInt8] {
            let payload = try #require(Hexadecimal.octets("d2fc42" + address + "0161"))
            return [UInt8(payload.count + 1), 0x16] + payload
        }
        let decoder = FrameDecoder(bindKeys: keys)
        #expect(try decodedFrames(data("cdbbaa38c1a4"), decoder, from: Self.address) == [])
        #expect(try decodedFrames(data("ccbbaa38c1a4"), decoder, from: Self.stranger) == [])
        #expect(try decodedFrames(data("cdbbaa38c1a4"), decoder, from: Self.stranger).count == 1)
        #expect(keys.counts.unencrypted == 2)
    }

    /// Nobody can mark his own octets as opened: what begins with another UUID is no BTHome.
    @Test func openedCannotBePretended() throws {
        let data: [UInt8] = [6, 0x16, 0x00, 0x00, 0x41, 0x01, 0x61]
        #expect(try decodedFrames(data, FrameDecoder(bindKeys: keys()), from: Self.address) == [])
    }

    @Test(arguments: 0..<9) func tooShortToBeEncrypted(length: Int) throws {
        let payload = [0xD2, 0xFC, 0x41] + [UInt8](repeating: 7, count: length)
        let frames = try battery([UInt8(payload.count + 1), 0x16] + payload, keys())
        #expect(frames == [nil])
    }

    @Test func manyKeysAreFound() throws {
        var generator = SeededGenerator(seed: 4)
        var entries: [(address: DeviceAddress, key: [16 of UInt8])] = []
        for number in 0..<100 {
            let address = DeviceAddress(value: UInt64.random(in: 0..<1 << 48, using: &generator), kind: .publicDevice)
            entries.append((address, [16 of UInt8](repeating: UInt8(number))))
        }
        let keys = BindKeys(entries) { ciphertext, tag, key, _ in tag[0] == key[15] ? ciphertext : nil }
        for (number, entry) in entries.enumerated() {
            #expect(try battery(packet(counter: 1, tag: UInt8(number)), keys, from: entry.address) == [97])
        }
    }
}
