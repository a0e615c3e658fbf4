// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import TestSupport
import Testing

@testable import Presence

@Suite struct PresenceTablesTests {
    private static func identity(_ number: UInt64) -> BeaconIdentity {
        BeaconIdentity(format: FormatID(rawValue: 1), count: 20, words: (number, 0, number << 32))
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func theIndexFindsWhatADictionaryFinds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var index = IdentityIndex()
        var expected: [BeaconIdentity: Int32] = [:]
        let identities = (0..<400).map { Self.identity($0) }
        let table = { (place: Int32) in identities[Int(place)] }
        for step in 0..<20_000 {
            // Waves of growth and decline, so that holes are filled again and the table grows meanwhile.
            let number = Int.random(in: 0..<(step / 2_000 % 2 == 0 ? 400 : 60), using: &generator)
            let identity = identities[number]
            if let place = expected[identity] {
                #expect(index.place(of: identity, in: table) == place, "seed \(seed), step \(step)")
                index.remove(place, of: identity, in: table)
                expected[identity] = nil
            } else {
                #expect(index.place(of: identity, in: table) == nil, "seed \(seed), step \(step)")
                index.insert(Int32(number), of: identity, in: table)
                expected[identity] = Int32(number)
            }
        }
        #expect(index.count == expected.count)
        for identity in identities {
            #expect(index.place(of: identity, in: table) == expected[identity], "seed \(seed)")
        }
    }

    @Test func aFrameIsKeptApartAndItsPlaceUsedAgain() throws {
        var table = BeaconTable(capacity: 2)
        let clock = ListeningClock()
        let listening = clock.reading(at: .zero)
        let moment = Hearing(listening: listening, evidence: clock.evidence(at: listening))
        func beacon(_ number: UInt64) -> TrackedBeacon {
            let sighting = Sighting(
                time: .zero, identity: Self.identity(number), address: .anonymous, rssi: -60, measuredPower: nil,
                adapter: .none)
            return TrackedBeacon(sighting, moment, rule: 0, standing: .stranger)
        }
        func text(_ place: Int32) -> String? {
            table.payload(of: place).map { payload in
                var writer = JSONWriter()
                writer.beginObject()
                payload.write(Self.catalog, into: &writer)
                writer.endObject()
                return writer.text
            }
        }
        let first = table.insert(beacon(1))
        let second = table.insert(beacon(2))
        #expect(text(first) == nil)
        table.keep(try Self.payload(7), of: first)
        table.keep(try Self.payload(8), of: second)
        table.keep(try Self.payload(9), of: first)
        #expect(text(first) == #"{"frame":"octet","octet":9}"#)
        #expect(text(second) == #"{"frame":"octet","octet":8}"#)
        table.remove(first)
        let third = table.insert(beacon(3))
        #expect(third == first)
        #expect(text(third) == nil)
        table.keep(try Self.payload(10), of: third)
        #expect(text(third) == #"{"frame":"octet","octet":10}"#)
        #expect(text(second) == #"{"frame":"octet","octet":8}"#)
    }

    /// A tracked beacon must stay cheap: there are as many records as beacons in the air, strangers too.
    @Test func aRecordIsNoLongerThanItWas() {
        #expect(MemoryLayout<TrackedBeacon>.stride <= 248)
    }

    private static let catalog = FormatCatalog([
        BeaconFormat(name: "octet", fields: []) { frame, writer in
            writer.key("octet")
            writer.integer(frame[0])
        }
    ])

    private static func payload(_ octet: UInt8) throws -> FramePayload {
        let octets: [UInt8] = [octet]
        let payload = FramePayload(format: FormatID(rawValue: 0), octets.span)
        return try #require(payload)
    }
}
