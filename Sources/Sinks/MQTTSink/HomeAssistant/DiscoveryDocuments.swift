// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit

/// What Home Assistant is told of each device: topics and payloads, from nothing but the inventory, the quantities that
/// beacons were heard to measure, and the release that reads it.
///
/// Templates render `None` for what is not known, which each component takes for that, and never fail for a topic that
/// was cleared: its payload is empty then, and `value_json` not defined.
struct DiscoveryDocuments {
    struct Document: Equatable {
        var topic: String
        var payload: [UInt8]
        /// The entities of a device document with their components; empty in a document of one entity.
        var components: [String: String] = [:]
    }

    let configuration: HomeAssistantConfiguration
    private let gateway: String
    private let version: String
    private let vocabulary: Vocabulary
    private var topics: MQTTTopics
    private(set) var inventory = Inventory()
    /// What is announced, by the level that names it in a topic.
    private(set) var objects: [String: DiscoveryObject] = [:]
    private var aliases: [BeaconIdentity: Name] = [:]

    init(
        _ configuration: HomeAssistantConfiguration, gateway: String, version: String, vocabulary: Vocabulary,
        topics: MQTTTopics
    ) {
        self.configuration = configuration
        self.gateway = gateway
        self.version = version
        self.vocabulary = vocabulary
        self.topics = topics
        use(Inventory())
    }

    mutating func use(_ inventory: Inventory) {
        self.inventory = inventory
        aliases = Dictionary(inventory.beacons.map { ($0.identity, $0.alias) }) { first, _ in first }
        objects = Dictionary(order.map { (level(of: $0), $0) }) { first, _ in first }
    }

    /// The gateway first: the others name it as the way to them.
    var order: [DiscoveryObject] {
        [.gateway] + inventory.regions.map { .region($0.name) } + inventory.beacons.map { .beacon($0.identity) }
    }

    // MARK: Topics

    /// The level that all of this gateway's documents have in common.
    var node: String { "beacond_\(DiscoveryNames.escape(gateway))" }

    /// Everything that this gateway ever announced.
    var filter: String { "\(configuration.prefix)/+/\(node)/+/config" }

    /// Where Home Assistant says that it is there.
    var birthTopic: String { "\(configuration.prefix)/status" }

    /// `ibeacon_<uuid>_1_2`: by the identity, which stays when the alias changes.
    func level(of object: DiscoveryObject) -> String {
        switch object {
        case .gateway: "gateway"
        case .region(let name): "region_\(DiscoveryNames.escape(vocabulary.names[name]))"
        case .beacon(let identity):
            ([vocabulary.formats[identity.format]?.name ?? ""] + fields(of: identity)).map(DiscoveryNames.escape)
                .joined(separator: "_")
        }
    }

    /// The topics of an object's documents.
    mutating func topics(of object: DiscoveryObject, measuring keys: Set<String>) -> [String] {
        let level = level(of: object)
        guard !configuration.release.readsDeviceDocuments else { return [topic("device", level)] }
        return entities(of: object, measuring: keys).map { topic($0.component.rawValue, "\(level)_\($0.key)") }
    }

    private func topic(_ component: String, _ level: String) -> String {
        "\(configuration.prefix)/\(component)/\(node)/\(level)/config"
    }

    // MARK: Documents

    /// One for a device, or one for each of its entities, as the release has it.
    ///
    /// - Parameter gone: entities that the device had, with their components: named once with nothing but that, they are
    ///   removed.
    mutating func documents(
        of object: DiscoveryObject, measuring keys: Set<String>, gone: [String: String] = [:]
    ) -> [Document] {
        let entities = entities(of: object, measuring: keys)
        let level = level(of: object)
        guard configuration.release.readsDeviceDocuments else {
            return entities.map { entity in
                var writer = JSONWriter()
                writer.beginObject()
                write(entity, of: object, level, isShared: false, into: &writer)
                writeDevice(object, level, into: &writer)
                writeOrigin(into: &writer)
                writer.endObject()
                return Document(
                    topic: topic(entity.component.rawValue, "\(level)_\(entity.key)"), payload: writer.bytes)
            }
        }
        let shares = !entities.contains { if case .always = $0.availability { true } else { false } }
        var writer = JSONWriter()
        writer.beginObject()
        writeDevice(object, level, into: &writer)
        writeOrigin(into: &writer)
        if shares { write(.gateway, of: object, into: &writer) }
        writer.key("components")
        writer.beginObject()
        for entity in entities {
            writer.key(entity.key)
            writer.beginObject()
            writer.member("platform", entity.component.rawValue)
            write(entity, of: object, level, isShared: shares, into: &writer)
            writer.endObject()
        }
        for (key, component) in gone.sorted(by: { $0.key < $1.key }) {
            writer.key(key)
            writer.beginObject()
            writer.member("platform", component)
            writer.endObject()
        }
        writer.endObject()
        writer.endObject()
        let components = Dictionary(entities.map { ($0.key, $0.component.rawValue) }) { first, _ in first }
        return [Document(topic: topic("device", level), payload: writer.bytes, components: components)]
    }

    private mutating func write(
        _ entity: DiscoveryEntity, of object: DiscoveryObject, _ level: String, isShared: Bool,
        into writer: inout JSONWriter
    ) {
        writer.key("name")
        if let name = entity.name { writer.string(name) } else { writer.null() }
        writer.member("unique_id", "\(node)_\(level)_\(entity.key)")
        let place = slug(of: object) + (entity.slug.map { "_\($0)" } ?? "")
        if configuration.release.readsDefaultEntityID {
            writer.member("default_entity_id", "\(entity.component.rawValue).\(place)")
        } else {
            writer.member("object_id", place)
        }
        for (key, value) in entity.texts { writer.member(key, value) }
        if let precision = entity.precision {
            writer.key("suggested_display_precision")
            writer.integer(precision)
        }
        if entity.isDiagnostic { writer.member("entity_category", "diagnostic") }
        if !entity.isEnabled {
            writer.key("enabled_by_default")
            writer.boolean(false)
        }
        switch entity.availability {
        case .always: break
        case .gateway where isShared: break
        case .gateway, .presence: write(entity.availability, of: object, into: &writer)
        }
    }

    private mutating func write(
        _ availability: DiscoveryEntity.Availability, of object: DiscoveryObject, into writer: inout JSONWriter
    ) {
        func condition(_ topic: String, _ template: String, into writer: inout JSONWriter) {
            writer.beginObject()
            writer.member("topic", topic)
            writer.member("value_template", template)
            writer.endObject()
        }
        writer.key("availability")
        writer.beginArray()
        condition(topics.status, Self.statusTemplate, into: &writer)
        if case .presence = availability {
            condition(
                topic(of: object, .presence),
                "{{ 'online' if value_json is defined and value_json.state == 'present' else 'offline' }}",
                into: &writer)
        }
        writer.endArray()
        writer.member("availability_mode", "all")
    }

    private func writeDevice(_ object: DiscoveryObject, _ level: String, into writer: inout JSONWriter) {
        writer.key("device")
        writer.beginObject()
        writer.key("identifiers")
        writer.beginArray()
        writer.string("\(node)_\(level)")
        writer.endArray()
        writer.member("name", name(of: object))
        switch object {
        case .gateway:
            writer.member("model", "beacond")
            writer.member("sw_version", version)
        case .beacon(let identity):
            writer.member("model", vocabulary.formats[identity.format]?.name ?? "")
            writer.member("via_device", "\(node)_gateway")
        case .region:
            writer.member("model", "Region")
            writer.member("via_device", "\(node)_gateway")
        }
        writer.endObject()
    }

    private func writeOrigin(into writer: inout JSONWriter) {
        writer.key("origin")
        writer.beginObject()
        writer.member("name", Self.origin)
        writer.member("sw_version", version)
        writer.endObject()
    }

    /// The name of the program in each document.
    static let origin = "beacond"

    // MARK: Names

    private func fields(of identity: BeaconIdentity) -> [String] {
        var fields: [String] = []
        vocabulary.formats.forEachField(of: identity) { _, value in fields.append(value) }
        return fields
    }

    /// What people call it: Home Assistant takes the name of a device off that of an entity that begins with it, and
    /// warns, so no name does.
    private func name(of object: DiscoveryObject) -> String {
        switch object {
        case .gateway: return "beacond \(gateway)"
        case .region(let name):
            let name = vocabulary.names[name]
            return Self.begins(Self.regionNames, with: name) ? "Region \(name)" : name
        case .beacon(let identity):
            let alias = vocabulary.names[aliases[identity] ?? .none]
            guard alias.isEmpty else { return Self.begins(Self.beaconNames, with: alias) ? "Beacon \(alias)" : alias }
            return
                ([vocabulary.formats[identity.format]?.name ?? ""] + fields(of: identity).dropFirst(isLong(identity)))
                .joined(separator: " ")
        }
    }

    /// How many fields of an identity are left out of its name: the first of several is that of a whole fleet.
    private func isLong(_ identity: BeaconIdentity) -> Int { fields(of: identity).count > 1 ? 1 : 0 }

    private static func begins(_ names: [String], with name: String) -> Bool { names.contains { $0.hasPrefix(name) } }

    private func slug(of object: DiscoveryObject) -> String {
        let slug = DiscoveryNames.slug(name(of: object))
        return slug.isEmpty ? DiscoveryNames.slug(level(of: object)) : slug
    }

    // MARK: Entities

    private static let statusTemplate = "{{ value_json.state if value_json is defined else 'offline' }}"
    /// All that an entity of a beacon may be called, and of a region.
    private static let beaconNames = ["Presence", "Signal strength", "Distance"] + MeasuredQuantity.names
    private static let regionNames = ["Beacons inside", "Tracker"]

    private mutating func entities(of object: DiscoveryObject, measuring keys: Set<String>) -> [DiscoveryEntity] {
        switch object {
        case .gateway: gatewayEntities
        case .region(let name): entities(of: name)
        case .beacon: beaconEntities(object, measuring: keys)
        }
    }

    private mutating func beaconEntities(_ object: DiscoveryObject, measuring keys: Set<String>) -> [DiscoveryEntity] {
        let presence = topic(of: object, .presence)
        let sighting = topic(of: object, .sighting)
        let own = [
            tracker(presence, in: "present", out: "absent", name: nil),
            DiscoveryEntity(
                key: "presence", slug: "presence", component: .binarySensor, name: "Presence",
                texts: [
                    ("state_topic", presence),
                    ("value_template", Self.choice(["present": "ON", "absent": "OFF"])),
                    ("device_class", "occupancy"),
                ]),
            DiscoveryEntity(
                key: "rssi", slug: "rssi", component: .sensor, name: "Signal strength", availability: .presence,
                isDiagnostic: true, isEnabled: configuration.showsSignals,
                texts: [
                    ("state_topic", sighting), ("value_template", "{{ value_json.rssi }}"),
                    ("device_class", "signal_strength"), ("unit_of_measurement", "dBm"),
                    ("state_class", "measurement"),
                ]),
            DiscoveryEntity(
                key: "distance", slug: "distance", component: .sensor, name: "Distance", availability: .presence,
                isEnabled: configuration.showsSignals,
                texts: [
                    ("state_topic", sighting),
                    ("value_template", "{{ value_json.accuracy if value_json.accuracy >= 0 else None }}"),
                    ("device_class", "distance"), ("unit_of_measurement", "m"), ("state_class", "measurement"),
                ], precision: 1),
        ]
        let measured = keys.sorted().compactMap(MeasuredQuantity.named).map { quantity in
            var texts = [("state_topic", sighting), ("value_template", quantity.template)]
            if let deviceClass = quantity.deviceClass { texts.append(("device_class", deviceClass)) }
            if let unit = quantity.unit { texts.append(("unit_of_measurement", unit)) }
            if let stateClass = quantity.stateClass { texts.append(("state_class", stateClass)) }
            return DiscoveryEntity(
                key: quantity.key, slug: quantity.slug, component: quantity.component, name: quantity.name,
                isDiagnostic: quantity.isDiagnostic, isEnabled: quantity.isEnabled, texts: texts)
        }
        return own + measured
    }

    private mutating func entities(of region: Name) -> [DiscoveryEntity] {
        let presence = topic(of: .region(region), .presence)
        var entities = [
            DiscoveryEntity(
                key: "presence", slug: nil, component: .binarySensor, name: nil,
                texts: [
                    ("state_topic", presence),
                    ("value_template", Self.choice(["inside": "ON", "outside": "OFF"])),
                    ("device_class", "occupancy"),
                ]),
            DiscoveryEntity(
                key: "count", slug: "count", component: .sensor, name: "Beacons inside",
                texts: [
                    ("state_topic", presence),
                    (
                        "value_template",
                        "{{ value_json.inside if value_json is defined and value_json.state != 'unknown' else None }}"
                    ),
                    ("state_class", "measurement"),
                ]),
        ]
        if configuration.trackers.contains(vocabulary.names[region]) {
            entities.append(tracker(presence, in: "inside", out: "outside", name: "Tracker"))
        }
        return entities
    }

    private var gatewayEntities: [DiscoveryEntity] {
        let health = topics.root + "health"
        let connectivity = DiscoveryEntity(
            key: "connectivity", slug: "connectivity", component: .binarySensor, name: "Connectivity",
            availability: .always, isDiagnostic: true,
            texts: [
                ("state_topic", topics.status), ("value_template", Self.statusTemplate), ("payload_on", "online"),
                ("payload_off", "offline"), ("device_class", "connectivity"),
            ])
        let problem = DiscoveryEntity(
            key: "healthy", slug: "problem", component: .binarySensor, name: "Problem", isDiagnostic: true,
            texts: [
                ("state_topic", health), ("value_template", "{{ 'OFF' if value_json.healthy else 'ON' }}"),
                ("device_class", "problem"), ("json_attributes_topic", health),
                (
                    "json_attributes_template",
                    "{{ ({'reason': value_json.reason} if 'reason' in value_json else {}) | to_json }}"
                ),
            ])
        let adapters = inventory.adapters.map { adapter in
            let name = vocabulary.names[adapter]
            let selection = "value_json.adapters | selectattr('adapter', 'eq', \(Self.quoted(name)))"
            return DiscoveryEntity(
                key: "adapter_\(DiscoveryNames.escape(name))", slug: "adapter_\(DiscoveryNames.slug(name))",
                component: .binarySensor, name: "Adapter \(name)", isDiagnostic: true,
                texts: [
                    ("state_topic", health),
                    (
                        "value_template",
                        "{% set states = \(selection) | map(attribute='state') | list %}"
                            + "{{ 'None' if not states else 'ON' if states[0] == 'scanning' else 'OFF' }}"
                    ),
                    ("device_class", "running"), ("json_attributes_topic", health),
                    // An attribute of the name `state` would be left out.
                    (
                        "json_attributes_template",
                        "{% set adapter = \(selection) | first | default({}) %}"
                            + "{{ {'adapter_state': adapter.state | default('unknown'), "
                            + "'reason': adapter.reason | default('')} | to_json }}"
                    ),
                ])
        }
        let counters = [
            ("events", "Events sent"), ("sightings", "Sightings sent"), ("refused", "Refused messages"),
            ("connections", "Connections"),
        ].map { key, name in
            DiscoveryEntity(
                key: key, slug: key, component: .sensor, name: name, isDiagnostic: true,
                // It changes each minute.
                isEnabled: key != "sightings" || configuration.showsSignals,
                texts: [
                    ("state_topic", health), ("value_template", "{{ value_json.sent.\(key) }}"),
                    ("state_class", "total_increasing"),
                ])
        }
        return [connectivity, problem] + adapters + counters
    }

    /// Where it is stands in its state, and since 2026.7 in the attribute `in_zones`, too, from which alone the people in a
    /// zone are counted there; a tracker with the attribute alone is unknown for ever (tried with 2026.11). Older
    /// releases show the attribute and make nothing of it.
    private func tracker(_ topic: String, in inside: String, out outside: String, name: String?) -> DiscoveryEntity {
        DiscoveryEntity(
            key: "tracker", slug: name == nil ? nil : "tracker", component: .deviceTracker, name: name,
            texts: [
                ("state_topic", topic),
                ("value_template", Self.choice([inside: "home", outside: "not_home"])),
                ("json_attributes_topic", topic),
                (
                    "json_attributes_template",
                    "{% set state = value_json.state if value_json is defined else none %}"
                        + "{{ {'in_zones': ['zone.home'] if state == '\(inside)' else []} | to_json }}"
                ),
                ("source_type", "bluetooth_le"),
            ])
    }

    private mutating func topic(of object: DiscoveryObject, _ leaf: MQTTTopics.Leaf) -> String {
        var event: Event
        switch object {
        case .gateway: event = Event(kind: .health, time: .zero)
        case .region(let name):
            event = Event(kind: .regionEnter, time: .zero)
            event.name = name
        case .beacon(let identity):
            event = Event(kind: .enter, time: .zero)
            event.identity = identity
            event.name = aliases[identity] ?? .none
        }
        topics.spell(event, leaf)
        return topics.text
    }

    // MARK: Templates

    /// What stands for the state; `None` for any other, and for a topic that was cleared.
    private static func choice(_ words: KeyValuePairs<String, String>) -> String {
        let cases = words.map { "'\($0)': '\($1)'" }.joined(separator: ", ")
        return "{{ {\(cases)}.get(value_json.state, 'None') if value_json is defined else 'None' }}"
    }

    /// A text inside of a template.
    private static func quoted(_ text: String) -> String {
        var quoted = "'"
        for character in text {
            if character == "'" || character == "\\" { quoted += "\\" }
            quoted.append(character)
        }
        return quoted + "'"
    }
}

extension JSONWriter {
    mutating func member(_ key: String, _ value: String) {
        self.key(key)
        string(value)
    }
}
