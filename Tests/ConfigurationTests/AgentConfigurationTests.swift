// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import Foundation
import LinuxIO
import Presence
import SinkKit
import TestSupport
import Testing

/// What the keys become.
@Suite struct AgentConfigurationTests {
    private let formats = TestDeclaration.formats

    private func identity(_ format: String, _ hexadecimal: String) throws -> BeaconIdentity {
        let octets = try #require(Hexadecimal.octets(hexadecimal))
        return BeaconIdentity(format: try #require(formats.id(named: format)), octets: octets.span)
    }

    @Test func defaults() throws {
        let configuration = try TestDeclaration.load("{}")
        #expect(configuration.gatewayID == nil)
        #expect(configuration.sources == ["hci:0"])
        #expect(configuration.logLevel == .info)
        #expect(configuration.stateDirectory == nil)
        #expect(configuration.presence.enterCount == 2)
        #expect(configuration.presence.enterGap == .seconds(30))
        #expect(configuration.presence.exitTime == nil)
        #expect(configuration.presence.falseExits == .oncePerDay)
        #expect(configuration.presence.reportInterval == .seconds(1))
        #expect(configuration.presence.averageOver == 5)
        #expect(configuration.presence.pathLossExponent == 2)
        #expect(configuration.presence.maximumBeacons == 10_000)
        #expect(configuration.scan.profiles == [.continuous, .balanced, .economy])
        #expect(configuration.scan.monitoring == .continuous)
        #expect(configuration.scan.ranging == .continuous)
        #expect(configuration.rangedRegions.isEmpty)
        #expect(configuration.beacons.isEmpty && configuration.regions.isEmpty && configuration.sinks.isEmpty)
    }

    @Test func everyKey() throws {
        let names = NameTable()
        let file = "good/complete.json"
        let configuration = try TestDeclaration.load(try FixtureFiles.bytes(file), file: file, names: names)
        #expect(configuration.gatewayID == "hall-1")
        #expect(configuration.sources == ["btsnoop:walk.btsnoop", "simulate:office.json"])
        #expect(configuration.logLevel == .debug)
        #expect(configuration.stateDirectory == "/var/lib/beacond")
        #expect(configuration.presence.enterCount == 3)
        #expect(configuration.presence.enterGap == .seconds(90))
        #expect(configuration.presence.exitTime == .seconds(90))
        #expect(configuration.presence.reportInterval == .zero)
        #expect(configuration.presence.averageOver == 10)
        #expect(configuration.presence.pathLossExponent == 2.5)
        #expect(configuration.presence.maximumBeacons == 100)
        let night = configuration.scan.monitoring
        #expect(night.name == "night" && night.isActive)
        #expect(
            night.pattern
                == ScanPattern(
                    window: TimeInterval(nanoseconds: 2_500_000), interval: .milliseconds(10_240),
                    burst: .init(on: .seconds(2), off: .seconds(300))))
        #expect(configuration.scan.profiles.map(\.name) == ["balanced", "economy", "night", "continuous"])
        #expect(
            configuration.scan.ranging.pattern == ScanPattern(window: .milliseconds(30), interval: .milliseconds(30)))
        #expect(!configuration.scan.ranging.isActive && configuration.scan.ranging.pattern.burst == nil)
        #expect(Set(configuration.rangedRegions.map { names[$0] }) == ["hall"])

        let beacons = configuration.beacons
        #expect(
            beacons.map { names[$0.alias] } == [
                "keys", "", "door", "schlüssel", "crate", "", "scale", "fridge", "phone",
            ])
        let uuid = "fda50693a4e24fb1afcfc6eb07647825"
        #expect(beacons[0].identity == (try identity("ibeacon", uuid + "0001ffff")))
        #expect(beacons[1].identity == (try identity("altbeacon", uuid + "00000007")))
        #expect(beacons[2].identity == (try identity("eddystone-uid", "00112233445566778899aabbccddeeff")))
        #expect(beacons[3].identity == (try identity("eddystone-url", Hexadecimal.text("example.org".utf8))))
        #expect(beacons[0].measuredPower == -59 && beacons[0].pathLossExponent == 2.4)
        #expect(beacons[0].exitTime == .seconds(3600))
        #expect(beacons[0].enterCount == 1)
        #expect(beacons[1].pathLossExponent == nil)
        #expect(beacons[1].measuredPower == nil && beacons[1].exitTime == nil && beacons[1].enterCount == nil)

        let regions = configuration.regions
        #expect(regions.map { names[$0.name] } == ["site", "hall", "tag", "any uid", "crates", "me"])
        #expect(regions.map { $0.patterns.map(\.prefix) } == [[16], [18], [20], [0], [10], [20, 11, 6, 8]])
        let inHall = try identity("ibeacon", uuid + "00010042")
        #expect(
            regions.map { $0.patterns.contains { $0.matches(inHall) } } == [true, true, false, false, false, false])
        #expect(regions[4].patterns[0].matches(beacons[4].identity))
        #expect(regions[5].patterns.map(\.identity) == [0, 3, 7, 8].map { beacons[$0].identity })

        let sinks = configuration.sinks
        #expect(sinks.map(\.name) == ["stdout", "lines", "mqtt"])
        #expect(sinks.map(\.kind) == ["stdout", "stdout", "mqtt"])
        #expect(sinks.map(\.isEnabled) == [true, false, true])
        #expect(sinks.map(\.queueCapacity) == [1024, 1, 100_000])
        let mqtt = sinks[2].values
        #expect(mqtt[TestMQTTSink.host] == "broker.example.org")
        #expect(mqtt[TestMQTTSink.port] == 8883)
        #expect(mqtt[TestMQTTSink.keepAlive] == .seconds(60))
        #expect(mqtt[TestMQTTSink.buffer] == 1 << 30)
        #expect(mqtt[TestMQTTSink.share] == 1)
        #expect(mqtt[TestMQTTSink.password] == "pa\"ss\\word")
        #expect(mqtt.isGiven(TestMQTTSink.qos) && !sinks[1].values.isGiven(TestMQTTSink.qos))
    }

    @Test func formatsAndDevices() throws {
        let file = "good/complete.json"
        let configuration = try TestDeclaration.load(try FixtureFiles.bytes(file), file: file)
        let custom = configuration.formats
        #expect(custom.map(\.name) == ["asset-tag", "acme"])
        #expect(custom.map(\.companyID) == [nil, 65_535])
        #expect(custom[1].definition.carrier == .manufacturer(companyID: 65_535))
        // Behind the built-in ones, in the order of the file.
        let first = UInt8(formats.formats.count)
        func identity(_ number: UInt8, _ hexadecimal: String) throws -> BeaconIdentity {
            let octets = try #require(Hexadecimal.octets(hexadecimal))
            return BeaconIdentity(format: FormatID(rawValue: first + number), octets: octets.span)
        }
        let beacons = configuration.beacons
        #expect(beacons[4].identity == (try identity(0, "00112233445566778899ffffaabb")))
        #expect(beacons[5].identity == (try identity(1, "fda50693a4e24fb1afcfc6eb076478250001")))
        #expect(beacons[6].identity == (try self.identity("device", "c47c8d6a1122")))
        #expect(beacons[7].identity == (try self.identity("device", "a4c138565384")))
        // The first half of what another implementation (openssl enc -aes-128-ecb) makes of the block.
        #expect(beacons[8].identity == (try self.identity("irk", "99fcd21ba3c92b03")))
        #expect(beacons[8].exitTime == .seconds(300) && beacons[8].enterCount == 1 && beacons[8].measuredPower == -70)

        func text(_ key: [16 of UInt8]) -> String { Hexadecimal.text(key.indices.map { key[$0] }) }
        #expect(configuration.bindKeys.map(\.address) == [0xC47C_8D6A_1122, 0xA4C1_3856_5384])
        #expect(
            configuration.bindKeys.map { text($0.key) } == [
                "231d39c1d7cc1ab1aee224cd096db932", "00000000000000000000000000000001",
            ])
        let key = try #require(configuration.identityResolvingKeys.first)
        #expect(configuration.identityResolvingKeys.count == 1)
        #expect(key.identity == beacons[8].identity)
        #expect(text(key.key) == "ec0234a357c8ad05341010a60a397d9b")
        let resolver = AddressResolver(configuration.identityResolvingKeys)
        // Core 5.4, Vol 3, Part H, D.7.
        #expect(resolver.identity(of: DeviceAddress(value: 0x7081_940D_FBAA, kind: .randomDevice)) == key.identity)
        #expect(resolver.identity(of: DeviceAddress(value: 0x7081_940D_FBAB, kind: .randomDevice)) == nil)
    }

    @Test func theDecoderKnowsTheFormatsOfTheFile() throws {
        let text = """
            {"formats": [{"name": "tag", "layout": "m:2-3=0a0b,i:4-5,p:6-6"}],
             "beacons": [{"format": "tag", "id1": 258}]}
            """
        let configuration = try AgentConfiguration.load(
            Array(text.utf8), file: "f", formats: FrameDecoder().catalog, sinks: TestDeclaration.sinks,
            names: NameTable())
        let data: [UInt8] = [8, 0xFF, 0x12, 0x34, 0x0A, 0x0B, 0x01, 0x02, 0xC5]
        var frames: [Frame] = []
        configuration.decoder.forEachFrame(in: data.span) { frame, _ in frames.append(frame) }
        #expect(frames.map(\.identity) == [configuration.beacons[0].identity])
        #expect(frames.map(\.measuredPower) == [-59])
    }

    @Test func keysInFiles() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("key")
        func load() throws(ConfigurationError) -> AgentConfiguration {
            try TestDeclaration.load(#"{"identity_resolving_keys":[{"alias":"phone","key_file":"\#(path)"}]}"#)
        }
        for text in ["ec0234a357c8ad05341010a60a397d9b", " \t\nEC0234A357C8AD05341010A60A397D9B\r\n\n"] {
            try Data(text.utf8).write(to: URL(filePath: path))
            let keys = try load().identityResolvingKeys
            #expect(keys.map(\.identity) == [try identity("irk", "99fcd21ba3c92b03")])
        }
        for text in ["", "ec0234a357c8ad05341010a60a397d9", "ec0234a357c8ad05341010a60a397d9b 5EC2E7"] {
            try Data(text.utf8).write(to: URL(filePath: path))
            let error = try #require(throws: ConfigurationError.self) { try load() }
            #expect(
                error.description
                    == "plugins.json:1: $.identity_resolving_keys[0].key_file: "
                    + "expected a file that holds 32 hexadecimal digits")
        }
    }

    @Test func aMessageIsOneLineWhateverAPathHolds() throws {
        let error = try #require(throws: ConfigurationError.self) {
            try TestDeclaration.load(
                #"{"identity_resolving_keys":[{"alias":"phone","key_file":"/no/such\u007f\u0085\n\u202efile"}]}"#)
        }
        #expect(error.problems.count == 1)
        #expect(error.description.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) })
        #expect(error.description.contains(#"/no/such\u{7f}\u{85}\u{a}\u{202e}file"#))
    }

    @Test func aReadableFileWithKeysIsUnwise() throws {
        let folder = try TemporaryFolder()
        let (path, keyPath) = (folder.path("plugins.json"), folder.path("key"))
        let key = "ec0234a357c8ad05341010a60a397d9b"
        try Data(key.utf8).write(to: URL(filePath: keyPath))
        func warnings(_ entry: String, mode: Int) throws -> [String] {
            try Data(#"{"identity_resolving_keys":[{"alias":"phone",\#(entry)}]}"#.utf8).write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            return try AgentConfiguration.load(
                path: path, formats: formats, sinks: TestDeclaration.sinks, names: NameTable()
            ).warnings
        }
        let found = try warnings(#""key":"\#(key)""#, mode: 0o644)
        #expect(found.count == 1)
        #expect(found[0].hasPrefix("\(path) holds keys and everybody on this machine can read it"))
        #expect(!found[0].contains(key))
        #expect(try warnings(#""key":"\#(key)""#, mode: 0o640).isEmpty)
        #expect(try warnings(#""key_file":"\#(keyPath)""#, mode: 0o644).isEmpty)
    }

    @Test func aBadLayoutMakesNoMistakeElsewhere() throws {
        let error = try #require(throws: ConfigurationError.self) {
            try TestDeclaration.load(
                """
                {"formats": [{"name": "tag", "layout": "m:2-3=0a0b,i:4-5,q"}],
                 "beacons": [{"format": "tag", "id1": 258}], "regions": [{"name": "r", "format": "tag"}]}
                """)
        }
        #expect(error.problems.map(\.path) == ["$.formats[0].layout"])
    }

    @Test func formatsAreBounded() throws {
        func file(_ count: Int) -> String {
            let entries = (1...count).map { #"{"name":"f\#($0)","layout":"m:2-3=0a0b,i:4-5"}"# }
            return #"{"formats":[\#(entries.joined(separator: ","))]}"#
        }
        #expect(try TestDeclaration.load(file(64)).formats.count == 64)
        let error = try #require(throws: ConfigurationError.self) { try TestDeclaration.load(file(300)) }
        #expect(error.description == "plugins.json:1: $.formats: expected a list of at most 64 entries, found 300")
    }

    @Test func wholeNumbersMayHaveAPoint() throws {
        let file = "good/numbers.json"
        let presence = try TestDeclaration.load(try FixtureFiles.bytes(file), file: file).presence
        #expect(presence.enterCount == 1)
        #expect(presence.averageOver == 10)
        #expect(presence.pathLossExponent == 3)
        #expect(presence.maximumBeacons == 100_000)
    }

    @Test func theExampleRuns() throws {
        let path = Fixtures.repository.appending(path: "plugins.json").path
        let names = NameTable()
        let configuration = try AgentConfiguration.load(
            path: path, formats: formats, sinks: TestDeclaration.sinks, names: names)
        #expect(configuration.beacons.map { names[$0.alias] } == ["keys", "bag"])
        #expect(configuration.regions.map { names[$0.name] } == ["site", "me"])
        #expect(configuration.sinks.map(\.kind) == ["stdout", "mqtt"])
        #expect(configuration.sinks.map(\.isEnabled) == [true, false])
    }

    @Test func anUnreadableFileIsNoWrongFile() throws {
        let missing = FixtureFiles.path("no-such-file.json")
        let unreadable = try #require(throws: AgentConfiguration.LoadError.self) {
            try AgentConfiguration.load(
                path: missing, formats: formats, sinks: TestDeclaration.sinks, names: NameTable())
        }
        guard case .unreadable(let cause) = unreadable else {
            Issue.record("a missing file is unreadable, not refused")
            return
        }
        #expect(cause.description == "open \(missing): No such file or directory")

        let wrong = FixtureFiles.path("bad/scan-window.beyond-schema.json")
        let refused = try #require(throws: AgentConfiguration.LoadError.self) {
            try AgentConfiguration.load(path: wrong, formats: formats, sinks: TestDeclaration.sinks, names: NameTable())
        }
        #expect(refused.description == "\(wrong):2: $.scan.profiles[0].window: must not be longer than \"interval\"")
    }
}
