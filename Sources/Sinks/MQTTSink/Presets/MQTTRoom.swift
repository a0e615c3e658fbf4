// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What Home Assistant's `mqtt_room` integration reads: `<prefix>/<room>`, JSON with `id` (text) and `distance` (metres);
/// the last level is the room (homeassistant/components/mqtt_room/sensor.py).
///
/// | event | message |
/// | --- | --- |
/// | sighting with a distance | `{"id","name","distance","rssi"}`, QoS 0 |
/// | exit | none: the reader has `away_timeout` |
struct MQTTRoom: Preset {
    private let topic: String
    private let vocabulary: Vocabulary
    private let known: KnownFormats

    init(prefix: String, room: String, vocabulary: Vocabulary) {
        topic = "\(prefix)/\(room)"
        self.vocabulary = vocabulary
        known = KnownFormats(vocabulary.formats)
    }

    var statusTopic: String? { nil }

    func spellSighting(
        _ event: borrowing Event, _ frame: borrowing FrameMembers, _ message: inout PresetMessage
    ) -> Bool {
        // Without a distance the reader drops the message.
        guard let identity = event.identity, event.accuracy >= 0 else { return false }
        appendID(identity, event.name, to: &message.text)
        message.appendToTopic(topic)
        message.payload.beginObject()
        message.payload.key("id")
        message.writeText()
        message.payload.key("name")
        message.writeText()
        message.payload.key("distance")
        message.payload.decimal(Double(event.accuracy), decimals: 3)
        if let rssi = event.signal.last {
            message.payload.key("rssi")
            message.payload.integer(rssi)
        }
        message.payload.endObject()
        return true
    }

    func spellExit(_ event: borrowing Event, _ message: inout PresetMessage) -> Bool { false }

    /// The reader's `device_id` is whatever the user called the beacon: the alias here. Without one it is the identity.
    private func appendID(_ identity: BeaconIdentity, _ alias: Name, to text: inout [UInt8]) {
        if alias != .none {
            text.append(contentsOf: vocabulary.names[alias].utf8)
        } else if identity.format == known.iBeacon || identity.format == known.altBeacon {
            KnownFormats.appendTriple(identity, to: &text)
        } else if identity.format == known.device {
            KnownFormats.address(identity).append(to: &text, isUpperCase: false)
        } else {
            KnownFormats.appendFields(identity, vocabulary.formats, to: &text)
        }
    }
}
