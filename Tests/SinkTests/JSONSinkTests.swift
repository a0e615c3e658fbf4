// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import JSONSink
import SinkKit
import SinkTestKit
import Testing

@Suite struct JSONSinkTests {
    private func values(_ path: String) -> Values { Values(given: ["path": .text(path)]) }

    private func sink(_ path: String) throws -> any SinkBox {
        try SinkRegistration(JSONSink.self).make(values(path), Samples.context("json"))
    }

    private func expectError(_ sink: any SinkBox, _ events: [Event] = []) -> SinkError? {
        do throws(SinkError) {
            if events.isEmpty { try sink.open() } else { try sink.write(Samples.batch(events)) }
            return nil
        } catch {
            return error
        }
    }

    @Test func keepsTheContract() throws {
        let folder = try Folder()
        let violations = SinkConformance.verify(
            SinkRegistration(JSONSink.self), configuration: values(folder.file("events")),
            readBack: { folder.lines("events") })
        #expect(violations.isEmpty, "\(violations)")
    }

    @Test func writesOneObjectALine() throws {
        let folder = try Folder()
        let sink = try sink(folder.file("events"))
        try sink.open()
        try sink.write(Samples.batch([Samples.event(.enter, 7, time: 1_700_000_000_123)], role: .transitions))
        let line = try #require(folder.lines("events").first.flatMap(object))
        #expect(line["event"] as? String == "enter")
        #expect(line["minor"] as? Int == 7)
        #expect(line["time"] as? String == "2023-11-14T22:13:20.123Z")
        #expect(line["seq"] == nil)
        let mode = try FileManager.default.attributesOfItem(atPath: folder.file("events"))[.posixPermissions] as? Int
        #expect(mode.map { $0 & 0o137 } == 0)
    }

    @Test func aRotatedFileIsLeftAlone() throws {
        let folder = try Folder()
        let sink = try sink(folder.file("events"))
        try sink.open()
        try sink.write(Samples.batch([Samples.event(.sighting, 1)]))
        try FileManager.default.moveItem(atPath: folder.file("events"), toPath: folder.file("events.1"))
        try sink.write(Samples.batch([Samples.event(.sighting, 2)]))
        try sink.reopen()
        try sink.write(Samples.batch([Samples.event(.sighting, 3)]))
        #expect(folder.lines("events.1").compactMap { object($0)?["minor"] as? Int } == [1, 2])
        #expect(folder.lines("events").compactMap { object($0)?["minor"] as? Int } == [3])
    }

    @Test func theBeginningOfALineThatWasLeftDoesNotSpoilTheNext() throws {
        let folder = try Folder()
        try Data("{\"event\":\"enter\"}\n{\"event\":\"ex".utf8).write(to: URL(filePath: folder.file("events")))
        let sink = try sink(folder.file("events"))
        try sink.open()
        try sink.write(Samples.batch([Samples.event(.sighting, 4)]))
        let lines = folder.lines("events")
        #expect(lines.count == 3)
        #expect(lines[1] == "{\"event\":\"ex")
        #expect(object(lines[2])?["minor"] as? Int == 4)
    }

    @Test func aFullDiskLosesNothingAndTearsNoLine() throws {
        guard let folder = try Folder(pages: 4) else {
            print("not run: this process may not mount a tmpfs")
            return
        }
        let filler = folder.file("filler")
        try Data(count: 4096).write(to: URL(filePath: filler))
        let sink = try sink(folder.file("events"))
        try sink.open()
        // Some 40 kB of lines for 12 kB of room: the disk fills in the middle of a batch and of a line.
        var events = (1...100).map { Samples.event(.sighting, $0) }
        let error = try #require(expectError(sink, events))
        guard case .retry(let accepted) = error.disposition else {
            Issue.record("not a retry: \(error)")
            return
        }
        #expect(error.description.contains("No space left on device"))
        #expect(accepted > 10 && accepted < 100)
        #expect(folder.lines("events").count == accepted)
        let contents = try Data(contentsOf: URL(filePath: folder.file("events")))
        #expect(contents.last == UInt8(ascii: "\n"), "the file ends with a whole line")
        events.removeFirst(accepted)

        // Still full: nothing changes.
        #expect(expectError(sink, events)?.disposition == .retry(accepted: 0))
        try FileManager.default.removeItem(atPath: filler)
        while !events.isEmpty {
            let error = expectError(sink, events)
            guard case .retry(let accepted) = error?.disposition, accepted > 0 else { break }
            events.removeFirst(accepted)
        }
        let minors = folder.lines("events").map { object($0)?["minor"] as? Int }
        #expect(minors == Array(1...100 - events.count).map { $0 })
        #expect(minors.count > accepted)
    }

    @Test func aDeviceThatIsFullIsReported() throws {
        let sink = try sink("/dev/full")
        try sink.open()
        let error = try #require(expectError(sink, [Samples.event(.sighting, 1)]))
        #expect(error.disposition == .retry(accepted: 0))
        #expect(error.description.hasPrefix("write: write /dev/full: No space left on device"))
    }

    @Test func whatIsNotAFileIsRefusedWithItsReason() throws {
        let folder = try Folder()
        try Data().write(to: URL(filePath: folder.file("real")))
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("link"), withDestinationPath: folder.file("real"))
        unsafe mkfifo(folder.file("fifo"), 0o600)
        let cases = [
            ("link", "a symbolic link is not followed"), ("fifo", "is not a file"),
            ("missing/events", "its folder must exist"), (".", "Is a directory"),
        ]
        for (name, reason) in cases {
            let error = try #require(expectError(try sink(folder.file(name))), "\(name)")
            #expect(error.description.contains(reason), "\(name): \(error)")
        }
    }
}
