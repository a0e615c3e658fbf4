// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import SinkKit

@testable import MQTTSink
@testable import StdoutSink
@testable import Store

private let formats = FrameDecoder().catalog

/// Records of the outbox, and every way to spell the event that one holds.
///
/// The input is a record without its check value, which no fuzzer finds.
func fuzz(_ input: Span<UInt8>) {
    // Names live as long as their table, so each record has its own.
    let vocabulary = Vocabulary(formats: formats, names: NameTable())
    let codec = EventCodec(vocabulary: vocabulary)
    let bare = input.array
    var sealed = bare
    EventCodec.seal(&sealed, sequence: 7)
    check(codec.decode(sealed, sequence: 8) == nil, "a record in another's place")
    if let last = bare.indices.last {
        var changed = sealed
        changed[last] ^= 1
        check(codec.decode(changed, sequence: 7) == nil, "a changed record")
    }
    guard let event = codec.decode(sealed, sequence: 7) else { return }
    checkRoundTrip(event, codec)
    checkSpellings(event, vocabulary)
}

private func checkRoundTrip(_ event: Event, _ codec: EventCodec) {
    var record: [UInt8] = []
    codec.encode(event, sequence: 9, into: &record)
    guard let restored = codec.decode(record, sequence: 9) else { return check(false, "a record that cannot be read") }
    var again: [UInt8] = []
    codec.encode(restored, sequence: 9, into: &again)
    check(again == record, "an event changed in the outbox")
}

private func checkSpellings(_ event: Event, _ vocabulary: Vocabulary) {
    let encoder = EventEncoder(gateway: "gateway", vocabulary: vocabulary)
    var writer = JSONWriter()
    encoder.encode(Delivery(role: .transitions, event: event, sequence: 7), stream: "stream", into: &writer)
    checkJSON(writer.bytes)
    switch event.kind {
    case .enter, .exit, .unknown, .known, .regionEnter, .regionExit, .regionUnknown, .regionKnown:
        writer.reset()
        encoder.encodeState(event, into: &writer)
        checkJSON(writer.bytes)
    case .sighting, .proximity, .ranging, .clone, .adapter, .gap, .health, .flood: break
    }

    let line = String(decoding: TextFormatter(vocabulary: vocabulary).line(event), as: UTF8.self)
    check(line.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }, "a line that steers a terminal")

    var topics = MQTTTopics(prefix: "beacond", gateway: "gateway", vocabulary: vocabulary)
    for leaf in MQTTTopics.Leaf.allCases {
        topics.spell(event, leaf)
        check(topics.topic.last == 0, "a topic without an end")
        let isPlain = topics.text.utf8.allSatisfy {
            isUnreserved($0) || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "%")
        }
        check(isPlain, "a topic with foreign characters: \(topics.text)")
        check(topics.text.utf8.count < 65_536, "a topic longer than MQTT allows")
    }
}
