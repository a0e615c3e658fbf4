// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import HCI

private let decoder = FrameDecoder()

/// AD structures, and every format: reading a frame, and writing what it says.
///
/// The input is the data of one advertisement.
func fuzz(_ input: Span<UInt8>) {
    checkStructures(input)
    let document = decode(input) { frame in
        check(decoder.catalog[frame.format] != nil, "an unknown format")
        if let identity = frame.identity { checkIdentity(identity, of: frame.format) }
    }
    checkJSON(document)
    check(decode(input) { _ in } == document, "the same data give other frames")
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

/// All frames as one JSON document.
private func decode(_ data: Span<UInt8>, _ body: (Frame) -> Void) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginArray()
    var frames = 0
    decoder.forEachFrame(in: data) { frame, payload in
        frames += 1
        check(payload.count <= data.count - 2, "a payload longer than the data")
        body(frame)
        decoder.write(frame, payload, into: &writer)
    }
    writer.endArray()
    // A structure has at least a length, a type and a payload that names a company or a service.
    check(frames * 4 <= data.count, "\(frames) frames in \(data.count) octets")
    return writer.bytes
}

/// Holds that an identity is spelled whole, and that a person who copies the spelling names the same beacon.
private func checkIdentity(_ identity: BeaconIdentity, of id: FormatID) {
    check(identity.format == id, "an identity of another format")
    check(Int(identity.count) <= BeaconIdentity.capacity, "a long identity")
    for index in Int(identity.count)..<BeaconIdentity.capacity {
        check(identity[index] == 0, "octets behind the identity")
    }
    var fields: [String] = []
    var octets: [UInt8] = []
    decoder.catalog.forEachField(of: identity) { field, value in
        fields.append(value.description)
        guard let parsed = FormatCatalog.octets(field, text: value.description) else {
            return check(false, "\(field.key) \(value.description) cannot be read back")
        }
        octets += parsed
    }
    check(fields.count == decoder.catalog[id]?.fields.count, "fields are missing")
    // A tag may spell a URL longer than it must, so it is what people read that has to be the same.
    var again: [String] = []
    decoder.catalog.forEachField(of: BeaconIdentity(format: id, octets: octets.span)) { again.append($1.description) }
    check(again == fields, "\(fields) was read back as \(again)")
}
