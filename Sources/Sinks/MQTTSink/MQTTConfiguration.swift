// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// The `config` object of an `mqtt` sink.
struct MQTTConfiguration {
    static let host = Key.text(
        "host", default: "localhost",
        .init(
            maximumBytes: 253, pattern: "^[!-.0-~]+$",
            expected: "a host name or an address, without a scheme, a port or a path"
        ) { text in text.utf8.allSatisfy { isVisible($0) && $0 != UInt8(ascii: "/") } },
        "Host name or address of the broker.")

    static let port = Key.integer("port", default: 1883, in: 1...65_535, "TCP port of the broker.")

    static let clientID = Key.optionalText(
        "client_id",
        .init(maximumBytes: 256, pattern: "^[!-~]+$", expected: "visible ASCII characters without spaces") { text in
            text.utf8.allSatisfy(isVisible)
        },
        example: "\"beacond-gw1\"",
        "Client identifier, which must be unique at the broker; `beacond-` and the gateway's id unless given.")

    static let username = Key.optionalText("username", example: "\"gw1\"", "User name to log in with.")

    static let passwordFile = Key.optionalText(
        "password_file", .init(maximumBytes: 4096), example: "\"/etc/beacond/mqtt.password\"",
        "File that holds the password; read at each connection, one newline at its end is ignored.")

    static let topicPrefix = Key.text(
        "topic_prefix", default: "beacond",
        .init(
            maximumBytes: 256, pattern: "^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$",
            expected: "topic levels of letters, digits, '_', '-' and '.', separated by '/'", check: isTopicPrefix),
        "First levels of every topic.")

    static let keepalive = Key.duration(
        "keepalive", default: .seconds(20), in: .seconds(5)...(.seconds(300)),
        "Longest silence on the connection before it is tested; a dead one is noticed after twice this time.")

    static let protocolVersion = Key.choice(
        "protocol", default: "auto", of: ["auto", "5", "3.1.1"],
        "Version of MQTT; `auto` speaks MQTT 5 and falls back to 3.1.1 when the broker refuses it.")

    static let publishUnknown = Key.boolean(
        "publish_unknown", default: false,
        "Publish sightings of beacons that the configuration does not name, too.")

    static let section = Section(
        [
            host.declaration, port.declaration, clientID.declaration, username.declaration, passwordFile.declaration,
            topicPrefix.declaration, keepalive.declaration, protocolVersion.declaration, publishUnknown.declaration,
        ]
    ) { values, complaints in
        if values.isGiven(passwordFile), !values.isGiven(username) {
            complaints.add("password_file", "a password needs a `username` beside it")
        }
    }

    var host: String
    var port: Int32
    var clientID: String
    var username: String?
    var passwordFile: String?
    var topicPrefix: String
    /// Seconds.
    var keepalive: Int32
    /// nil: whichever the broker speaks.
    var version: MQTTVersion?
    var publishesUnknown: Bool

    init(_ values: Values, gateway: String) {
        host = values[Self.host]
        port = Int32(truncatingIfNeeded: values[Self.port])
        clientID = values[Self.clientID] ?? "beacond-\(gateway)"
        username = values[Self.username]
        passwordFile = values[Self.passwordFile]
        topicPrefix = values[Self.topicPrefix]
        keepalive = Int32(truncatingIfNeeded: values[Self.keepalive].milliseconds / 1000)
        publishesUnknown = values[Self.publishUnknown]
        version =
            switch values[Self.protocolVersion] {
            case "5": .v5
            case "3.1.1": .v311
            default: nil
            }
    }

    private static func isVisible(_ character: UInt8) -> Bool { (0x21...0x7E).contains(character) }

    private static func isTopicPrefix(_ text: String) -> Bool {
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
