// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import LinuxIO
import SinkKit
import Synchronization

@testable import MQTTSink

/// Plays the part of the host around one sink.
final class Driver {
    final class Host: Sendable {
        let lines = Mutex<[String]>([])
        let isStopping = Mutex(false)
    }

    static let formats = FormatCatalog([
        BeaconFormat(
            name: "ibeacon",
            fields: [
                IdentityField(key: "uuid", spelling: .uuid, summary: "Proximity UUID."),
                IdentityField(key: "major", spelling: .number, summary: "Major."),
                IdentityField(key: "minor", spelling: .number, summary: "Minor."),
            ]),
        BeaconFormat(
            name: "eddystone-url",
            fields: [
                IdentityField(
                    key: "url",
                    spelling: .custom(
                        spell: { octets, text in for index in octets.indices { text.append(octets[index]) } },
                        parse: { Array($0.utf8) }),
                    summary: "URL.")
            ]),
    ])

    let host = Host()
    let vocabulary: Vocabulary
    /// What the configuration names.
    let board = InventoryBoard()
    private var sink: MQTTSink

    init(
        port: UInt16, gateway: String = "gw1", limits: MQTTLimits = MQTTLimits(), commands: CommandReceiver? = nil,
        formats: FormatCatalog = Driver.formats, _ more: [String: Value] = [:]
    ) {
        vocabulary = Vocabulary(formats: formats, names: NameTable())
        let host = self.host
        let context = SinkContext(
            name: "mqtt", gateway: gateway, vocabulary: vocabulary, version: "0.1.0-test",
            log: { _, line in host.lines.withLock { $0.append(line) } },
            isStopping: { host.isStopping.withLock { $0 } }, now: { Clock.now }, commands: commands,
            inventory: board)
        let given: [String: Value] = ["host": .text("127.0.0.1"), "port": .integer(Int64(port))]
        sink = MQTTSink(Values(given: given.merging(more) { $1 }), context: context, limits: limits)
    }

    func open() throws { try sink.open() }

    func write(_ deliveries: [Delivery], stream: String = "5eed") throws {
        var batch = EventBatch(capacity: max(1, deliveries.count))
        batch.stream = stream
        for delivery in deliveries { batch.append(delivery) }
        try sink.write(batch)
    }

    /// The disposition with which a write failed; nil when it succeeded.
    func failure(_ deliveries: [Delivery]) -> SinkError? { Self.failure { try write(deliveries) } }

    static func failure(_ body: () throws -> Void) -> SinkError? {
        do {
            try body()
            return nil
        } catch {
            return error as? SinkError
        }
    }

    func idle(seconds: Double, wake: Int32 = -1) throws {
        try sink.idle(wake: wake, until: Clock.now + .milliseconds(Int64(seconds * 1000)))
    }

    func close(isFinal: Bool) { sink.close(isFinal: isFinal) }

    var log: [String] { host.lines.withLock { $0 } }

    // MARK: Events

    static let uuid = "fda50693-a4e2-4fb1-afcf-c6eb07647825"

    func event(_ kind: Event.Kind, minor: UInt16 = 2) -> Event {
        var octets = UUIDText.octets(Self.uuid) ?? []
        octets += [0, 1, UInt8(minor >> 8), UInt8(truncatingIfNeeded: minor)]
        return event(kind, BeaconIdentity(format: FormatID(rawValue: 0), octets: octets.span))
    }

    func event(_ kind: Event.Kind, _ identity: BeaconIdentity) -> Event {
        var event = Event(kind: kind, time: Clock.now)
        event.wallTime = WallTime(milliseconds: 1_790_000_000_000)
        event.identity = identity
        event.isConfigured = true
        event.address = DeviceAddress(value: 0x0011_2233_4455, kind: .randomDevice)
        event.signal = Signal(last: -60, filtered: -61.5, minimum: -70, maximum: -55, count: 7)
        event.measuredPower = -59
        return event
    }

    func region(_ kind: Event.Kind, _ name: String) -> Event {
        var event = Event(kind: kind, time: Clock.now)
        event.name = vocabulary.names.intern(name)
        event.insideCount = kind == .regionEnter ? 1 : 0
        return event
    }

    /// One beacon of a round of ranging, as many nanoseconds after the start as `round`.
    func ranged(_ name: String, rank: UInt32, of count: UInt32, round: Int64 = 1) -> Event {
        var event = event(.ranging, minor: UInt16(rank))
        event.time = .zero + TimeInterval(nanoseconds: round)
        event.region = vocabulary.names.intern(name)
        event.rank = rank
        event.insideCount = count
        return event
    }

    /// Transitions of one beacon with sequence numbers.
    func transitions(_ sequence: ClosedRange<UInt64>) -> [Delivery] {
        sequence.map { Delivery(role: .transitions, event: event($0 % 2 == 1 ? .enter : .exit), sequence: $0) }
    }
}

extension SinkError {
    var accepted: Int? {
        switch disposition {
        case .retry(let accepted), .busy(let accepted), .reject(let accepted), .disconnected(let accepted): accepted
        case .finished: nil
        }
    }

    var isDisconnected: Bool { if case .disconnected = disposition { true } else { false } }
    var isBusy: Bool { if case .busy = disposition { true } else { false } }
    var isRetry: Bool { if case .retry = disposition { true } else { false } }
    var isReject: Bool { if case .reject = disposition { true } else { false } }
}
