// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel

/// Reads all frames in the data of an advertisement and holds that each can be written, that its identity can be named
/// by a person, and that the same data give the same frames again.
///
/// - Parameter again: who reads them again, when the first decoder remembers what it has read.
func checkFrames(
    in data: Span<UInt8>, from address: DeviceAddress = .anonymous, _ decoder: FrameDecoder,
    again: FrameDecoder? = nil
) {
    let document = write(data, address, decoder) { frame in
        check(decoder.catalog[frame.format] != nil, "an unknown format")
        if let identity = frame.identity {
            check(identity.format == frame.format, "an identity of another format")
            checkIdentity(identity, decoder.catalog)
        }
    }
    checkJSON(document)
    check(write(data, address, again ?? decoder) { _ in } == document, "the same data give other frames")
}

/// All frames as one JSON document.
private func write(
    _ data: Span<UInt8>, _ address: DeviceAddress, _ decoder: FrameDecoder, _ body: (Frame) -> Void
) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginArray()
    var frames = 0
    decoder.forEachFrame(in: data, from: address) { frame, payload in
        frames += 1
        check(payload.count <= data.count - 2, "a payload longer than the data")
        body(frame)
        decoder.write(frame, payload, into: &writer)
    }
    writer.endArray()
    // A structure has at least a length and a type.
    check(frames * 2 <= data.count, "\(frames) frames in \(data.count) octets")
    return writer.bytes
}

/// Holds that an identity is spelled whole, and that a person who copies the spelling names the same beacon.
func checkIdentity(_ identity: BeaconIdentity, _ catalog: FormatCatalog) {
    check(Int(identity.count) <= BeaconIdentity.capacity, "a long identity")
    for index in Int(identity.count)..<BeaconIdentity.capacity {
        check(identity[index] == 0, "octets behind the identity")
    }
    var fields: [String] = []
    var octets: [UInt8] = []
    catalog.forEachField(of: identity) { field, value in
        fields.append(value.description)
        guard let parsed = FormatCatalog.octets(field, text: value.description) else {
            return check(false, "\(field.key) \(value.description) cannot be read back")
        }
        octets += parsed
    }
    check(fields.count == catalog[identity.format]?.fields.count, "fields are missing")
    // A tag may spell a URL longer than it must, so it is what people read that has to be the same.
    var again: [String] = []
    catalog.forEachField(of: BeaconIdentity(format: identity.format, octets: octets.span)) {
        again.append($1.description)
    }
    check(again == fields, "\(fields) was read back as \(again)")
}
