// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import SinkKit
import SinkTestKit
import Synchronization
import Testing

@testable import StdoutSink

/// ``StdoutSink`` on a descriptor of the test's, since the standard output is the test runner's.
private struct RedirectedSink: ~Copyable, Sink {
    static let target = Mutex<Int32>(-1)
    static var descriptor: SinkDescriptor { StdoutSink.descriptor }
    private var sink: StdoutSink

    init(_ configuration: Values, context: SinkContext) throws(SinkError) {
        sink = StdoutSink(configuration, context: context, target: Self.target.withLock { $0 })
    }

    mutating func open() throws(SinkError) { try sink.open() }
    mutating func write(_ batch: borrowing EventBatch) throws(SinkError) { try sink.write(batch) }
    mutating func close(isFinal: Bool) { sink.close(isFinal: isFinal) }
}

// One after the other, because of the one target.
@Suite(.serialized) struct StdoutSinkTests {
    private func sink(_ target: Int32, format: String) -> StdoutSink {
        StdoutSink(
            Values(given: ["format": .text(format)]), context: Samples.context("stdout"), target: target)
    }

    private func pipe() throws -> (read: Int32, write: Int32) {
        signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [-1, -1]
        try #require(unsafe Foundation.pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    private func readAll(_ descriptor: Int32) -> [String] {
        let data = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).readDataToEndOfFile()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test(arguments: ["json", "text"]) func keepsTheContract(format: String) throws {
        let folder = try Folder()
        let descriptor = unsafe Foundation.open(folder.file("out"), O_WRONLY | O_CREAT | O_APPEND, 0o600)
        defer { close(descriptor) }
        RedirectedSink.target.withLock { $0 = descriptor }
        let violations = SinkConformance.verify(
            SinkRegistration(RedirectedSink.self), configuration: Values(given: ["format": .text(format)]),
            readBack: { folder.lines("out") })
        #expect(violations.isEmpty, "\(violations)")
    }

    @Test func linesAreJSONWhenNobodyWatches() throws {
        let ends = try pipe()
        var sink = sink(ends.write, format: "auto")
        try sink.open()
        try sink.write(Samples.batch([Samples.event(.sighting, 1), Samples.event(.enter, 2)]))
        close(ends.write)
        #expect(readAll(ends.read).compactMap { object($0)?["event"] as? String } == ["sighting", "enter"])
        close(ends.read)
    }

    @Test func aClosedPipeEndsQuietly() throws {
        let ends = try pipe()
        close(ends.read)
        var sink = sink(ends.write, format: "json")
        var found: SinkError?
        do throws(SinkError) {
            try sink.open()
            try sink.write(Samples.batch([Samples.event(.sighting, 1)]))
        } catch {
            found = error
        }
        #expect(found?.disposition == .finished)
        close(ends.write)
    }

    @Test func aSlowReaderGetsEveryLineWhole() throws {
        let ends = try pipe()
        _ = fcntl(ends.write, F_SETFL, O_NONBLOCK)
        let count = 2000
        let lines = Mutex<[String]>([])
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            var data = Data()
            var chunk = [UInt8](repeating: 0, count: 3001)
            while true {
                usleep(500)
                let size = unsafe read(ends.read, &chunk, chunk.count)
                guard size > 0 else { break }
                data.append(contentsOf: chunk[..<size])
            }
            lines.withLock { $0 = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init) }
            done.signal()
        }
        var sink = sink(ends.write, format: "json")
        try sink.open()
        for start in stride(from: 0, to: count, by: 100) {
            try sink.write(Samples.batch((start..<start + 100).map { Samples.event(.sighting, $0) }))
        }
        close(ends.write)
        done.wait()
        close(ends.read)
        #expect(lines.withLock { $0.map { object($0)?["minor"] as? Int } } == Array(0..<count).map { $0 })
    }

    @Test func aFullDiskIsRetriedAndTheTornLineIsEnded() throws {
        guard let folder = try Folder(pages: 3) else {
            print("not run: this process may not mount a tmpfs")
            return
        }
        try Data(count: 4096).write(to: URL(filePath: folder.file("filler")))
        let descriptor = unsafe Foundation.open(folder.file("out"), O_WRONLY | O_CREAT | O_APPEND, 0o600)
        defer { close(descriptor) }
        var sink = sink(descriptor, format: "json")
        var accepted = 0
        do throws(SinkError) {
            try sink.write(Samples.batch((0..<30).map { Samples.event(.sighting, $0) }))
        } catch {
            guard case .retry(let count) = error.disposition else {
                Issue.record("not a retry: \(error)")
                return
            }
            accepted = count
        }
        #expect(accepted > 5 && accepted < 30)
        try FileManager.default.removeItem(atPath: folder.file("filler"))
        try sink.write(Samples.batch((accepted..<30).prefix(5).map { Samples.event(.sighting, $0) }))
        let minors = folder.lines("out").map { object($0)?["minor"] as? Int }
        #expect(minors == Array(0..<min(30, accepted + 5)).map { $0 })
    }

    @Test func aPersonSeesAlignedColumns() {
        let formatter = TextFormatter(vocabulary: Samples.vocabulary)
        var enter = Samples.event(.enter, 2, time: 1_700_000_000_123)
        enter.name = Samples.names.intern("kitchen")
        var exit = enter
        exit.kind = .exit
        exit.exitTime = .milliseconds(20_040)
        let sighting = Samples.event(.sighting, 65_535, time: 1_700_000_000_999)
        var region = Samples.region(.regionExit, "office", time: 1_700_000_000_000)
        region.insideCount = 0
        let lines = [enter, exit, sighting, region].map { String(decoding: formatter.line($0), as: UTF8.self) }
        #expect(
            lines == [
                "2023-11-14 22:13:20.123Z  enter         kitchen                       ee:00:00:02  -61 dBm   "
                    + "fair       near       1.9 m",
                "2023-11-14 22:13:20.123Z  exit          kitchen                       ee:00:00:02  -61 dBm   "
                    + "fair       near       1.9 m     timeout after 20.0 s",
                "2023-11-14 22:13:20.999Z  sighting      ibeacon fda50693…/1/65535     ee:00:ff:ff  -61 dBm   "
                    + "fair       near       1.9 m",
                "2023-11-14 22:13:20.000Z  region_exit   office                        0 inside",
            ])
    }

    @Test func whatAStrangerSendsDoesNotSteerTheTerminal() {
        let formatter = TextFormatter(vocabulary: Samples.vocabulary)
        var event = Samples.event(.enter, 1)
        event.name = Samples.names.intern("a\u{1B}[2J\u{202E}b\nc")
        let line = String(decoding: formatter.line(event), as: UTF8.self)
        #expect(line.contains("a\u{FFFD}[2J\u{FFFD}b\u{FFFD}c"))
        #expect(!line.unicodeScalars.contains { $0.value < 0x20 })
    }
}
