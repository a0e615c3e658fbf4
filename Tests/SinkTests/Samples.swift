// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import SinkKit

/// Events that the tests offer, told apart by the minor of an iBeacon.
enum Samples {
    static let formats = FormatCatalog([
        BeaconFormat(
            name: "ibeacon",
            fields: [
                IdentityField(key: "uuid", spelling: .uuid, summary: "Proximity UUID."),
                IdentityField(key: "major", spelling: .number, summary: "Major."),
                IdentityField(key: "minor", spelling: .number, summary: "Minor."),
            ])
    ])
    static let names = NameTable()
    static let vocabulary = Vocabulary(formats: formats, names: names)

    static func identity(_ minor: Int) -> BeaconIdentity {
        BeaconIdentity(
            format: FormatID(rawValue: 0), count: 20,
            words: (0xFDA5_0693_A4E2_4FB1, 0xAFCF_C6EB_0764_7825, 1 << 48 | UInt64(minor) << 32))
    }

    static func minor(_ event: Event) -> Int { Int(event.identity.map { $0.words.low >> 32 & 0xFFFF } ?? 0) }

    /// - Parameter time: also in milliseconds the wall time, so that the newest of two can be told.
    static func event(_ kind: Event.Kind, _ minor: Int, time: Int64 = 0, isConfigured: Bool = true) -> Event {
        var event = Event(kind: kind, time: MonotonicTime(nanoseconds: time))
        event.wallTime = WallTime(milliseconds: time)
        event.identity = identity(minor)
        event.isConfigured = isConfigured
        event.address = DeviceAddress(value: 0xC0FF_EE00_0000 + UInt64(minor), kind: .randomDevice)
        event.signal = Signal(last: -61, filtered: -60.5, minimum: -70, maximum: -58, count: 4)
        event.measuredPower = -59
        event.proximity = .near
        event.accuracy = 1.94
        return event
    }

    static func region(_ kind: Event.Kind, _ name: String, time: Int64 = 0) -> Event {
        var event = Event(kind: kind, time: MonotonicTime(nanoseconds: time))
        event.wallTime = WallTime(milliseconds: time)
        event.name = names.intern(name)
        event.insideCount = 1
        return event
    }

    static func context(
        _ name: String, log: @escaping @Sendable (LogLevel, String) -> Void = { _, _ in }
    ) -> SinkContext {
        SinkContext(
            name: name, gateway: "gate", vocabulary: vocabulary, version: "0", log: log, isStopping: { false },
            now: { Clock.now })
    }

    static func batch(_ events: [Event], role: DeliveryRoles = .sightings) -> EventBatch {
        var batch = EventBatch(capacity: max(128, events.count))
        for event in events { batch.append(Delivery(role: role, event: event)) }
        return batch
    }
}

/// A small generator with a printed seed, so that a failure can be run again.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let mixed = (state ^ (state >> 33)) &* 0xFF51_AFD7_ED55_8CCD
        return mixed ^ (mixed >> 29)
    }
}
