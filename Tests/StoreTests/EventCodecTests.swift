// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import TestSupport
import Testing

@testable import Store

@Suite struct EventCodecTests {
    private let vocabulary = World.vocabulary()
    private var codec: EventCodec { EventCodec(vocabulary: vocabulary) }

    private func encode(_ event: Event, sequence: UInt64 = 1) -> [UInt8] {
        var record: [UInt8] = [1, 2, 3]
        codec.encode(event, sequence: sequence, into: &record)
        return record
    }

    /// An event of every field, some of them absent.
    private func randomEvent(_ kind: Event.Kind, _ generator: inout SeededGenerator) throws -> Event {
        func maybe<Value>(_ value: Value) -> Value? { Bool.random(using: &generator) ? value : nil }
        func name() -> Name {
            let length = Int.random(in: 0...40, using: &generator)
            return vocabulary.names.intern(
                String((0..<length).compactMap { _ in "aZ9 -_äß漢🙂".randomElement(using: &generator) }))
        }
        var event = Event(kind: kind, time: MonotonicTime(nanoseconds: .random(in: 0 ... .max, using: &generator)))
        event.wallTime = WallTime(milliseconds: .random(in: .min ... .max, using: &generator))
        event.isClockSynchronized = .random(using: &generator)
        let format = FormatID(rawValue: .random(in: 0...1, using: &generator))
        let octets = (0..<Int.random(in: 0...24, using: &generator)).map { _ in
            UInt8.random(in: 0...255, using: &generator)
        }
        event.identity = maybe(BeaconIdentity(format: format, octets: octets.span))
        event.name = name()
        event.isConfigured = .random(using: &generator)
        event.address = DeviceAddress(
            value: .random(in: 0 ... .max, using: &generator),
            kind: .init(rawValue: .random(in: 0 ... .max, using: &generator)))
        event.adapter = name()
        event.signal.last = maybe(.random(in: .min ... .max, using: &generator))
        event.signal.minimum = maybe(.random(in: .min ... .max, using: &generator))
        event.signal.maximum = maybe(.random(in: .min ... .max, using: &generator))
        event.signal.filtered = maybe(.random(in: -130...30, using: &generator))
        event.signal.count = .random(in: 0 ... .max, using: &generator)
        event.measuredPower = maybe(.random(in: .min ... .max, using: &generator))
        event.proximity = try #require(Proximity.allCases.randomElement(using: &generator))
        event.accuracy = .random(in: -1...1000, using: &generator)
        event.lastSeen = maybe(MonotonicTime(nanoseconds: .random(in: 0 ... .max, using: &generator)))
        event.lastSeenWallTime = maybe(WallTime(milliseconds: .random(in: .min ... .max, using: &generator)))
        event.exitTime = TimeInterval(nanoseconds: .random(in: .min ... .max, using: &generator))
        event.exitReason = try #require(Event.ExitReason.allCases.randomElement(using: &generator))
        event.insideCount = .random(in: 0 ... .max, using: &generator)
        event.adapterState = try #require(Event.AdapterState.allCases.randomElement(using: &generator))
        if kind == .adapter || kind == .health {
            event.trouble = name()
            event.isHealthy = .random(using: &generator)
        }
        if kind == .gap || kind == .flood {
            event.gap = (.random(in: 0 ... .max, using: &generator), .random(in: 0 ... .max, using: &generator))
        }
        return event
    }

    @Test(arguments: Event.Kind.allCases)
    func whatIsWrittenIsRead(_ kind: Event.Kind) throws {
        var generator = SeededGenerator("whatIsWrittenIsRead(\(kind))")
        for _ in 0..<300 {
            let event = try randomEvent(kind, &generator)
            let sequence = UInt64.random(in: 1 ... .max, using: &generator)
            let restored = try #require(codec.decode(encode(event, sequence: sequence), sequence: sequence))
            var expected = event
            expected.time = .zero
            expected.lastSeen = nil
            #expect(String(describing: restored) == String(describing: expected))
        }
    }

    /// Made by another program from the table in the documentation, so that what older versions stored stays readable.
    private static let exit =
        "0102ff015b224a2ea2010000ffeeddccbbaa00010201030000c03f00c817a80400000007000000090000000a5363686cc3bc7373656c"
        + "04686369300769626561636f6e14fda50693a4e24fb1afcfc6eb0764782500010002c4bacec5000075c23bd4492ea20100008c793e4f"
    private static let gap =
        "01060102ffffffffffffffff00000000000000ff000000000080bf000000000000000000000000000000000000030000000000000009"
        + "000000000000008b99c677"

    @Test func recordsOfVersion1() throws {
        let exitRecord = try #require(Hexadecimal.octets(Self.exit))
        let exit = try #require(codec.decode(exitRecord, sequence: 0x0102_0304_0506_0708))
        #expect(exit.kind == .exit)
        #expect(exit.wallTime.milliseconds == 1_796_072_940_123)
        #expect(exit.isClockSynchronized && exit.isConfigured)
        #expect(exit.address == DeviceAddress(text: "AA:BB:CC:DD:EE:FF", kind: .randomDevice))
        #expect(exit.proximity == .near && exit.exitReason == .evicted && exit.adapterState == .blind)
        #expect(exit.accuracy == 1.5)
        #expect(exit.exitTime == .seconds(20))
        #expect(exit.signal == Signal(last: -60, filtered: -61.25, minimum: -70, maximum: -50, count: 7))
        #expect(exit.measuredPower == -59)
        #expect(exit.insideCount == 9)
        #expect(vocabulary.names[exit.name] == "Schlüssel")
        #expect(vocabulary.names[exit.adapter] == "hci0")
        #expect(exit.lastSeenWallTime?.milliseconds == 1_796_072_920_123)
        let identity = try #require(exit.identity)
        #expect(vocabulary.formats[identity.format]?.name == "ibeacon")
        #expect(
            (0..<Int(identity.count)).map { identity[$0] }
                == Hexadecimal.octets("fda50693a4e24fb1afcfc6eb0764782500010002"))
        #expect(Hexadecimal.text(encode(exit, sequence: 0x0102_0304_0506_0708)) == Self.exit)

        let gapRecord = try #require(Hexadecimal.octets(Self.gap))
        let gap = try #require(codec.decode(gapRecord, sequence: 1))
        #expect(gap.kind == .gap && gap.gap == (3, 9) && gap.wallTime.milliseconds == -1)
        #expect(Hexadecimal.text(encode(gap)) == Self.gap)
    }

    @Test("the numbers of formats and names differ between runs of the program")
    func formatsAndNamesAreSpelledOut() throws {
        var event = World.event(1)
        event.identity = BeaconIdentity(format: FormatID(rawValue: 1), octets: [1, 2, 3, 4, 5, 6].span)
        event.name = vocabulary.names.intern("door")
        let record = encode(event)

        let later = World.vocabulary([World.other])
        _ = later.names.intern("something else")
        let restored = try #require(EventCodec(vocabulary: later).decode(record, sequence: 1))
        #expect(later.names[restored.name] == "door")
        #expect(restored.identity?.format == FormatID(rawValue: 0))

        #expect(EventCodec(vocabulary: World.vocabulary([World.ibeacon])).decode(record, sequence: 1) == nil)
    }

    @Test func aLongNameIsCutBetweenCharacters() throws {
        var event = World.event(1)
        event.name = vocabulary.names.intern("x" + String(repeating: "漢", count: 200))
        let restored = try #require(codec.decode(encode(event), sequence: 1))
        #expect(vocabulary.names[restored.name] == "x" + String(repeating: "漢", count: 84))
    }

    @Test func aRecordElsewhereIsAnotherRecord() {
        #expect(codec.decode(encode(World.event(1), sequence: 1), sequence: 2) == nil)
    }

    @Test func everyChangeIsNoticed() throws {
        var generator = SeededGenerator("everyChangeIsNoticed")
        let record = encode(try randomEvent(.exit, &generator))
        for count in 0..<record.count { #expect(codec.decode(Array(record[..<count]), sequence: 1) == nil) }
        for bit in 0..<record.count * 8 {
            var changed = record
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(codec.decode(changed, sequence: 1) == nil)
        }
        #expect(codec.decode(record + [0], sequence: 1) == nil)
    }

    @Test("octets that a fault or another version sealed: an answer or none, never a trap")
    func sealedNonsense() throws {
        var generator = SeededGenerator("sealedNonsense")
        var readable = 0
        for kind in Event.Kind.allCases {
            let body = Array(encode(try randomEvent(kind, &generator)).dropLast(4))
            for count in 0..<body.count {
                var prefix = Array(body[..<count])
                EventCodec.seal(&prefix, sequence: 1)
                #expect(codec.decode(prefix, sequence: 1) == nil, "a record of \(count) octets is not whole")
                for octet in [0, 1, 0x7F, 0x80, 0xFF, UInt8.random(in: 0...255, using: &generator)] {
                    var changed = body
                    changed[count] = octet
                    EventCodec.seal(&changed, sequence: 1)
                    if codec.decode(changed, sequence: 1) != nil { readable += 1 }
                }
            }
        }
        #expect(readable > 0, "the check value is not what refuses them")
        for _ in 0..<2000 {
            var record = (0..<Int.random(in: 0...200, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            EventCodec.seal(&record, sequence: 1)
            _ = codec.decode(record, sequence: 1)
        }
    }

    @Test("CRC-32C of RFC 3720, B.4, and the customary check value")
    func checksum() {
        func value(_ octets: [UInt8]) -> UInt32 {
            var checksum = Checksum()
            checksum.add(octets)
            return checksum.value
        }
        #expect(value(Array("123456789".utf8)) == 0xE306_9283)
        #expect(value([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(value([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(value(Array(0..<32)) == 0x46DD_794E)
    }
}
