// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Glibc
import NullSink
import SinkKit
import SinkTestKit
import Synchronization
import Testing

/// What a ``FlawedSink`` does wrong.
enum Flaw: CaseIterable {
    case none, loses, reverses, repeats, buffers, failsOnEmpty, cutsLarge, forgetsAfterReopen, failsSecondOpen
    case claimsBeforeOpen, missesDeadline, ignoresWake
}

/// A sink into an array, with one flaw.
private struct FlawedSink: ~Copyable, Sink {
    static let flaw = Mutex(Flaw.none)
    static let destination = Mutex<[String]>([])
    static let descriptor = SinkDescriptor(
        kind: "flawed", summary: "Breaks one promise.", section: Section([]),
        roles: [.states, .transitions, .sightings], servicesConnection: true)

    private let flaw = FlawedSink.flaw.withLock { $0 }
    private let encoder: EventEncoder
    private var opens = 0
    private var isOpen = false
    private var hasReopened = false
    private var buffer: [String] = []

    init(_ configuration: Values, context: SinkContext) throws(SinkError) {
        encoder = EventEncoder(gateway: context.gateway, vocabulary: context.vocabulary)
    }

    mutating func open() throws(SinkError) {
        opens += 1
        if flaw == .failsSecondOpen, opens == 2 { throw SinkError(.retry(accepted: 0), "open", "once only") }
        isOpen = true
    }

    mutating func write(_ batch: borrowing EventBatch) throws(SinkError) {
        if !isOpen {
            if flaw == .claimsBeforeOpen { return }
            throw SinkError(.disconnected(accepted: 0), "write", "not open")
        }
        if batch.isEmpty, flaw == .failsOnEmpty { throw SinkError(.retry(accepted: 0), "write", "nothing to do") }
        var texts = batch.deliveries.map { delivery in
            var writer = JSONWriter()
            encoder.encode(delivery, stream: batch.stream, into: &writer)
            return writer.text
        }
        switch flaw {
        case .loses where texts.count == 7: texts.removeLast()
        case .reverses: texts.reverse()
        case .repeats where texts.count == 7: texts.append(texts[0])
        case .cutsLarge: texts = Array(texts.prefix(100))
        case .forgetsAfterReopen where hasReopened: texts = []
        case .buffers:
            swap(&texts, &buffer)
        default: break
        }
        Self.destination.withLock { $0 += texts }
    }

    mutating func idle(wake: Int32, until deadline: MonotonicTime) throws(SinkError) {
        let isWoken = waitForInput(wake, milliseconds: 100)
        // Longer than the kit has patience for.
        if flaw == (isWoken ? .ignoresWake : .missesDeadline) { usleep(2_300_000) }
    }

    mutating func reopen() throws(SinkError) { hasReopened = true }

    mutating func close(isFinal: Bool) { isOpen = false }
}

@Suite(.serialized) struct ConformanceTests {
    @Test(arguments: Flaw.allCases) func theKitFindsEachFlaw(flaw: Flaw) {
        FlawedSink.flaw.withLock { $0 = flaw }
        FlawedSink.destination.withLock { $0 = [] }
        let violations = SinkConformance.verify(
            SinkRegistration(FlawedSink.self), configuration: Values(),
            readBack: { FlawedSink.destination.withLock { $0 } })
        #expect(violations.isEmpty == (flaw == .none), "\(flaw): \(violations)")
    }

    @Test func theNullSinkKeepsTheContractAndCounts() throws {
        let lines = Mutex<[String]>([])
        let registration = SinkRegistration(NullSink.self)
        #expect(SinkConformance.verify(registration, configuration: Values(), readBack: nil).isEmpty)
        let sink = try registration.make(
            Values(), Samples.context("nothing", log: { _, line in lines.withLock { $0.append(line) } }))
        try sink.open()
        try sink.write(Samples.batch([Samples.event(.sighting, 1), Samples.event(.sighting, 2)]))
        try sink.write(Samples.batch([Samples.event(.exit, 1)]))
        sink.close(isFinal: false)
        sink.close(isFinal: true)
        #expect(lines.withLock { $0 } == ["sink nothing: counted 2 sighting, 1 exit"])
    }
}
