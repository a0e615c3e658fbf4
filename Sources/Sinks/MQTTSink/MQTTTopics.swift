// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Spells topics: `<prefix>/<gateway>/<format>/<identity field>/…/<leaf>` for a beacon,
/// `<prefix>/<gateway>/region/<name>/<leaf>` for a region, `<prefix>/<gateway>/<leaf>` for the gateway itself.
///
/// What stands before the leaf is kept for each beacon, and topics are spelled into one buffer, so that a steady stream
/// allocates nothing.
struct MQTTTopics {
    enum Leaf: String, CaseIterable {
        case sighting, presence, event, ranging
    }

    /// Kept subjects. More beacons than a gateway hears at a time; past it all are forgotten and spelled again, which
    /// costs microseconds each.
    static let capacity = 4096

    private enum Subject: Hashable {
        case beacon(BeaconIdentity)
        case region(Name)
        case gateway
    }

    /// Retained state of the gateway, and the topic of the will.
    let status: String
    /// The same with a NUL behind it.
    let statusTopic: [CChar]
    /// How the gateway fares, retained, with a NUL behind it.
    let healthTopic: [CChar]
    /// The topic that ``spell(_:_:)`` wrote, with a NUL behind it.
    private(set) var topic: [CChar] = []

    /// What every topic of this gateway begins with, with the `/` behind it.
    let root: String
    private let vocabulary: Vocabulary
    private let leaves: [[CChar]]
    private var stems: [Subject: [CChar]] = [:]

    init(prefix: String, gateway: String, vocabulary: Vocabulary) {
        root = "\(prefix)/\(Self.escape(gateway))/"
        status = root + "status"
        statusTopic = Self.characters(status) + [0]
        healthTopic = Self.characters(root + "health") + [0]
        self.vocabulary = vocabulary
        leaves = Leaf.allCases.map { Self.characters($0.rawValue) + [0] }
        topic.reserveCapacity(256)
    }

    /// The topic in words, for a message about it.
    var text: String { String(decoding: topic.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self) }

    /// Spells the topic of what the event is about into ``topic``.
    mutating func spell(_ event: borrowing Event, _ leaf: Leaf) {
        let subject = Self.subject(of: event)
        topic.removeAll(keepingCapacity: true)
        if let stem = stems[subject] {
            topic.append(contentsOf: stem)
        } else {
            let stem = spellStem(subject)
            if stems.count >= Self.capacity { stems.removeAll(keepingCapacity: true) }
            stems[subject] = stem
            topic.append(contentsOf: stem)
        }
        topic.append(contentsOf: leaves[leaf.index])
    }

    private static func subject(of event: borrowing Event) -> Subject {
        switch event.kind {
        case .sighting, .enter, .exit, .proximity, .clone: event.identity.map { .beacon($0) } ?? .gateway
        case .regionEnter, .regionExit, .regionUnknown, .regionKnown: .region(event.name)
        case .ranging: .region(event.region)
        case .adapter, .gap, .health: .gateway
        }
    }

    private func spellStem(_ subject: Subject) -> [CChar] {
        var stem = root
        func append(_ level: String) {
            stem += Self.escape(level)
            stem += "/"
        }
        switch subject {
        case .beacon(let identity):
            append(vocabulary.formats[identity.format]?.name ?? "unknown")
            vocabulary.formats.forEachField(of: identity) { _, value in append(value) }
        case .region(let name):
            append("region")
            append(vocabulary.names[name])
        case .gateway: break
        }
        return Self.characters(stem)
    }

    /// One level of a topic, with every octet outside `[A-Za-z0-9_-]` as `%` and two hexadecimal digits: some brokers
    /// refuse dots and spaces, and none may see a wildcard or a `/`.
    static func escape(_ level: String) -> String {
        var escaped = ""
        for octet in level.utf8 {
            if isUnreserved(octet) {
                escaped.unicodeScalars.append(Unicode.Scalar(octet))
            } else {
                escaped += octet < 16 ? "%0" : "%"
                escaped += String(octet, radix: 16, uppercase: true)
            }
        }
        return escaped
    }

    private static func characters(_ text: String) -> [CChar] { text.utf8.map { CChar(truncatingIfNeeded: $0) } }
}

extension MQTTTopics.Leaf {
    fileprivate var index: Int {
        switch self {
        case .sighting: 0
        case .presence: 1
        case .event: 2
        case .ranging: 3
        }
    }
}

/// Letters, digits, `_` and `-`: what stands in a topic as it is.
func isUnreserved(_ octet: UInt8) -> Bool {
    switch octet {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
    default: false
    }
}
