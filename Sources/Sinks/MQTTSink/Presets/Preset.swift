// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// The topics and payloads of another gateway, for what was made to read them: a table from events to messages.
///
/// A table says nothing of its own about presence; it spells what the native topics say, beside them.
protocol Preset {
    /// Spells what is published of a sighting; false for one that the other gateway would not publish.
    func spellSighting(
        _ event: borrowing Event, _ frame: borrowing FrameMembers, _ message: inout PresetMessage
    ) -> Bool

    /// Spells what is published of a beacon that is gone; false where the reader notices by itself.
    func spellExit(_ event: borrowing Event, _ message: inout PresetMessage) -> Bool

    /// Where `online` and `offline` are retained; nil where the other gateway says no such thing.
    var statusTopic: String? { get }
}

/// One message that is being spelled; it keeps its memory.
struct PresetMessage {
    /// As bytes, with a NUL behind it once it is complete.
    private(set) var topic: [CChar] = []
    var payload = JSONWriter()
    /// What stands in the topic and in the payload, or is written of octets.
    var text: [UInt8] = []

    init() {
        topic.reserveCapacity(256)
        text.reserveCapacity(64)
    }

    mutating func begin() {
        topic.removeAll(keepingCapacity: true)
        payload.reset()
        text.removeAll(keepingCapacity: true)
    }

    mutating func end() { topic.append(0) }

    /// Appends to the topic what is known to be safe there.
    mutating func appendToTopic(_ part: String) {
        for octet in part.utf8 { topic.append(CChar(truncatingIfNeeded: octet)) }
    }

    /// Appends ``text`` to the topic.
    mutating func appendTextToTopic() {
        for octet in text { topic.append(CChar(truncatingIfNeeded: octet)) }
    }

    /// Writes ``text`` as a value.
    mutating func writeText() {
        let text = text
        payload.string(utf8: text.span)
    }
}

extension DeviceAddress {
    /// Appends the six octets in hexadecimal, the most significant one first.
    func append(to text: inout [UInt8], separator: UInt8? = nil, isUpperCase: Bool) {
        let letters = UInt8(ascii: isUpperCase ? "A" : "a")
        for place in (0..<12).reversed() {
            let digit = UInt8(truncatingIfNeeded: value >> UInt64(place * 4) & 15)
            text.append(digit < 10 ? UInt8(ascii: "0") + digit : letters + digit - 10)
            if let separator, place > 0, place.isMultiple(of: 2) { text.append(separator) }
        }
    }
}

/// The formats that other gateways have a spelling of their own for, by their numbers in the catalog.
struct KnownFormats {
    let iBeacon: FormatID?
    let altBeacon: FormatID?
    let eddystoneUID: FormatID?
    let device: FormatID?

    init(_ formats: FormatCatalog) {
        iBeacon = formats.id(named: "ibeacon")
        altBeacon = formats.id(named: "altbeacon")
        eddystoneUID = formats.id(named: "eddystone-uid")
        device = formats.id(named: "device")
    }

    /// Appends `<uuid>-<major>-<minor>` of an identity of 20 octets.
    static func appendTriple(_ identity: BeaconIdentity, to text: inout [UInt8]) {
        let uuid = [16 of UInt8] { identity[$0] }
        UUIDText.append(uuid.span, to: &text)
        text.append(UInt8(ascii: "-"))
        Decimal.append(UInt64(identity[16]) << 8 | UInt64(identity[17]), to: &text)
        text.append(UInt8(ascii: "-"))
        Decimal.append(UInt64(identity[18]) << 8 | UInt64(identity[19]), to: &text)
    }

    /// Appends the fields of an identity with `-` between them, everything escaped that does not belong into a topic.
    static func appendFields(_ identity: BeaconIdentity, _ formats: FormatCatalog, to text: inout [UInt8]) {
        var isFirst = true
        formats.forEachField(of: identity) { _, value in
            if !isFirst { text.append(UInt8(ascii: "-")) }
            isFirst = false
            text.append(contentsOf: MQTTTopics.escape(value).utf8)
        }
    }

    /// The address in an identity of six octets.
    static func address(_ identity: BeaconIdentity) -> DeviceAddress {
        DeviceAddress(value: identity.words.high >> 16, kind: .publicDevice)
    }
}
