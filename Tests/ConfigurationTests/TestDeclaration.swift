// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import SinkKit

/// Formats and sinks like the real ones, so that the fixtures hold still when those grow.
enum TestDeclaration {
    static let formats = FormatCatalog([
        BeaconFormat(
            name: "ibeacon",
            fields: [
                IdentityField(key: "uuid", spelling: .uuid, summary: "The proximity UUID."),
                IdentityField(key: "major", spelling: .number, summary: "The major number."),
                IdentityField(key: "minor", spelling: .number, summary: "The minor number."),
            ]),
        BeaconFormat(
            name: "altbeacon",
            fields: [
                IdentityField(key: "id1", spelling: .uuid, summary: "The first 16 octets of the beacon ID."),
                IdentityField(key: "id2", spelling: .number, summary: "The next two octets."),
                IdentityField(key: "id3", spelling: .number, summary: "The last two octets."),
            ]),
        BeaconFormat(
            name: "eddystone-uid",
            fields: [
                IdentityField(key: "namespace", spelling: .hexadecimal(octets: 10), summary: "The namespace."),
                IdentityField(key: "instance", spelling: .hexadecimal(octets: 6), summary: "The instance."),
            ]),
        BeaconFormat(
            name: "eddystone-url",
            fields: [
                IdentityField(
                    key: "url",
                    spelling: .custom(
                        spell: { octets, text in for index in octets.indices { text.append(octets[index]) } },
                        parse: { $0.utf8.starts(with: "https://".utf8) ? Array($0.utf8.dropFirst(8)) : nil }),
                    summary: "The URL.")
            ]),
        FormatDefinition.device.format, FormatDefinition.irk.format,
    ])

    static let sinks = SinkRegistry([SinkRegistration(TestStdoutSink.self), SinkRegistration(TestMQTTSink.self)])

    static let section = AgentConfiguration.section(formats: formats, sinks: sinks)

    static func load(_ text: String, names: NameTable = NameTable()) throws(ConfigurationError) -> AgentConfiguration {
        try load(Array(text.utf8), file: "plugins.json", names: names)
    }

    static func load(
        _ bytes: [UInt8], file: String, names: NameTable = NameTable()
    ) throws(ConfigurationError) -> AgentConfiguration {
        try AgentConfiguration.load(bytes, file: file, formats: formats, sinks: sinks, names: names)
    }
}

struct TestStdoutSink: Sink {
    static let descriptor = SinkDescriptor(
        kind: "stdout", summary: "Writes events to standard output.",
        section: Section([
            Key.choice("style", default: "auto", of: ["auto", "text", "json"], "How lines look.").declaration
        ]))

    init(_ configuration: Values, context: SinkContext) throws(SinkError) {}
    mutating func open() throws(SinkError) {}
    mutating func write(_ batch: borrowing EventBatch) throws(SinkError) {}
    mutating func close(isFinal: Bool) {}
}

struct TestMQTTSink: Sink {
    static let host = Key.requiredText("host", example: "\"localhost\"", "The broker's host.")
    static let port = Key.integer("port", default: 1883, in: 1...65_535, "The broker's port.")
    static let qos = Key.integer("qos", default: 1, in: 0...2, "The quality of service.")
    static let keepAlive = Key.duration(
        "keep_alive", default: .seconds(20), in: .seconds(5) ... .seconds(3600), "Time between two pings.")
    static let buffer = Key.size("buffer", default: 65_536, in: 1024...1 << 30, "Bytes that may wait.")
    static let share = Key.number("share", default: 0.5, in: 0...1, "A share.")
    static let password = Key<String?>.optionalText("password", .init(maximumBytes: 32), "The password.")

    static let descriptor = SinkDescriptor(
        kind: "mqtt", summary: "Publishes to an MQTT broker.",
        section: Section([
            host.declaration, port.declaration, qos.declaration, keepAlive.declaration, buffer.declaration,
            share.declaration, password.declaration,
        ]))

    init(_ configuration: Values, context: SinkContext) throws(SinkError) {}
    mutating func open() throws(SinkError) {}
    mutating func write(_ batch: borrowing EventBatch) throws(SinkError) {}
    mutating func close(isFinal: Bool) {}
}
