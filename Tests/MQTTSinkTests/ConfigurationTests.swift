// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

@Suite struct ConfigurationTests {
    @Test func `everything has a default`() {
        let configuration = MQTTConfiguration(Values(), gateway: "gw1")
        #expect(configuration.host == "localhost")
        #expect(configuration.port == 1883)
        #expect(configuration.clientID == "beacond-gw1")
        #expect(configuration.topicPrefix == "beacond")
        #expect(configuration.keepalive == 20)
        #expect(configuration.version == nil)
        #expect(MQTTSink.descriptor.showsUnknown(Values()) == false)
        #expect(MQTTSink.descriptor.showsUnknown(Values(given: ["publish_unknown": .boolean(true)])))
    }

    @Test(arguments: [("auto", nil), ("5", MQTTVersion.v5), ("3.1.1", .v311)])
    func `a version can be asked for`(word: String, version: MQTTVersion?) {
        #expect(MQTTConfiguration(Values(given: ["protocol": .text(word)]), gateway: "g").version == version)
    }

    @Test(arguments: [
        ("host", "unix:/run/mosquitto.sock", true), ("host", "unix:broker", false), ("host", "unix:/", false),
        ("password", "file:/etc/secret", true), ("password", "credential:mqtt", true), ("password", "hunter2", false),
        ("password", "environment:SECRET", true), ("password", "file:secret", false),
        ("password", "credential:../mqtt", false), ("alpn", "mqtt", true), ("alpn", "", false),
        ("host", "broker.local", true), ("host", "::1", true), ("host", "mqtt://broker", false), ("host", "a b", false),
        ("topic_prefix", "beacond", true), ("topic_prefix", "site.1/hall_2", true), ("topic_prefix", "a//b", false),
        ("topic_prefix", "/a", false), ("topic_prefix", "$SYS", false), ("topic_prefix", "a/#", false),
        ("gateway_topic", "{gateway}", true), ("gateway_topic", "hall-1/{gateway}/now", true),
        ("gateway_topic", "fixed", false), ("gateway_topic", "{gateway}/{alias}", false),
        ("gateway_topic", "gw-{gateway}", false), ("beacon_topic", "{gateway}/{alias}", true),
        ("beacon_topic", "{format}/{identity}/{gateway}", true),
        ("beacon_topic", "{gateway}/{minor}/{major}/{uuid}", true), ("beacon_topic", "{alias}", false),
        ("beacon_topic", "{gateway}/{major}/{minor}", false), ("beacon_topic", "{gateway}/{alias}/#", false),
        ("beacon_topic", "{gateway}/+/{alias}", false), ("beacon_topic", "$share/{gateway}/{alias}", false),
        ("beacon_topic", "{gateway}//{alias}", false), ("beacon_topic", "{gateway}/{alias}/", false),
        ("beacon_topic", "{gateway}/{major}{minor}/{uuid}", false), ("beacon_topic", "{gateway}/{region}", false),
        ("region_topic", "zone/{region}/{gateway}", true), ("region_topic", "{gateway}", false),
        ("client_id", "gw:1", true), ("client_id", "gw 1", false),
        ("room", "kitchen", true), ("room", "Living room", true), ("room", "Küche", true), ("room", "a/b", false),
        ("room", "+", false), ("room", "a#", false), ("room", "a\u{0}", false), ("room", "a\u{1F}", false),
        ("room", "\u{85}a", false), ("room", "a\u{FFFE}", false),
        ("theengs_topic", "home/{gateway}", true), ("theengs_topic", "home/TheengsGateway", true),
        ("theengs_topic", "home/{alias}", false), ("theengs_topic", "home/+", false), ("theengs_topic", "a//b", false),
        ("mqtt_room_topic", "espresense/rooms", true), ("mqtt_room_topic", "a/#", false),
        ("espresense_topic", "espresense", true), ("espresense_topic", "$SYS", false),
    ])
    func `texts are checked`(name: String, text: String, isRight: Bool) throws {
        let key = try #require(MQTTConfiguration.section.keys.first { $0.name == name })
        guard case .text(let rule) = key.shape else {
            Issue.record("\(name) is no text")
            return
        }
        #expect(rule.check(text) == isRight)
        let pattern = try NSRegularExpression(pattern: try #require(rule.pattern))
        let range = NSRange(text.startIndex..., in: text)
        #expect((pattern.firstMatch(in: text, range: range) != nil) == isRight, "the schema's pattern says the same")
    }

    private func paths(_ text: String) -> [String] {
        do throws(ConfigurationError) {
            _ = try ConfigurationReader.read(Array(text.utf8), file: "test.json", section: MQTTConfiguration.section)
            return []
        } catch {
            return error.problems.map(\.path)
        }
    }

    @Test func `a beacon and a region of one name have topics of their own`() {
        #expect(paths(#"{"beacon_topic": "{gateway}/region/{alias}"}"#) == ["$.beacon_topic"])
        #expect(
            paths(#"{"beacon_topic": "{gateway}/{alias}", "region_topic": "{gateway}/{region}"}"#)
                == ["$.beacon_topic"])
        #expect(paths(#"{"beacon_topic": "b/{gateway}/{alias}", "region_topic": "r/{gateway}/{region}"}"#).isEmpty)
    }

    @Test func `a password needs a user`() {
        #expect(paths(#"{"password": "file:/a"}"#) == ["$.password"])
        #expect(paths(#"{"password": "file:/a", "username": "u"}"#).isEmpty)
        #expect(paths(#"{"username": "u"}"#).isEmpty)
    }
}

@Suite struct SecretTests {
    private func read(_ contents: [UInt8], mode: Int = 0o600) throws -> (text: String, isExposed: Bool) {
        let file = URL.temporaryDirectory.appending(path: UUID().uuidString)
        try Data(contents).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        let (text, exposedFile) = try Secret.file(file.path).read()
        #expect(text.last == 0)
        return (Self.words(text), exposedFile == file.path)
    }

    private static func words(_ text: [CChar]) -> String {
        String(decoding: text.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }

    @Test(arguments: [("secret", "secret"), ("secret\n", "secret"), ("two\n\n", "two\n"), (" a b ", " a b ")])
    func `one newline at the end is no part of the secret`(contents: String, secret: String) throws {
        #expect(try read(Array(contents.utf8)).text == secret)
    }

    @Test(arguments: [(0o600, false), (0o640, false), (0o644, true)])
    func `a file that everybody may read is noticed`(mode: Int, isExposed: Bool) throws {
        #expect(try read(Array("x".utf8), mode: mode).isExposed == isExposed)
    }

    @Test(arguments: [[], Array("\n".utf8), [0x61, 0, 0x62], [UInt8](repeating: 0x61, count: 5000)])
    func `what cannot be a secret is refused`(contents: [UInt8]) {
        #expect(throws: Secret.Failure.self) { try read(contents) }
    }

    @Test func `a missing file is named`() {
        let failure = #expect(throws: Secret.Failure.self) { try Secret.file("/nowhere/password").read() }
        #expect(failure?.reason.contains("/nowhere/password") == true)
    }

    @Test func `the environment and the credentials of the service are read`() throws {
        let folder = try TemporaryFolder()
        _ = try folder.file("mqtt", "from systemd\n")
        let environment = ["NAME": "from the environment", "EMPTY": "", "CREDENTIALS_DIRECTORY": folder.path]
        func read(_ secret: Secret) throws -> String {
            Self.words(try secret.read { environment[$0] }.text)
        }
        #expect(try read(.environment("NAME")) == "from the environment")
        #expect(try read(.credential("mqtt")) == "from systemd")
        #expect(throws: Secret.Failure.self) { try read(.environment("EMPTY")) }
        #expect(throws: Secret.Failure.self) { try read(.environment("OTHER")) }
        let failure = #expect(throws: Secret.Failure.self) { try Secret.credential("mqtt").read { _ in nil } }
        #expect(failure?.reason.contains("LoadCredential=") == true)
    }
}
