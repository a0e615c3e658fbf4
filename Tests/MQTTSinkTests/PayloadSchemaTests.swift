// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Configuration
import Foundation
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// An independent validator holds every payload, as a subscriber gets it, and every example of `docs/mqtt.md` to the
/// schemas of `docs/schema`.
@Suite(.serialized) struct PayloadSchemaTests {
    private struct Judgement: Decodable {
        let accepted: Bool
        let problems: [String]
    }

    private static let stream = "9f86d081884c7d659a2feaa0c55ad015"

    @Test func `every payload that is published fits its schema`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "beacond/#")
        let driver = Driver(port: broker.port, ["commands": .list([.text("state")])])
        try driver.open()
        var transitions = Event.Kind.allCases.map { transition($0, driver) }.filter(\.isTransition)
        transitions += Event.AdapterState.allCases.map { state in
            var event = driver.region(.adapter, "hci1")
            event.adapterState = state
            event.trouble = state == .failed ? driver.vocabulary.names.intern("it is gone") : .none
            return event
        }
        var unheard = driver.event(.sighting, minor: 3)
        unheard.signal = Signal()
        unheard.measuredPower = nil
        unheard.isClockSynchronized = false
        let states: [Event.Kind] = [
            .enter, .exit, .unknown, .known, .regionEnter, .regionExit, .regionUnknown, .regionKnown,
        ]
        let deliveries =
            states.map { Delivery(role: .states, event: transition($0, driver)) }
            + transitions.enumerated().map {
                Delivery(
                    role: .transitions, event: $1, sequence: UInt64($0 + 1),
                    isReplayed: $0 % 2 == 1 && $0 + 1 < transitions.count)
            }
            + [driver.event(.sighting), unheard, driver.ranged("hall 1", rank: 1, of: 1)].map {
                Delivery(role: .sightings, event: $0)
            }
        try driver.write(deliveries, stream: Self.stream)
        // And the birth, and the health document.
        #expect(subscriber.wait { $0.count == deliveries.count + 2 })
        driver.close(isFinal: false)

        let payloads = subscriber.messages.map { ($0.topic, $0.payload) }
        let told = Set(payloads.compactMap { object($0.1)?["event"] as? String })
        #expect(told == Set(Event.Kind.allCases.map(\.word)))
        #expect(Set(payloads.map { schema(of: $0) }) == ["event", "state", "status", "health", "ranging"])
        try expectFit(payloads)
    }

    @Test func `a compact sighting fits its schema and says nothing else than the whole one`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, "beacond/+/+/#")
        let formats = FrameDecoder().catalog
        let whole = Driver(port: broker.port, gateway: "whole", formats: formats)
        let compact = Driver(port: broker.port, gateway: "compact", formats: formats, ["payloads": .text("compact")])
        var sensor = whole.event(.sighting, minor: 3)
        let tag = try #require(Hexadecimal.octets("99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f"))
        sensor.payload = FramePayload(format: try #require(formats.id(named: "ruuvi-df5")), tag.span)
        var unheard = whole.event(.sighting, minor: 4)
        unheard.signal = Signal()
        unheard.isClockSynchronized = false
        let sightings = [whole.event(.sighting), sensor, unheard].map { Delivery(role: .sightings, event: $0) }
        for driver in [whole, compact] {
            try driver.open()
            try driver.write(sightings + [Delivery(role: .states, event: driver.event(.enter))])
        }
        func payloads(_ gateway: String) -> [(topic: String, payload: String)] {
            subscriber.messages.filter { $0.topic.hasPrefix("beacond/\(gateway)/") && $0.topic.hasSuffix("/sighting") }
                .map { ($0.topic, $0.payload) }
        }
        #expect(subscriber.wait { _ in payloads("whole").count == 3 && payloads("compact").count == 3 })
        try expectFit(payloads("compact"))
        for (short, long) in zip(payloads("compact"), payloads("whole")) {
            #expect(schema(of: short) == "compact")
            #expect(schema(of: long) == "event")
            let (some, all) = (object(short.payload) ?? [:], object(long.payload) ?? [:])
            #expect(!some.isEmpty)
            for (key, value) in some { #expect((all[key] as? NSObject) == (value as? NSObject), "\(key)") }
            // What a frame says is all there.
            for key in ["temperature_c", "humidity_percent", "battery_v", "accel_g"] {
                #expect((some[key] as? NSObject) == (all[key] as? NSObject), "\(key)")
            }
        }
        #expect(payloads("compact").first.map { $0.payload.utf8.count < 120 } == true)
        let state = subscriber.messages.first {
            $0.topic.hasPrefix("beacond/compact/") && $0.topic.hasSuffix("/presence")
        }
        #expect(state?["format"] == "ibeacon", "states are whole")
    }

    @Test func `every example of the page fits its schema`() throws {
        let page = try String(contentsOf: Fixtures.repository.appending(path: "docs/mqtt.md"), encoding: .utf8)
        var topic = ""
        var examples: [(String, String)] = []
        var isInside = false
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("### `") { topic = String(line.dropFirst(5).prefix { $0 != "`" }) }
            if line == "```json" {
                isInside = true
            } else if line == "```" {
                isInside = false
            } else if isInside {
                examples.append((topic, String(line)))
            }
        }
        #expect(examples.count >= 10)
        try expectFit(examples)
    }

    @Test func `a schema refuses what is wrong`() throws {
        let wrong = [
            ("event", #"{"event":"leave","time":"2026-11-30T21:09:00.123Z","v":1,"gateway":"g"}"#),
            ("event", #"{"event":"region_enter","time":"yesterday","v":1,"gateway":"g","region":"r","inside":1}"#),
            ("state", #"{"state":"present","time":"2026-11-30T21:09:00.123Z","v":1,"gateway":"g"}"#),
            ("state", #"{"state":"unknown","time":"2026-11-30T21:09:00.123Z","v":1,"gateway":"g","reason":"blind"}"#),
            ("status", #"{"state":"online","v":1,"gateway":"g","version":"1"}"#),
            ("answer", #"{"gateway":"g","ok":false}"#),
            ("compact", #"{"time":"2026-11-30T21:09:00.123Z","v":1,"rssi":-60}"#),
            ("health", #"{"healthy":true,"v":1,"gateway":"g","version":"1"}"#),
            ("ranging", #"{"event":"ranging","v":1,"gateway":"g","region":"r","inside":1,"beacons":[]}"#),
        ]
        for (schema, payload) in wrong { #expect(try judge([payload], schema).map(\.accepted) == [false]) }
    }

    // MARK: Parts

    private func transition(_ kind: Event.Kind, _ driver: Driver) -> Event {
        switch kind {
        case .regionEnter, .regionExit, .regionUnknown, .regionKnown: return driver.region(kind, "hall 1")
        case .adapter: return driver.region(kind, "hci0")
        case .gap:
            var event = Event(kind: .gap, time: .zero)
            event.gap = (3, 9)
            return event
        case .flood:
            var event = Event(kind: .flood, time: .zero)
            event.flood = (3, 9)
            event.insideCount = 10_000
            return event
        case .health:
            var event = Event(kind: .health, time: .zero)
            event.isHealthy = false
            event.trouble = driver.vocabulary.names.intern("hci0 is blind")
            return event
        case .sighting, .ranging, .enter, .exit, .unknown, .known, .proximity, .clone:
            var event = driver.event(kind)
            event.lastSeen = .zero
            event.lastSeenWallTime = WallTime(milliseconds: 1_789_999_980_000)
            event.exitTime = .seconds(20)
            event.exitLimit = .data
            event.falseExits = (1 / 86_400, 0.5 / 86_400)
            event.otherAddress = DeviceAddress(value: 0x0011_2233_4466, kind: .randomDevice)
            return event
        }
    }

    private func object(_ text: String) -> [String: Any]? {
        try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    }

    private func schema(of message: (topic: String, payload: String)) -> String {
        switch message.topic.split(separator: "/").last {
        case "sighting" where object(message.payload)?["event"] == nil: "compact"
        case "presence": "state"
        case "status": "status"
        case "health": "health"
        case "ranging": "ranging"
        case "answer": "answer"
        default: "event"
        }
    }

    private func expectFit(_ payloads: [(topic: String, payload: String)]) throws {
        for (schema, group) in Dictionary(grouping: payloads, by: { schema(of: $0) }) {
            for (payload, judgement) in zip(group, try judge(group.map(\.payload), schema)) {
                #expect(judgement.accepted, "\(payload.topic) \(payload.payload): \(judgement.problems)")
            }
        }
    }

    private func judge(_ payloads: [String], _ schema: String) throws -> [Judgement] {
        let folder = try TemporaryFolder()
        let files = try payloads.enumerated().map { try folder.file("\($0).json", $1) }
        let repository = Fixtures.repository
        _ = try run(repository.appending(path: ".ci/venv").path, [])
        let output = try run(
            repository.appending(path: ".cache/venv/bin/python").path,
            [
                repository.appending(path: "Tests/Harness/check_schema.py").path,
                repository.appending(path: "docs/schema/\(schema).json").path,
            ] + files)
        let judgements = try output.split(separator: "\n").map {
            try JSONDecoder().decode(Judgement.self, from: Data($0.utf8))
        }
        try #require(judgements.count == payloads.count)
        return judgements
    }

    private func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return String(decoding: data, as: UTF8.self)
    }
}
