// SPDX-License-Identifier: Apache-2.0

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
        let transitions: [Event] =
            [driver.event(.enter), exit(driver), driver.region(.regionEnter, "hall 1")]
            + [driver.region(.regionExit, "hall 1"), driver.region(.adapter, "hci0"), gap()]
        var unheard = driver.event(.sighting, minor: 3)
        unheard.signal = Signal()
        unheard.measuredPower = nil
        unheard.isClockSynchronized = false
        let deliveries =
            transitions.prefix(4).map { Delivery(role: .states, event: $0) }
            + transitions.enumerated().map {
                Delivery(role: .transitions, event: $1, sequence: UInt64($0 + 1), isReplayed: $0 % 2 == 0)
            } + [driver.event(.sighting), unheard].map { Delivery(role: .sightings, event: $0) }
        try driver.write(deliveries, stream: Self.stream)
        #expect(subscriber.wait { $0.count == deliveries.count + 1 })
        driver.close(isFinal: false)

        let payloads = subscriber.messages.map { ($0.topic, $0.payload) }
        #expect(Set(payloads.compactMap { object($0.1)?["event"] as? String }).count == 7)
        try expectFit(payloads)
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
        #expect(examples.count >= 8)
        try expectFit(examples)
    }

    @Test func `a schema refuses what is wrong`() throws {
        let wrong = [
            ("event", #"{"event":"leave","time":"2026-11-30T21:09:00.123Z","v":1,"gateway":"g"}"#),
            ("event", #"{"event":"region_enter","time":"yesterday","v":1,"gateway":"g","region":"r","inside":1}"#),
            ("state", #"{"state":"present","time":"2026-11-30T21:09:00.123Z","v":1,"gateway":"g"}"#),
            ("status", #"{"state":"online","v":1,"gateway":"g","version":"1"}"#),
            ("answer", #"{"gateway":"g","ok":false}"#),
        ]
        for (schema, payload) in wrong { #expect(try judge([payload], schema).map(\.accepted) == [false]) }
    }

    // MARK: Parts

    private func exit(_ driver: Driver) -> Event {
        var event = driver.event(.exit)
        event.lastSeen = .zero
        event.lastSeenWallTime = WallTime(milliseconds: 1_789_999_980_000)
        event.exitTime = .seconds(20)
        return event
    }

    private func gap() -> Event {
        var event = Event(kind: .gap, time: .zero)
        event.gap = (3, 9)
        return event
    }

    private func object(_ text: String) -> [String: Any]? {
        try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    }

    private func schema(of topic: String) -> String {
        switch topic.split(separator: "/").last {
        case "presence": "state"
        case "status": "status"
        case "answer": "answer"
        default: "event"
        }
    }

    private func expectFit(_ payloads: [(topic: String, payload: String)]) throws {
        for (schema, group) in Dictionary(grouping: payloads, by: { schema(of: $0.topic) }) {
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
