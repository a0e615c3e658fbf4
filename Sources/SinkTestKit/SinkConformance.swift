// SPDX-License-Identifier: Apache-2.0

import BeaconModel
public import Configuration
import Glibc
public import SinkKit

/// Holds a sink to the contract of `Sink`.
///
/// It drives the sink as the runtime would, on the calling thread, against a destination that works, and compares what
/// it wrote with what the destination has. It needs no test library: it returns what is wrong.
///
/// ```swift
/// let violations = SinkConformance.verify(
///     SinkRegistration(FileSink.self), configuration: values, readBack: { linesOfTheFile() })
/// #expect(violations.isEmpty, "\(violations)")
/// ```
///
/// Every event that the kit makes has an alias of its own (`conformance-17`), and what the destination has of it must
/// contain that alias.
public enum SinkConformance {
    /// A promise that was not kept.
    public struct Violation: CustomStringConvertible, Sendable {
        /// What the kit did.
        public let step: String
        /// What was wrong.
        public let finding: String

        public var description: String { "\(step): \(finding)" }
    }

    /// Events of the large batch: the longest batch of the runtime.
    public static let largeBatch = 128

    /// Runs all checks; an empty list means that the sink keeps its promises.
    ///
    /// - Parameters:
    ///   - configuration: the values of the sink's own section.
    ///   - gateway: the gateway's id in topics and payloads.
    ///   - readBack: everything that the destination has so far, one text an event, in order; nil for a destination
    ///     that cannot be asked. Called right after a write has returned: a reader that needs a moment waits in it.
    public static func verify(
        _ registration: SinkRegistration, configuration: Values, gateway: String = "conformance",
        readBack: (() -> [String])?
    ) -> [Violation] {
        var run = Run(registration.descriptor, gateway: gateway, readBack: readBack)
        run.checkDescriptor()
        run.checkLife(registration, configuration)
        return run.violations
    }
}

private struct Run {
    let descriptor: SinkDescriptor
    let context: SinkContext
    let readBack: (() -> [String])?
    var violations: [SinkConformance.Violation] = []
    private let names = NameTable()
    private var step = ""
    private var eventCount = 0
    private var sequence: UInt64 = 0
    /// Numbers of the events that the destination should have, by role: between roles it may have its own order.
    private var expected: [UInt8: [Int]] = [:]

    init(_ descriptor: SinkDescriptor, gateway: String, readBack: (() -> [String])?) {
        self.descriptor = descriptor
        self.readBack = readBack
        let formats = FormatCatalog([
            BeaconFormat(
                name: "ibeacon",
                fields: [
                    IdentityField(key: "uuid", spelling: .uuid, summary: "Proximity UUID."),
                    IdentityField(key: "major", spelling: .number, summary: "Major."),
                    IdentityField(key: "minor", spelling: .number, summary: "Minor."),
                ])
        ])
        context = SinkContext(
            name: "conformance", gateway: gateway, vocabulary: Vocabulary(formats: formats, names: names),
            version: "0", log: { _, _ in }, isStopping: { false }, now: { Self.now })
    }

    // MARK: Checks

    mutating func checkDescriptor() {
        step = "descriptor"
        let isKind = descriptor.kind.first?.isLowercase ?? false
        if !isKind || descriptor.kind.contains(where: { !$0.isASCII || !($0.isLowercase || $0.isNumber || $0 == "_") })
        {
            complain("the kind \"\(descriptor.kind)\" is not lower_snake_case")
        }
        if !descriptor.summary.hasSuffix(".") { complain("the summary does not end in a period") }
        if descriptor.roles.isEmpty { complain("it wants no role, so it would never be given anything") }
        for key in descriptor.section.keys where !key.summary.hasSuffix(".") {
            complain("the summary of \"\(key.name)\" does not end in a period")
        }
    }

    mutating func checkLife(_ registration: SinkRegistration, _ configuration: Values) {
        step = "make"
        let context = context
        guard let sink = attempt({ () throws(SinkError) in try registration.make(configuration, context) }) else {
            return
        }

        step = "close before open"
        sink.close(isFinal: false)
        checkDestination()

        step = "write before open"
        writeUnopened(sink)

        step = "open"
        guard attempt({ () throws(SinkError) in try sink.open() }) != nil else { return }
        step = "first write after open"
        write(1, sink)
        step = "empty batch"
        write(0, sink)
        step = "batch of all roles"
        write(7, sink)
        step = "large batch"
        write(SinkConformance.largeBatch, sink)
        step = "reopen"
        attempt { () throws(SinkError) in try sink.reopen() }
        write(3, sink)
        if descriptor.servicesConnection { checkIdle(sink) }

        step = "open again after close"
        sink.close(isFinal: false)
        sink.close(isFinal: false)
        guard attempt({ () throws(SinkError) in try sink.open() }) != nil else { return }
        write(3, sink)

        step = "final close, twice"
        sink.close(isFinal: true)
        sink.close(isFinal: true)
        checkDestination()
    }

    /// The runtime never does this; a sink whose own state is confused must not claim success for it.
    private mutating func writeUnopened(_ sink: any SinkBox) {
        let before = expected
        let batch = makeBatch(1)
        do throws(SinkError) {
            try sink.write(batch)
        } catch {
            expected = before
        }
        checkDestination()
    }

    private mutating func checkIdle(_ sink: any SinkBox) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return complain("the kit found no descriptor for a pipe") }
        defer { for end in ends { _ = close(end) } }

        step = "idle until the deadline"
        let quiet = Self.now + .milliseconds(100)
        attempt { () throws(SinkError) in try sink.idle(wake: ends[0], until: quiet) }
        if Self.now - quiet > .seconds(2) { complain("it returned more than 2 s after the deadline") }

        step = "idle until woken"
        _ = unsafe Glibc.write(ends[1], [1], 1)
        let started = Self.now
        attempt { () throws(SinkError) in try sink.idle(wake: ends[0], until: started + .seconds(10)) }
        if Self.now - started > .seconds(2) { complain("it did not return when it was woken") }
        var woken = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        if unsafe poll(&woken, 1, 0) != 1 { complain("it read from the wake descriptor, which is not its own") }

        step = "write after idle"
        write(2, sink)
    }

    // MARK: Doing and looking

    private mutating func write(_ count: Int, _ sink: any SinkBox) {
        let before = expected
        let batch = makeBatch(count)
        do throws(SinkError) {
            try sink.write(batch)
        } catch {
            complain("it failed with \"\(error)\" (\(error.disposition)), though its destination works")
            expected = before
        }
        checkDestination()
    }

    /// Compares what the destination has with what a `write` that returned has promised.
    private mutating func checkDestination() {
        guard let readBack else { return }
        let places = Self.places(in: readBack())
        for role in expected.keys.sorted() {
            var last = -1
            for number in expected[role] ?? [] {
                guard let found = places[number], let place = found.first else {
                    complain("write returned, and the destination does not have \(Self.alias(number))")
                    continue
                }
                if found.count > 1 { complain("the destination has \(Self.alias(number)) \(found.count) times") }
                if place < last { complain("\(Self.alias(number)) came before what stood in front of it") }
                last = place
            }
        }
    }

    private static func alias(_ number: Int) -> String { "conformance-\(number)" }

    /// In which texts the alias of each event stands.
    private static func places(in texts: [String]) -> [Int: [Int]] {
        let beginning = Array("conformance-".utf8)
        var places: [Int: [Int]] = [:]
        for (place, text) in texts.enumerated() {
            let bytes = Array(text.utf8)
            var index = 0
            var numbers: Set<Int> = []
            while index + beginning.count < bytes.count {
                guard bytes[index] == beginning[0], bytes[index...].starts(with: beginning) else {
                    index += 1
                    continue
                }
                index += beginning.count
                let digits = bytes[index...].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
                if let number = Int(String(decoding: digits, as: UTF8.self)) { numbers.insert(number) }
            }
            for number in numbers { places[number, default: []].append(place) }
        }
        return places
    }

    private mutating func makeBatch(_ count: Int) -> EventBatch {
        var batch = EventBatch(capacity: SinkConformance.largeBatch)
        batch.stream = descriptor.isDurable ? String(repeating: "0123456789abcdef", count: 2) : ""
        let roles = [DeliveryRoles.states, .transitions, .sightings].filter { descriptor.roles.contains($0) }
        guard !roles.isEmpty else { return batch }
        for index in 0..<count {
            // Blocks of one role after the other, as the runtime orders them.
            let role = roles[index * roles.count / count]
            batch.append(delivery(role))
        }
        return batch
    }

    private mutating func delivery(_ role: DeliveryRoles) -> Delivery {
        eventCount += 1
        var event = Event(kind: role == .sightings ? .sighting : .enter, time: Self.now)
        event.wallTime = WallTime(milliseconds: 1_700_000_000_000 + Int64(eventCount) * 1000)
        event.identity = BeaconIdentity(
            format: FormatID(rawValue: 0), count: 20,
            words: (0x0011_2233_4455_6677, 0x8899_AABB_CCDD_EEFF, UInt64(eventCount & 0xFFFF) << 32))
        event.name = names.intern(Self.alias(eventCount))
        event.isConfigured = true
        event.address = DeviceAddress(value: 0xC0FF_EE00_0000 + UInt64(eventCount), kind: .randomDevice)
        event.signal = Signal(last: -60, filtered: -61.5, minimum: -70, maximum: -58, count: 3)
        event.measuredPower = -59
        event.proximity = .near
        event.accuracy = 1.25
        expected[role.rawValue, default: []].append(eventCount)
        guard role == .transitions, descriptor.isDurable else { return Delivery(role: role, event: event) }
        sequence += 1
        return Delivery(role: role, event: event, sequence: sequence)
    }

    @discardableResult
    private mutating func attempt<Result>(_ body: () throws(SinkError) -> Result) -> Result? {
        do throws(SinkError) {
            return try body()
        } catch {
            complain("it failed with \"\(error)\", though its destination works")
            return nil
        }
    }

    private mutating func complain(_ finding: String) {
        violations.append(SinkConformance.Violation(step: step, finding: finding))
    }

    /// The clock that deadlines are on.
    private static var now: MonotonicTime {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
