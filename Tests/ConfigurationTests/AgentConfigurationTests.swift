// SPDX-License-Identifier: Apache-2.0

import Agent
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
        #expect(configuration.presence.exitTime == .seconds(20))
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
        #expect(beacons.map { names[$0.alias] } == ["keys", "", "door", "schlüssel"])
        let uuid = "fda50693a4e24fb1afcfc6eb07647825"
        #expect(beacons[0].identity == (try identity("ibeacon", uuid + "0001ffff")))
        #expect(beacons[1].identity == (try identity("altbeacon", uuid + "00000007")))
        #expect(beacons[2].identity == (try identity("eddystone-uid", "00112233445566778899aabbccddeeff")))
        #expect(beacons[3].identity == (try identity("eddystone-url", Hexadecimal.text("example.org".utf8))))
        #expect(beacons[0].measuredPower == -59)
        #expect(beacons[0].exitTime == .seconds(3600))
        #expect(beacons[0].enterCount == 1)
        #expect(beacons[1].measuredPower == nil && beacons[1].exitTime == nil && beacons[1].enterCount == nil)

        let regions = configuration.regions
        #expect(regions.map { names[$0.name] } == ["site", "hall", "tag", "any uid", "me"])
        #expect(regions.map { $0.patterns.map(\.prefix) } == [[16], [18], [20], [0], [20, 11]])
        let inHall = try identity("ibeacon", uuid + "00010042")
        #expect(
            regions.map { $0.patterns.contains { $0.matches(inHall) } } == [true, true, false, false, false])
        #expect(regions[4].patterns.map(\.identity) == [beacons[0].identity, beacons[3].identity])

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
