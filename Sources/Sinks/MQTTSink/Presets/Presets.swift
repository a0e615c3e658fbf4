// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit

/// What is published for the readers of other gateways, beside the native topics and on the same occasions.
struct Presets {
    enum Kind: String, CaseIterable {
        case mqttRoom = "mqtt_room"
        case theengs, espresense
    }

    /// Beacons of which the last exit is remembered. Past it all are forgotten.
    private static let capacity = 4096

    private let tables: [any Preset]
    private let context: SinkContext
    private var message = PresetMessage()
    private var frame = FrameMembers()
    /// When a beacon left that has not been heard since: readers have no clock, so that a sighting that waited for the
    /// broker must not bring it back.
    private var exits: [BeaconIdentity: MonotonicTime] = [:]

    init(_ configuration: MQTTConfiguration, context: SinkContext) {
        self.context = context
        let vocabulary = context.vocabulary
        tables = configuration.presets.map { kind in
            switch kind {
            case .mqttRoom:
                MQTTRoom(prefix: configuration.mqttRoomTopic, room: configuration.room, vocabulary: vocabulary)
            case .theengs: Theengs(root: configuration.theengsTopic, vocabulary: vocabulary)
            case .espresense:
                ESPresense(prefix: configuration.espresenseTopic, room: configuration.room, vocabulary: vocabulary)
            }
        }
    }

    /// Publishes what a sighting is there, at QoS 0: it is lost when the native one is.
    mutating func publishSighting(
        _ event: borrowing Event, _ connection: MQTTConnection, _ properties: MQTTProperties
    ) throws(MQTTFailure) {
        guard !tables.isEmpty, event.kind == .sighting, isNews(event) else { return }
        frame.read(event, context.vocabulary.formats)
        for table in tables {
            message.begin()
            guard table.spellSighting(event, frame, &message) else { continue }
            message.end()
            _ = try publish(.atMostOnce, connection, properties)
        }
    }

    /// Publishes what the exit of a beacon is there, at QoS 1.
    ///
    /// - Returns: the identifiers under which the messages will be acknowledged.
    mutating func publishExit(
        _ event: borrowing Event, _ connection: MQTTConnection, _ properties: MQTTProperties
    ) throws(MQTTFailure) -> [Int32] {
        guard !tables.isEmpty, event.kind == .exit, let identity = event.identity else { return [] }
        if exits.count >= Self.capacity { exits.removeAll(keepingCapacity: true) }
        // A moment of a state that was remembered may be of an earlier boot.
        exits[identity] = min(event.time, context.now())
        var identifiers: [Int32] = []
        for table in tables {
            message.begin()
            guard table.spellExit(event, &message) else { continue }
            message.end()
            if let identifier = try publish(.atLeastOnce, connection, properties) { identifiers.append(identifier) }
        }
        return identifiers
    }

    /// Publishes whether this gateway is there. Only one will goes with a connection, which is the native one's.
    func publishStatus(isOnline: Bool, _ connection: MQTTConnection) throws(MQTTFailure) {
        for table in tables {
            guard let topic = table.statusTopic else { continue }
            _ = try connection.publish(
                Array(topic.utf8CString), Array((isOnline ? "online" : "offline").utf8), .atMostOnce, retain: true)
        }
    }

    /// A message that cannot be sent is none of the native ones: they go on without it.
    private func publish(
        _ quality: MQTTConnection.Quality, _ connection: MQTTConnection, _ properties: MQTTProperties
    ) throws(MQTTFailure) -> Int32? {
        do throws(MQTTFailure) {
            return try connection.publish(message.topic, message.payload.bytes, quality, retain: false, properties)
        } catch {
            guard case .unsendable(let reason) = error else { throw error }
            context.log(.warning, "cannot publish a message of a preset: \(reason)")
            return nil
        }
    }

    private mutating func isNews(_ event: borrowing Event) -> Bool {
        guard !exits.isEmpty, let identity = event.identity, let exit = exits[identity] else { return true }
        guard event.time > exit else { return false }
        exits[identity] = nil
        return true
    }
}
