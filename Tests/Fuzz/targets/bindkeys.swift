// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel

private let address = DeviceAddress(value: 0xA4C1_38AA_BBCC, kind: .publicDevice)
private let formats = FormatDefinition.all.filter { $0.format.name == "bthome-v2" }

/// Encrypted frames and the counters of the devices that send them.
///
/// The input is the data of advertisements, each with an octet in front: the length, and in the highest bit whether a
/// stranger sends it. The cipher is none, because no fuzzer finds the right tag: any is right whose octets are equal.
func fuzz(_ input: Span<UInt8>) {
    let (decoder, again) = (decoder(), decoder())
    var reader = InputReader(input)
    while !reader.isAtEnd {
        let octet = reader.octet()
        let sender = octet & 0x80 == 0 ? address : .anonymous
        checkFrames(in: reader.span(Int(octet & 0x7F)), from: sender, decoder, again: again)
    }
}

private func decoder() -> FrameDecoder {
    let keys = BindKeys([(address: address, key: .init(repeating: 0))]) { ciphertext, tag, _, nonce in
        check(tag.count == 4 && nonce.count == 13, "a tag of \(tag.count) octets, a nonce of \(nonce.count)")
        return tag.allSatisfy { $0 == tag[0] } ? ciphertext : nil
    }
    return FrameDecoder(formats, bindKeys: keys)
}
