// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// The `config` object of an `mqtt` sink.
struct MQTTConfiguration {
    static let host = Key.text(
        "host", default: "localhost",
        .init(
            maximumBytes: 253, pattern: "^(unix:/[!-~]{1,106}|(?!unix:)[!-.0-~]+)$",
            expected: "a host name or an address, without a scheme, a port or a path; or `unix:` and an absolute path",
            check: isHost),
        "Host name or address of the broker, or `unix:/path` of its socket.")

    static let port = Key<Int64?>.optionalInteger(
        "port", in: 1...65_535, example: "1883", "TCP port of the broker; 1883 unless given, 8883 with `tls`.")

    static let clientID = Key.optionalText(
        "client_id",
        .init(maximumBytes: 256, pattern: "^[!-~]+$", expected: "visible ASCII characters without spaces") { text in
            text.utf8.allSatisfy(isVisible)
        },
        example: "\"beacond-gw1\"",
        "Client identifier, which must be unique at the broker; `beacond-` and the gateway's id unless given.")

    static let username = Key.optionalText(
        "username", example: "\"gw1\"",
        "User name to log in with; with `file:`, `credential:` or `environment:` before it, where to read it, as "
            + "for `password`.")

    static let password = Key.optionalText(
        "password",
        .init(
            maximumBytes: 4096, pattern: "^(file:/.+|credential:[^/]+|environment:[^=]+)$",
            expected: "`file:/path`, `credential:name` (of the service manager) or `environment:NAME`; the password "
                + "itself does not belong into a configuration"
        ) { Secret($0) != nil },
        example: "\"file:/etc/beacond/mqtt.password\"",
        "Where the password is: `file:/path`, `credential:name` or `environment:NAME`; read at each connection.")

    static let tls = Key.boolean("tls", default: false, "Encrypt the connection with TLS 1.2 or newer.")

    // The keys of TLS have no place in a sample without TLS.
    static let caFile = Key.optionalText(
        "ca_file", .init(maximumBytes: 4096),
        "Certificates (PEM) of the authorities that may vouch for the broker; those of the machine unless given.")

    static let certificateFile = Key.optionalText(
        "certificate_file", .init(maximumBytes: 4096),
        "Certificate (PEM) of this gateway, for a broker that asks for one.")

    static let keyFile = Key.optionalText(
        "key_file", .init(maximumBytes: 4096),
        "Private key (PEM, not encrypted) of `certificate_file`.")

    static let alpn = Key.optionalText(
        "alpn",
        .init(maximumBytes: 255, pattern: "^[!-~]+$", expected: "visible ASCII characters without spaces") { text in
            !text.isEmpty && text.utf8.allSatisfy(isVisible)
        },
        "Protocol to ask for in the TLS handshake (ALPN), for brokers that share a port.")

    static let topicPrefix = Key.text(
        "topic_prefix", default: "beacond",
        .init(
            maximumBytes: 256, pattern: "^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$",
            expected: "topic levels of letters, digits, '_', '-' and '.', separated by '/'", check: isTopicPrefix),
        "First levels of every topic.")

    static let gatewayTopic = Key.text(
        "gateway_topic", default: "{gateway}",
        .init(
            maximumBytes: 256, pattern: TopicTemplate.pattern(TopicTemplate.gatewayFields),
            expected: "topic levels, one of them `{gateway}`"
        ) { TopicTemplate.gateway($0) != nil },
        "Levels behind `topic_prefix` of the topics of the gateway: its status, health, events and commands.")

    static let usualBeaconTopic = "{gateway}/{format}/{identity}"

    static let beaconTopic = Key.text(
        "beacon_topic", default: usualBeaconTopic,
        .init(
            maximumBytes: 256,
            pattern: TopicTemplate.pattern(
                TopicTemplate.beaconFields,
                needed: #"(?=.*\{(identity|alias)\}|(?=.*\{uuid\})(?=.*\{major\})(?=.*\{minor\}))"#),
            expected: "topic levels, among them `{gateway}` and one of `{identity}`, `{alias}`, or all of `{uuid}`, "
                + "`{major}` and `{minor}`; `{format}` may stand beside them"
        ) { TopicTemplate.beacon($0) != nil },
        "Levels behind `topic_prefix` of the topics of a beacon; one that lacks a field has its topics under the "
            + "default.")

    static let regionTopic = Key.text(
        "region_topic", default: "{gateway}/region/{region}",
        .init(
            maximumBytes: 256,
            pattern: TopicTemplate.pattern(TopicTemplate.regionFields, needed: #"(?=.*\{region\})"#),
            expected: "topic levels, among them `{gateway}` and `{region}`"
        ) { TopicTemplate.region($0) != nil },
        "Levels behind `topic_prefix` of the topics of a region.")

    static let keepalive = Key.duration(
        "keepalive", default: .seconds(20), in: .seconds(5)...(.seconds(300)),
        "Longest silence on the connection before it is tested; a dead one is noticed after twice this time.")

    static let protocolVersion = Key.choice(
        "protocol", default: "auto", of: ["auto", "5", "3.1.1"],
        "Version of MQTT; `auto` speaks MQTT 5 and falls back to 3.1.1 when the broker refuses it.")

    static let publishUnknown = Key.boolean(
        "publish_unknown", default: false,
        "Publish sightings of beacons that the configuration does not name, too.")

    static let unknownLimit = Key.integer(
        "unknown_per_hour", default: 1000, in: 1...100_000,
        "How many of those beacons have topics within an hour; the sightings of others are counted as withheld.")

    static let presets = Key.texts(
        "presets",
        .init(
            maximumBytes: 32, pattern: "^(\(Presets.Kind.allCases.map(\.rawValue).joined(separator: "|")))$",
            expected: "`mqtt_room`, `theengs` or `espresense`"
        ) { Presets.Kind(rawValue: $0) != nil }, count: 0...8, example: "[\"mqtt_room\"]",
        "Gateways whose topics are published beside the native ones; none unless given.")

    // These have no place in a sample without presets.
    static let room = Key.optionalText(
        "room",
        .init(
            maximumBytes: 64, pattern: #"^[^/+#\u0000-\u001F\u007F-\u009F\uFDD0-\uFDEF\uFFFE\uFFFF]+$"#,
            expected: "one level of a topic, without '/', '+', '#' and control characters", check: isRoom),
        "Where this gateway is, in the topics of `mqtt_room` and `espresense`; the gateway's id unless given.")

    static let mqttRoomTopic = presetTopic("mqtt_room_topic", default: "room_presence", of: "mqtt_room")
    static let espresenseTopic = presetTopic("espresense_topic", default: "espresense", of: "espresense")

    static let theengsTopic = Key.text(
        "theengs_topic", default: "home/{gateway}",
        .init(
            maximumBytes: 256, pattern: TopicTemplate.pattern([.gateway], needsGateway: false),
            expected: "topic levels, one of them may be `{gateway}`"
        ) { TopicTemplate($0, [.gateway]) != nil },
        "Levels before `BTtoMQTT` and `LWT` in the topics of `theengs`.")

    private static func presetTopic(_ name: String, default fallback: String, of preset: String) -> Key<String> {
        Key.text(
            name, default: fallback,
            .init(
                maximumBytes: 256, pattern: "^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$",
                expected: "topic levels of letters, digits, '_', '-' and '.', separated by '/'", check: isTopicPrefix),
            "First levels of the topics of `\(preset)`.")
    }

    static let payloads = Key.choice(
        "payloads", default: "full", of: ["full", "compact"],
        "What sightings hold: everything, or not what stands in their topic or follows from the rest.")

    static let commands = Key.texts(
        "commands",
        .init(maximumBytes: 32, pattern: "^[a-z_]+$", expected: "the name of a verb") { text in
            !text.isEmpty && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "_") }
        }, count: 0...32, example: "[\"state\", \"health\"]",
        "Verbs of the control socket that may be sent as commands; none unless given.")

    static let homeAssistant = Key.section(
        "home_assistant", HomeAssistantConfiguration.section, example: "{\"enabled\": false}",
        "Announce the gateway, its beacons and its regions to Home Assistant (MQTT discovery); nothing is announced "
            + "unless given.")

    static let section = Section(
        [
            host.declaration, port.declaration, clientID.declaration, username.declaration, password.declaration,
            tls.declaration, caFile.declaration, certificateFile.declaration, keyFile.declaration, alpn.declaration,
            topicPrefix.declaration, gatewayTopic.declaration, beaconTopic.declaration, regionTopic.declaration,
            keepalive.declaration, protocolVersion.declaration, publishUnknown.declaration, unknownLimit.declaration,
            payloads.declaration, commands.declaration, presets.declaration, room.declaration,
            mqttRoomTopic.declaration, theengsTopic.declaration, espresenseTopic.declaration,
            homeAssistant.declaration,
        ]
    ) { values, complaints in
        if values.isGiven(password), !values.isGiven(username) {
            complaints.add("password", "a password needs a `username` beside it")
        }
        if values.isGiven(certificateFile) != values.isGiven(keyFile) {
            let (given, missing) =
                values.isGiven(keyFile) ? ("key_file", "certificate_file") : ("certificate_file", "key_file")
            complaints.add(given, "needs `\(missing)` beside it")
        }
        if TopicTemplate.beacon(values[beaconTopic])?.shape == TopicTemplate.region(values[regionTopic])?.shape {
            complaints.add(
                values.isGiven(beaconTopic) ? "beacon_topic" : "region_topic",
                "a beacon and a region of one name would have the same topic")
        }
        // Who says that it is off may keep the rest for later, as the sample does.
        if !values.isGiven(tls) {
            if values.isGiven(caFile) { complaints.add("ca_file", "needs `\"tls\": true`") }
            if values.isGiven(certificateFile) { complaints.add("certificate_file", "needs `\"tls\": true`") }
            if values.isGiven(alpn) { complaints.add("alpn", "needs `\"tls\": true`") }
        } else if values[tls], values[host].hasPrefix("unix:") {
            complaints.add("tls", "a local socket is not encrypted")
        }
    }

    /// Where Debian keeps the authorities that the machine trusts.
    private static let authorities = "/etc/ssl/certs/ca-certificates.crt"

    /// How topics are spelled behind the prefix.
    struct Templates {
        var gateway: TopicTemplate?
        var beacon: TopicTemplate?
        var region: TopicTemplate?

        init(_ values: Values) {
            gateway = TopicTemplate.gateway(values[gatewayTopic])
            beacon = TopicTemplate.beacon(values[beaconTopic])
            region = TopicTemplate.region(values[regionTopic])
        }
    }

    /// What TLS needs besides the machine's library.
    struct TLS {
        var caFile: String
        var certificate: (file: String, key: String)?
        var alpn: String?
    }

    /// Host name, address, or the absolute path of a socket.
    var host: String
    /// 0 for a socket of this machine, as libmosquitto wants it.
    var port: Int32
    var clientID: String
    var username: String?
    var password: Secret?
    /// nil: not encrypted.
    var tls: TLS?
    var topicPrefix: String
    var templates: Templates
    /// Seconds.
    var keepalive: Int32
    /// nil: whichever the broker speaks.
    var version: MQTTVersion?
    /// Beacons that the configuration does not name whose sightings are published within an hour; 0 for none.
    var strangersPerHour: Int
    var sendsCompactSightings: Bool
    /// Verbs that are obeyed.
    var commands: [String]
    var presets: [Presets.Kind]
    /// One level of a topic.
    var room: String
    var mqttRoomTopic: String
    var theengsTopic: String
    var espresenseTopic: String
    /// nil when nothing is announced.
    var homeAssistant: HomeAssistantConfiguration?

    init(_ values: Values, gateway: String) {
        let address = values[Self.host]
        let isLocal = address.hasPrefix("unix:")
        host = isLocal ? String(address.dropFirst("unix:".count)) : address
        port = isLocal ? 0 : Int32(truncatingIfNeeded: values[Self.port] ?? (values[Self.tls] ? 8883 : 1883))
        clientID = values[Self.clientID] ?? "beacond-\(gateway)"
        username = values[Self.username]
        password = values[Self.password].flatMap { Secret($0) }
        if values[Self.tls] {
            let files = values[Self.certificateFile].flatMap { file in
                values[Self.keyFile].map { (file: file, key: $0) }
            }
            tls = TLS(
                caFile: values[Self.caFile] ?? Self.authorities, certificate: files, alpn: values[Self.alpn])
        }
        topicPrefix = values[Self.topicPrefix]
        templates = Templates(values)
        keepalive = Int32(truncatingIfNeeded: values[Self.keepalive].milliseconds / 1000)
        strangersPerHour = values[Self.publishUnknown] ? Int(values[Self.unknownLimit]) : 0
        sendsCompactSightings = values[Self.payloads] == "compact"
        commands = values[Self.commands]
        // Each once.
        let named = values[Self.presets]
        presets = Presets.Kind.allCases.filter { named.contains($0.rawValue) }
        room = values[Self.room] ?? MQTTTopics.escape(gateway)
        mqttRoomTopic = values[Self.mqttRoomTopic]
        espresenseTopic = values[Self.espresenseTopic]
        theengsTopic = (TopicTemplate(values[Self.theengsTopic], [.gateway])?.levels ?? []).map { level in
            if case .literal(let text) = level { text } else { MQTTTopics.escape(gateway) }
        }.joined(separator: "/")
        if values.isGiven(Self.homeAssistant) {
            homeAssistant = HomeAssistantConfiguration(values[Self.homeAssistant])
        }
        version =
            switch values[Self.protocolVersion] {
            case "5": .v5
            case "3.1.1": .v311
            default: nil
            }
    }

    /// Where the broker is, in words.
    var place: String { port == 0 ? host : "\(host):\(port)" }

    private static func isHost(_ text: String) -> Bool {
        guard !text.hasPrefix("unix:") else {
            let path = text.utf8.dropFirst("unix:".utf8.count)
            // A socket's address holds 108 octets with the NUL.
            return path.first == UInt8(ascii: "/") && (2...107).contains(path.count) && path.allSatisfy(isVisible)
        }
        return text.utf8.allSatisfy { isVisible($0) && $0 != UInt8(ascii: "/") }
    }

    private static func isVisible(_ character: UInt8) -> Bool { (0x21...0x7E).contains(character) }

    private static func isRoom(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x2F, 0x2B, 0x23: false
            // What MQTT permits a receiver to refuse: control characters and noncharacters.
            case 0...0x1F, 0x7F...0x9F, 0xFDD0...0xFDEF: false
            default: scalar.value & 0xFFFE != 0xFFFE
            }
        }
    }

    static func isTopicPrefix(_ text: String) -> Bool {
        text.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { level in
            !level.isEmpty && level.utf8.allSatisfy { isUnreserved($0) || $0 == UInt8(ascii: ".") }
        }
    }
}

/// A version of MQTT; the raw value is the protocol level in CONNECT.
enum MQTTVersion: Int32 {
    case v311 = 4
    case v5 = 5

    var name: String {
        switch self {
        case .v311: "MQTT 3.1.1"
        case .v5: "MQTT 5"
        }
    }
}
