// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import HCI
import TestSupport
import Testing

/// Whatever the octets are, nothing traps or hangs, and what is handed out lies within what was handed in.
@Suite struct RobustnessTests {
    private let decoder = FrameDecoder(
        bindKeys: BindKeys(Vector.all.compactMap(\.bindKey), decrypt: decryptWithLibcrypto))

    @Test(arguments: Vector.all)
    func everyPrefixAndChangedOctet(_ vector: Vector) {
        for packet in vector.packets {
            for length in 0..<packet.count { take(Array(packet[..<length]), vector.kind, from: vector.sender) }
            for index in packet.indices {
                for change in [0x01, 0x02, 0x10, 0x80, 0xFF] as [UInt8] {
                    var changed = packet
                    changed[index] ^= change
                    take(changed, vector.kind, from: vector.sender)
                }
            }
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func randomOctets(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            let length = Int.random(in: 0...300, using: &random)
            var packet = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            take(packet, "adv-data")
            // Half of them get a header that leads into the reports.
            if length > 5, Bool.random(using: &random) {
                packet.replaceSubrange(
                    0..<4, with: [0x04, 0x3E, UInt8(min(length - 3, 255)), random.next() % 2 == 0 ? 0x02 : 0x0D])
            }
            take(packet, "hci-event")
        }
    }

    private func take(_ octets: [UInt8], _ kind: String, from sender: DeviceAddress = .anonymous) {
        if kind == "adv-data" { return decode(octets.span, from: sender) }
        var parser = AdvertisingReportParser()
        var total = 0
        for time in [0, 1, 2] as [Int64] {
            parser.parse(octets.span, at: MonotonicTime(nanoseconds: time)) { report, data in
                total += data.count
                #expect(data.count <= 1650)
                decode(data, from: report.address)
            }
        }
        #expect(parser.reportCount <= 3 * 255)
    }

    private func decode(_ data: Span<UInt8>, from sender: DeviceAddress) {
        var writer = JSONWriter()
        var octets = 0
        AdvertisingData.forEachStructure(in: data) { _, payload in octets += payload.count + 2 }
        #expect(octets <= data.count)
        writer.beginArray()
        decoder.forEachFrame(in: data, from: sender) { frame, payload in decoder.write(frame, payload, into: &writer) }
        AdvertisementKind.forEach(in: data) { kind, payload in kind.write(payload, into: &writer) }
        DeviceInformation.write(data, into: &writer)
        writer.endArray()
    }
}
