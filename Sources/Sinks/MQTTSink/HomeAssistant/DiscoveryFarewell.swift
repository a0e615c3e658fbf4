// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What was taken back while Home Assistant may have been off. It removes only what it has seen since its start, and lists
/// the rest for ever as no longer provided; so at its birth it is shown these once more, and then they are taken back again.
struct DiscoveryFarewell {
    /// Documents that are remembered; a person deletes what is left of more.
    private static let capacity = 100

    /// By topic: the components that a device had, by key; none in the document of one entity.
    private var documents: [String: [String: String]] = [:]

    var isEmpty: Bool { documents.isEmpty }

    mutating func remember(_ topic: String, _ components: [String: String]) {
        if documents.count < Self.capacity { documents[topic] = components }
    }

    mutating func forget(_ topic: String) { documents[topic] = nil }

    /// A document for each that says no more than Home Assistant needs to know it again; not to be retained.
    ///
    /// - Parameter node: the level of the topics that stands for the gateway, with which unique ids begin.
    func placeholders(node: String) -> [DiscoveryDesk.Message] {
        documents.sorted { $0.key < $1.key }.compactMap { topic, components -> DiscoveryDesk.Message? in
            let levels = topic.split(separator: "/")
            guard levels.count >= 4 else { return nil }
            let level = String(levels[levels.count - 2])
            let isDevice = levels[levels.count - 4] == "device"
            var writer = JSONWriter()
            writer.beginObject()
            writer.key("device")
            writer.beginObject()
            writer.key("identifiers")
            writer.beginArray()
            writer.string("\(node)_\(isDevice ? level : Self.object(of: level))")
            writer.endArray()
            writer.endObject()
            writer.key("origin")
            writer.beginObject()
            writer.member("name", DiscoveryDocuments.origin)
            writer.endObject()
            if isDevice {
                writer.key("components")
                writer.beginObject()
                for (key, platform) in components.sorted(by: { $0.key < $1.key }) {
                    writer.key(key)
                    writer.beginObject()
                    writer.member("platform", platform)
                    Self.write("\(node)_\(level)_\(key)", topic, into: &writer)
                    writer.endObject()
                }
                writer.endObject()
            } else {
                Self.write("\(node)_\(level)", topic, into: &writer)
            }
            writer.endObject()
            return DiscoveryDesk.Message(topic: topic, payload: writer.bytes, isRetained: false)
        }
    }

    /// Takes them all back, and forgets them.
    mutating func clears() -> [DiscoveryDesk.Message] {
        defer { documents = [:] }
        return documents.keys.sorted().map { DiscoveryDesk.Message(topic: $0, payload: []) }
    }

    /// Where its states would be is a topic on which nothing is published.
    private static func write(_ uniqueID: String, _ topic: String, into writer: inout JSONWriter) {
        writer.member("unique_id", uniqueID)
        writer.member("state_topic", "\(topic)/gone")
    }

    /// The level of the device of one entity's level, which has the key of the entity behind it.
    private static func object(of level: String) -> String {
        for index in level.utf8.indices where level.utf8[index] == UInt8(ascii: "_") {
            let key = String(level[level.utf8.index(after: index)...])
            if ["tracker", "presence", "rssi", "distance", "count"].contains(key) || MeasuredQuantity.named(key) != nil
            {
                return String(level[..<index])
            }
        }
        return level
    }
}
