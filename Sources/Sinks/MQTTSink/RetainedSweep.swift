// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import SinkKit

/// Finds retained states of beacons and regions that were dropped from the configuration while the gateway did not run:
/// once in the life of a sink, on its first connection.
///
/// Judged by the payload, not by the topic: only what this gateway said itself, of a beacon or a region that the
/// configuration does not name.
struct RetainedSweep {
    /// How long what the broker retains may come.
    private static let duration = TimeInterval.seconds(2)
    /// Octets of a state; the longest has some hundred.
    private static let longestState = 4096

    /// What to subscribe to meanwhile.
    let filters: [String]
    private let gateway: String
    private let vocabulary: Vocabulary
    private var inventory = Inventory()
    private var version: UInt64 = 0
    private var isOver = false
    private(set) var end: MonotonicTime?
    /// Several filters may find one.
    private var stale: Set<String> = []

    init(_ topics: MQTTTopics, gateway: String, vocabulary: Vocabulary) {
        self.gateway = gateway
        self.vocabulary = vocabulary
        let counts = Set(vocabulary.formats.formats.map(\.fields.count)).subtracting([0]).sorted()
        filters = topics.presenceFilters(identityLevels: counts)
    }

    /// - Returns: whether the filters are to be subscribed to.
    mutating func begin(_ inventory: Inventory, version: UInt64, at now: MonotonicTime) -> Bool {
        guard !isOver else { return false }
        self.inventory = inventory
        self.version = version
        stale = []
        end = now + Self.duration
        return true
    }

    /// Takes a retained state; nothing else is of interest.
    mutating func take(_ message: MQTTReports.Message) {
        guard end != nil, message.isRetained, message.payload.count <= Self.longestState,
            message.topic.utf8.reversed().starts(with: "/presence".utf8.reversed()),
            let state = try? Document(message.payload).root, text(state["gateway"]) == gateway, state["state"] != nil
        else { return }
        if let region = text(state["region"]) {
            if !inventory.regions.contains(where: { vocabulary.names[$0.name] == region }) {
                stale.insert(message.topic)
            }
        } else if let identity = identity(state), !inventory.names(identity) {
            stale.insert(message.topic)
        }
    }

    /// Whether the time is over, told once. When the configuration has changed meanwhile, all is left as it is: what was
    /// dropped may be named again.
    mutating func isDue(at now: MonotonicTime, version: UInt64) -> Bool {
        guard let end, now >= end else { return false }
        if version != self.version { stale = [] }
        self.end = nil
        isOver = true
        return true
    }

    /// The next topic to clear, when the time is over.
    mutating func next() -> String? { end == nil ? stale.popFirst() : nil }

    private func identity(_ state: Node) -> BeaconIdentity? {
        guard let name = text(state["format"]), let id = vocabulary.formats.id(named: name),
            let format = vocabulary.formats[id], !format.fields.isEmpty
        else { return nil }
        var octets: [UInt8] = []
        for field in format.fields {
            let value: String
            switch state[field.key]?.content {
            case .text(let text): value = text
            case .integer(let number): value = "\(number)"
            default: return nil
            }
            guard let part = FormatCatalog.octets(field, text: value) else { return nil }
            octets += part
        }
        return BeaconIdentity(format: id, octets: octets.span)
    }

    private func text(_ node: Node?) -> String? { if case .text(let text) = node?.content { text } else { nil } }
}

/// The sweep at the sink; its messages go out beside those of batches.
extension MQTTSink {
    mutating func beginSweep(_ connection: MQTTConnection) throws(MQTTFailure) {
        let (version, inventory) = context.inventory.current
        // A host that posted nothing may have everything.
        guard version > 0, sweep.begin(inventory, version: version, at: context.now()) else { return }
        for filter in sweep.filters { try connection.subscribe(filter) }
    }

    mutating func tendSweep(_ connection: MQTTConnection) throws(MQTTFailure) {
        if sweep.isDue(at: context.now(), version: context.inventory.version) {
            for filter in sweep.filters { try connection.unsubscribe(filter) }
        }
        while window.hasRoomBeside, !connection.hasUnsentBytes, let topic = sweep.next() {
            window.sendBeside(
                try connection.publish(Array(topic.utf8CString), [], .atLeastOnce, retain: true, properties))
        }
    }
}
