// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import Store

extension TemporaryFolder {
    var database: String { path("outbox.sqlite") }
}

/// What the store logged.
final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }
    var function: @Sendable (LogLevel, String) -> Void {
        { [self] level, line in lines.withLock { $0.append("\(level.word): \(line)") } }
    }
}

enum World {
    static let ibeacon = BeaconFormat(
        name: "ibeacon",
        fields: [
            IdentityField(key: "uuid", spelling: .uuid, summary: ""),
            IdentityField(key: "major", spelling: .number, summary: ""),
            IdentityField(key: "minor", spelling: .number, summary: ""),
        ])
    static let other = BeaconFormat(
        name: "other", fields: [IdentityField(key: "id", spelling: .hexadecimal(octets: 6), summary: "")])

    static func vocabulary(_ formats: [BeaconFormat] = [ibeacon, other]) -> Vocabulary {
        Vocabulary(formats: FormatCatalog(formats), names: NameTable())
    }

    /// A transition that knows which one it is.
    static func event(_ number: UInt64) -> Event {
        var event = Event(kind: .regionEnter, time: MonotonicTime(nanoseconds: Int64(number) * 1000))
        event.wallTime = WallTime(milliseconds: 1_796_072_940_000 + Int64(number))
        event.insideCount = UInt32(truncatingIfNeeded: number)
        return event
    }
}

/// What stands at a sequence number.
enum Found: Equatable, CustomStringConvertible {
    case event(UInt64, number: UInt32)
    case gap(UInt64, first: UInt64, last: UInt64)

    var description: String {
        switch self {
        case .event(let sequence, let number): "\(sequence): \(number)"
        case .gap(let sequence, let first, let last): "\(sequence): gap \(first)...\(last)"
        }
    }
}

extension Store {
    /// Across segments.
    func found(after position: UInt64 = 0, limit: Int = .max) throws -> [Found] {
        var found: [Found] = []
        var position = position
        while found.count < limit {
            let before = position
            try read(after: position, limit: limit - found.count) { _, place, event in
                position = place
                found.append(
                    event.kind == .gap
                        ? .gap(place, first: event.gap.first, last: event.gap.last)
                        : .event(place, number: event.insideCount))
            }
            if position == before { break }
        }
        return found
    }

    /// The key of each transition behind a position, in order: the stream, and its number there; of a gap the numbers
    /// that it names.
    func keys(after position: UInt64 = 0) throws -> [String] {
        var keys: [String] = []
        var position = position
        while position < lastPosition {
            let before = position
            try read(after: position, limit: .max) { place, found, event in
                let number = event.kind == .gap ? "gap \(event.gap.first)...\(event.gap.last)" : "\(found - place.base)"
                keys.append("\(place.stream) \(number)")
                position = found
            }
            if position == before { break }
        }
        return keys
    }

    /// Waits until the disk has everything that was appended.
    func waitUntilCommitted(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await eventually("committed", sourceLocation: sourceLocation) { self.counters.pending == 0 }
    }
}

func eventually(
    _ what: String, sourceLocation: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool
) async throws {
    let deadline = Clock.now + .seconds(60)
    while try !condition() {
        try #require(Clock.now < deadline, "not in time: \(what)", sourceLocation: sourceLocation)
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// Events in order, whose number is their place in the stream.
func events(_ range: ClosedRange<UInt64>) -> [Found] {
    range.map { .event($0, number: UInt32($0)) }
}

/// How often a test of chance runs: few times in the suite, more when the variable of `make test-faults` says so.
func runs(_ variable: String, _ few: Int) -> Int {
    ProcessInfo.processInfo.environment[variable].flatMap(Int.init) ?? few
}

/// How many things are in a folder; of `/proc/self/fd`, how many descriptors are open.
func entryCount(of path: String) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: path).count
}
