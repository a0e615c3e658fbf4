// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// Spells topics: the prefix, what the template of a beacon, a region or the gateway makes of its levels, and a leaf.
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
        /// With its alias when that is part of the topic: another may come with a new configuration.
        case beacon(BeaconIdentity, alias: Name)
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

    /// What the topics of the gateway itself begin with, with the `/` behind it.
    let root: String
    /// What each topic of this gateway begins with one of.
    let territories: [String]
    private let prefix: String
    private let gateway: String
    private let templates: MQTTConfiguration.Templates
    private let vocabulary: Vocabulary
    private let leaves: [[CChar]]
    private var stems: [Subject: [CChar]] = [:]

    init(
        prefix: String, gateway: String, vocabulary: Vocabulary,
        templates: MQTTConfiguration.Templates = .init(Values())
    ) {
        self.prefix = prefix
        self.gateway = gateway
        self.templates = templates
        func territory(_ template: TopicTemplate?) -> String {
            var levels = [prefix]
            for level in template?.levels ?? [] {
                switch level {
                case .literal(let text): levels.append(text)
                case .filled(.gateway): levels.append(Self.escape(gateway))
                case .filled: return levels.joined(separator: "/") + "/"
                }
            }
            return levels.joined(separator: "/") + "/"
        }
        root = territory(templates.gateway)
        territories = [root, territory(templates.beacon), territory(templates.region)]
        status = root + "status"
        statusTopic = Self.characters(status) + [0]
        healthTopic = Self.characters(root + "health") + [0]
        self.vocabulary = vocabulary
        leaves = Leaf.allCases.map { Self.characters($0.rawValue) + [0] }
        topic.reserveCapacity(256)
    }

    /// The topic in words, for a message about it.
    var text: String { String(decoding: topic.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self) }

    /// What finds every retained state of beacons and regions of this gateway, by the templates.
    ///
    /// - Parameter counts: how many fields an identity may have.
    func presenceFilters(identityLevels counts: [Int]) -> [String] {
        let usual = TopicTemplate.beacon(MQTTConfiguration.usualBeaconTopic)
        var filters: [String] = []
        for template in [templates.beacon, usual, templates.region].compactMap(\.self) {
            for count in template.has(.identity) ? counts : [1] {
                let levels = template.levels.map { level in
                    switch level {
                    case .literal(let text): text
                    case .filled(.gateway): Self.escape(gateway)
                    case .filled(.identity): Array(repeating: "+", count: count).joined(separator: "/")
                    case .filled: "+"
                    }
                }
                let filter = ([prefix] + levels + [Leaf.presence.rawValue]).joined(separator: "/")
                if !filters.contains(filter) { filters.append(filter) }
            }
        }
        return filters
    }

    /// Spells the topic of what the event is about into ``topic``.
    mutating func spell(_ event: borrowing Event, _ leaf: Leaf) {
        let subject = subject(of: event)
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

    private func subject(of event: borrowing Event) -> Subject {
        switch event.kind {
        case .sighting, .enter, .exit, .unknown, .known, .proximity, .clone:
            if let identity = event.identity {
                .beacon(identity, alias: templates.beacon?.has(.alias) == true ? event.name : .none)
            } else {
                .gateway
            }
        case .regionEnter, .regionExit, .regionUnknown, .regionKnown: .region(event.name)
        case .ranging: .region(event.region)
        case .adapter, .gap, .health, .flood: .gateway
        }
    }

    private func spellStem(_ subject: Subject) -> [CChar] {
        switch subject {
        case .beacon(let identity, let alias):
            fill(templates.beacon) { self.values(of: $0, identity, alias) }
                // It lacks a field, an alias perhaps.
                ?? fill(TopicTemplate.beacon(MQTTConfiguration.usualBeaconTopic)) {
                    self.values(of: $0, identity, alias)
                } ?? Self.characters(root)
        case .region(let name):
            fill(templates.region) { $0 == .region ? [vocabulary.names[name]] : nil } ?? Self.characters(root)
        case .gateway: Self.characters(root)
        }
    }

    /// The levels with a `/` behind each; nil when one of them has no value.
    private func fill(_ template: TopicTemplate?, _ values: (TopicTemplate.Field) -> [String]?) -> [CChar]? {
        guard let template else { return nil }
        var stem = prefix + "/"
        for level in template.levels {
            switch level {
            case .literal(let text): stem += text + "/"
            case .filled(.gateway): stem += Self.escape(gateway) + "/"
            case .filled(let field):
                guard let values = values(field), !values.isEmpty else { return nil }
                for value in values { stem += Self.escape(value) + "/" }
            }
        }
        return Self.characters(stem)
    }

    private func values(of field: TopicTemplate.Field, _ identity: BeaconIdentity, _ alias: Name) -> [String]? {
        switch field {
        case .format: return [vocabulary.formats[identity.format]?.name ?? "unknown"]
        case .alias: return alias == .none ? nil : [vocabulary.names[alias]]
        case .identity, .uuid, .major, .minor:
            var values: [String] = []
            vocabulary.formats.forEachField(of: identity) { part, value in
                if field == .identity || part.key == field.rawValue { values.append(value) }
            }
            return values
        case .gateway, .region: return nil
        }
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
