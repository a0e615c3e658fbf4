// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import SinkKit
import TestSupport
import Testing

/// Holds the examples of `docs/events.md` to what the encoder writes.
@Suite struct EventPageTests {
    private let vocabulary = Vocabulary(
        formats: FormatCatalog([
            BeaconFormat(
                name: "ibeacon",
                fields: [
                    IdentityField(key: "uuid", spelling: .uuid, summary: ""),
                    IdentityField(key: "major", spelling: .number, summary: ""),
                    IdentityField(key: "minor", spelling: .number, summary: ""),
                ])
        ]), names: NameTable())
    private let wallTime = WallTime(milliseconds: 1_796_072_940_123)

    @Test(arguments: Event.Kind.allCases)
    func exampleOfEachKindIsWhatTheEncoderWrites(kind: Event.Kind) throws {
        var writer = JSONWriter()
        let delivery = Delivery(role: .transitions, event: try event(kind), sequence: sequence(kind))
        encoder.encode(delivery, stream: "9f86d081884c7d659a2feaa0c55ad015", into: &writer)
        #expect(try example(under: kind.word) == object(writer.text))
    }

    @Test func exampleOfAStateIsWhatTheEncoderWrites() throws {
        var writer = JSONWriter()
        encoder.encodeState(try event(.enter), into: &writer)
        #expect(try example(under: "State") == object(writer.text))
    }

    /// A key may stand only once in an object.
    @Test func aDeviceKnownByItsAddressIsSpelledWithItOnce() throws {
        let format = BeaconFormat(
            name: "device", fields: [IdentityField(key: "address", spelling: .hexadecimal(octets: 6), summary: "")])
        let encoder = EventEncoder(
            gateway: "hall-3", vocabulary: Vocabulary(formats: FormatCatalog([format]), names: NameTable()))
        var event = try event(.enter)
        event.identity = BeaconIdentity(
            format: FormatID(rawValue: 0), octets: ([0xC3, 0, 0, 0x12, 0x34, 0x56] as [UInt8]).span)
        var writer = JSONWriter()
        encoder.encode(Delivery(role: .transitions, event: event), stream: "", into: &writer)
        #expect(writer.text.components(separatedBy: "\"address\":").count == 2)
        #expect(writer.text.contains("\"address\":\"c30000123456\""))
        #expect(writer.text.contains("\"address_ending\":\"00:12:34:56\""))
    }

    private var encoder: EventEncoder { EventEncoder(gateway: "hall-3", vocabulary: vocabulary) }

    private func sequence(_ kind: Event.Kind) -> UInt64 {
        switch kind {
        case .sighting, .ranging: 0
        case .enter: 4711
        case .exit: 4712
        case .regionEnter: 4713
        case .regionExit: 4714
        case .adapter: 4715
        case .regionUnknown: 4716
        case .regionKnown: 4717
        case .proximity: 4718
        case .clone: 4719
        case .health: 4720
        case .gap: 4721
        case .unknown: 4722
        case .known: 4723
        case .flood: 4724
        }
    }

    private func event(_ kind: Event.Kind) throws -> Event {
        let names = vocabulary.names
        var event = Event(kind: kind, time: .zero)
        event.wallTime = wallTime
        let octets = try #require(UUIDText.octets("fda50693-a4e2-4fb1-afcf-c6eb07647825")) + [0, 10, 0, 7]
        event.identity = BeaconIdentity(format: FormatID(rawValue: 0), octets: octets.span)
        event.name =
            switch kind {
            case .regionEnter, .regionExit, .regionUnknown, .regionKnown: names.intern("office")
            case .adapter: names.intern("hci0")
            case .health: .none
            default: names.intern("keys")
            }
        event.address = DeviceAddress(value: 0xC300_0012_3456, kind: .randomDevice)
        event.adapter = names.intern("hci0")
        event.signal = Signal(last: -63, filtered: -61.4, minimum: -66, maximum: -58, count: 9)
        event.measuredPower = -59
        event.proximity = .near
        event.accuracy = 1.32
        event.lastSeenWallTime = WallTime(milliseconds: wallTime.milliseconds - 20_000)
        event.exitTime = .seconds(20)
        event.exitLimit = .data
        event.falseExits = (1 / 86_400, 0.8 / 86_400)
        event.insideCount = kind == .regionExit ? 0 : 1
        event.region = kind == .ranging ? names.intern("office") : .none
        event.rank = 1
        event.otherAddress = DeviceAddress(value: 0xC300_0065_4321, kind: .randomDevice)
        event.adapterState = .scanning
        if kind == .health {
            event.isHealthy = false
            event.trouble = names.intern("hci0 is blind: hci0: the adapter was switched off")
        }
        event.gap = (4716, 4720)
        if kind == .flood {
            event.flood = (0, 49_871)
            event.insideCount = 10_000
        }
        return event
    }

    /// The JSON block under a heading of the page.
    private func example(under heading: String) throws -> NSDictionary {
        let path = Fixtures.repository.appending(path: "docs/events.md")
        let page = try String(contentsOf: path, encoding: .utf8)
        let section = try #require(page.components(separatedBy: "\n## \(heading)\n").dropFirst().first)
        let block = try #require(section.components(separatedBy: "```json\n").dropFirst().first)
        return try object(try #require(block.components(separatedBy: "```").first))
    }

    private func object(_ text: String) throws -> NSDictionary {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary)
    }
}
