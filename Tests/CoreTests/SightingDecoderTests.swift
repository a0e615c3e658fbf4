// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import HCI
import TestSupport
import Testing

@Suite struct SightingDecoderTests {
    private static let iBeacon = "0201061aff4c000215f7826da64fa24e988024bc5b71e0893e00010002c5"
    private static let uid = "0201060303aafe1516aafe00ebedd1ebeac04e5defa017ebb1cb1c7cc1"
    private static let telemetry = "0201060303aafe1116aafe20000b6d20c000061b1700437cb8"

    /// A decoder with the sightings that it found.
    private struct Probe: ~Copyable {
        var decoder: SightingDecoder
        var sightings: [Sighting] = []

        init(capacity: Int = 64, identify: @escaping (DeviceAddress) -> BeaconIdentity? = { _ in nil }) {
            decoder = SightingDecoder(FrameDecoder(), capacity: capacity, identify: identify)
        }

        mutating func hear(_ hex: String, from address: UInt64, isScanResponse: Bool = false, at second: Int64 = 0) {
            let data = Hexadecimal.octets(hex) ?? []
            let octets = (0..<6).map { UInt8(truncatingIfNeeded: address >> UInt64($0 * 8)) }
            let event: [UInt8] = [isScanResponse ? 4 : 0, 1] + octets + [UInt8(data.count)] + data + [0xC4]
            let packet = [0x04, 0x3E, UInt8(event.count + 2), 0x02, 0x01] + event
            var parser = AdvertisingReportParser()
            let time = MonotonicTime.zero + .seconds(second)
            parser.parse(packet.span, at: time) { report, data in
                decoder.decode(report, data, at: time, from: .none) { sightings.append(copy $0) }
            }
        }

        /// All that the sightings say.
        var spelled: [String] {
            sightings.map { sighting in
                var writer = JSONWriter()
                writer.beginObject()
                decoder.frames.catalog.write(sighting.identity, into: &writer)
                sighting.payload?.write(decoder.frames.catalog, into: &writer)
                writer.endObject()
                return "\(writer.text) \(String(describing: sighting.measuredPower))"
            }
        }

        /// The formats of the sightings, in order.
        var formats: [String] {
            sightings.map { decoder.frames.catalog[$0.identity.format]?.name ?? "?" }
        }
    }

    @Test func repeatedAdvertisementsAreTheSameSighting() {
        var probe = Probe()
        for second in 0..<5 { probe.hear(Self.iBeacon, from: 1, at: Int64(second)) }
        #expect(probe.formats == Array(repeating: "ibeacon", count: 5))
        #expect(Set(probe.sightings.map(\.identity)).count == 1)
        #expect(probe.sightings.allSatisfy { $0.measuredPower == -59 && $0.rssi == -60 })
    }

    @Test func aChangedOctetIsSeen() {
        var probe = Probe()
        probe.hear(Self.iBeacon, from: 1)
        probe.hear(String(Self.iBeacon.dropLast(4)) + "03c5", from: 1)
        #expect(Set(probe.sightings.map(\.identity)).count == 2)
    }

    /// What was remembered changes nothing: octets are compared several at a time, and no place may be left out.
    @Test(arguments: [
        iBeacon, String(iBeacon.dropFirst(6)), uid, "0616d2fc400164", "0716d2fc400009640a", "0816d2fc4002ca0901",
        "0a16d2fc400164020a0900",
    ])
    func aChangeIsSeenInEachPlace(hex: String) {
        let octets = Hexadecimal.octets(hex) ?? []
        for place in octets.indices {
            for bit: UInt8 in [0x01, 0x80] {
                var changed = octets
                changed[place] ^= bit
                var fresh = Probe()
                fresh.hear(Hexadecimal.text(changed), from: 1)
                var probe = Probe()
                probe.hear(hex, from: 1)
                probe.hear(hex, from: 1)
                let count = probe.sightings.count
                probe.hear(Hexadecimal.text(changed), from: 1)
                probe.sightings.removeFirst(count)
                #expect(probe.spelled == fresh.spelled, "place \(place)")
            }
        }
    }

    @Test func anAddressThatMakesRoomIsForgotten() {
        var probe = Probe(capacity: 4)
        probe.hear(Self.uid, from: 1)
        probe.hear(Self.telemetry, from: 1, isScanResponse: true)
        #expect(probe.sightings.count == 2)
        for address in 2...5 { probe.hear("020106", from: UInt64(address), at: Int64(address)) }
        probe.hear(Self.telemetry, from: 5, isScanResponse: true, at: 6)
        probe.hear(Self.telemetry, from: 1, isScanResponse: true, at: 7)
        #expect(probe.sightings.count == 2, "nobody was named in its place")
    }

    @Test func aRollingAddressMakesNoSecondBeacon() {
        var probe = Probe()
        for address in 1...200 { probe.hear(Self.iBeacon, from: UInt64(address)) }
        #expect(probe.sightings.count == 200)
        #expect(Set(probe.sightings.map(\.identity)).count == 1)
    }

    @Test func telemetryBelongsToTheBeaconOfTheSameAddress() throws {
        var probe = Probe()
        probe.hear(Self.telemetry, from: 1)
        #expect(probe.sightings.isEmpty, "nobody was named yet")
        probe.hear(Self.uid, from: 1)
        probe.hear(Self.telemetry, from: 1)
        probe.hear(Self.telemetry, from: 2)
        try #require(probe.formats == ["eddystone-uid", "eddystone-uid"])
        #expect(probe.sightings[0].identity == probe.sightings[1].identity)
        #expect(probe.sightings[0].payload == nil)
        var writer = JSONWriter()
        writer.beginObject()
        try #require(probe.sightings[1].payload).write(probe.decoder.frames.catalog, into: &writer)
        writer.endObject()
        #expect(
            writer.text
                == #"{"frame":"eddystone-tlm","battery_mv":2925,"temperature_c":32.75,"adv_count":400151,"uptime_ds":4422840}"#
        )
    }

    @Test func scanResponsesAreRememberedApart() {
        var probe = Probe()
        for _ in 0..<3 {
            probe.hear("020106", from: 1)
            probe.hear(Self.iBeacon, from: 1, isScanResponse: true)
        }
        #expect(probe.formats == ["ibeacon", "ibeacon", "ibeacon"])
    }

    @Test func twoBeaconsInOneAdvertisementAreTwoSightings() {
        var probe = Probe()
        let second = "1bff1801beac2f234454cf6d4a0fadf2f4911ba9ffa600010002c509"
        probe.hear(second, from: 1)
        probe.hear("020106" + second, from: 1)
        #expect(probe.formats == ["altbeacon", "altbeacon"])
    }

    @Test func anAddressThatIsABeaconItselfIsSeenWhateverItSends() {
        let cat = BeaconIdentity(format: FormatID(rawValue: 0), count: 6, words: (7, 0, 0))
        var probe = Probe(identify: { $0.value == 7 ? cat : nil })
        probe.hear("0106", from: 7)
        probe.hear("", from: 7)
        probe.hear("", from: 8)
        probe.hear(Self.iBeacon, from: 7)
        #expect(probe.sightings.filter { $0.identity == cat }.count == 3)
        #expect(probe.sightings.count == 4)
    }

    @Test func anAddressIsIdentifiedOnceWhileItIsRemembered() {
        var asked: [UInt64] = []
        var probe = Probe(
            capacity: 4,
            identify: { address in
                asked.append(address.value)
                return nil
            })
        for _ in 0..<3 { for address in 1...4 { probe.hear("020106", from: UInt64(address)) } }
        #expect(asked == [1, 2, 3, 4])
        probe.hear("020106", from: 5, at: 1)
        probe.hear("020106", from: 2, at: 2)
        #expect(asked == [1, 2, 3, 4, 5], "the one heard longest ago made room, and only that one")
    }

    @Test(arguments: [1, 4, 7, 64, 1000])
    func aFullTableForgetsAndGoesOn(capacity: Int) {
        var probe = Probe(capacity: capacity)
        for round in 0..<3 {
            for address in 0..<2000 { probe.hear(Self.iBeacon, from: UInt64(address), at: Int64(round)) }
        }
        #expect(probe.sightings.count == 6000)
    }
}
