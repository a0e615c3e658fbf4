// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import HCI

private let decoder = FrameDecoder()

/// AD structures, every format, and whatever else is told of an advertisement.
///
/// The input is the data of one advertisement.
func fuzz(_ input: Span<UInt8>) {
    checkStructures(input)
    checkFrames(in: input, decoder)
    var writer = JSONWriter()
    writer.beginArray()
    DeviceInformation.write(input, into: &writer)
    var kinds: [AdvertisementKind] = []
    AdvertisementKind.forEach(in: input) { kind, payload in
        check(!kinds.contains(kind), "a kind twice")
        kinds.append(kind)
        kind.write(payload, into: &writer)
    }
    writer.endArray()
    checkJSON(writer.bytes)
}

private func checkStructures(_ data: Span<UInt8>) {
    var octets = 0
    let ending = AdvertisingData.forEachStructure(in: data) { type, payload in
        check(octets + 2 + payload.count <= data.count, "a structure runs past the data")
        check(data[octets] == UInt8(payload.count + 1), "a length that is not in the data")
        check(data[octets + 1] == type.rawValue, "a type that is not in the data")
        for index in payload.indices {
            check(payload[index] == data[octets + 2 + index], "a payload that is not in the data")
        }
        octets += 2 + payload.count
    }
    switch ending {
    case .complete: check(octets == data.count, "complete with \(data.count - octets) octets left")
    case .zeroTerminated, .zeroLengthThenData: check(data[octets] == 0, "no zero length")
    case .overrun: check(octets + 1 + Int(data[octets]) > data.count, "no overrun")
    }
}
