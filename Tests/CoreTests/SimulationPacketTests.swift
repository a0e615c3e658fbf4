// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Simulation
import Testing

/// The octets that the world makes, against packets put together by hand from the specifications.
@Suite struct SimulationPacketTests {
    private static let uuid: [UInt8] = [
        0xF7, 0x82, 0x6D, 0xA6, 0x4F, 0xA2, 0x4E, 0x98, 0x80, 0x24, 0xBC, 0x5B, 0x71, 0xE0, 0x89, 0x3E,
    ]
    /// Flags, then Apple's manufacturer data: 0x004C, type 0x02, length 0x15, UUID, major, minor, −59 dBm.
    private static let iBeaconData = "0201061aff4c000215f7826da64fa24e988024bc5b71e0893e00010203c5"

    private func firstPacket(_ advertisement: Advertisement, isExtended: Bool = false) throws -> String {
        var world = RadioWorld(
            Scenario(
                duration: .seconds(10), radios: [Scenario.Radio(isExtended: isExtended)],
                beacons: [
                    .init(
                        advertisement: advertisement,
                        address: DeviceAddress(value: 0xC3_0102030405, kind: .randomDevice),
                        interval: .milliseconds(100))
                ], noise: 0))
        var packet: [UInt8] = [0xEE]
        while let occurrence = world.next(into: &packet) {
            if occurrence.kind == .packet { return Hexadecimal.text(packet) }
        }
        throw Silence()
    }

    private struct Silence: Error {}

    @Test func legacyReport() throws {
        // H4 event, LE Meta, 42 octets, LE Advertising Report, one report, ADV_NONCONN_IND, random address in little
        // endian, 30 octets of data, −59 dBm: at 1 m without noise the RSSI is the measured power.
        #expect(
            try firstPacket(.iBeacon(uuid: Self.uuid, major: 1, minor: 0x0203))
                == "043e2a02010301" + "0504030201c3" + "1e" + Self.iBeaconData + "c5")
    }

    @Test func extendedReport() throws {
        // LE Extended Advertising Report: event type 0x0010, LE 1M, no secondary PHY, SID 0xFF, TX power 0x7F, RSSI,
        // periodic interval 0, direct address type and address 0.
        #expect(
            try firstPacket(.iBeacon(uuid: Self.uuid, major: 1, minor: 0x0203), isExtended: true)
                == "043e380d01100001" + "0504030201c3" + "0100ff7fc5" + "0000" + "00000000000000" + "1e"
                + Self.iBeaconData)
    }

    @Test(arguments: [
        (
            Advertisement.altBeacon(id1: uuid, id2: 3, id3: 0x1234),
            "0201061bff1801beacf7826da64fa24e988024bc5b71e0893e00031234c500"
        ),
        (
            // −59 dBm at 1 m are −18 dBm at 0 m.
            Advertisement.eddystoneUID(
                namespace: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], instance: [0xA, 0xB, 0xC, 0xD, 0xE, 0xF]),
            "0201060303aafe1716aafe00ee" + "00010203040506070809" + "0a0b0c0d0e0f" + "0000"
        ),
        (Advertisement.payload([0x02, 0x01, 0x06]), "020106"),
        (Advertisement.payload([]), ""),
    ])
    func advertisingData(_ advertisement: Advertisement, data: String) throws {
        let packet = try firstPacket(advertisement)
        let count = data.utf8.count / 2
        #expect(
            packet == "043e" + Hexadecimal.text([UInt8(12 + count)]) + "02010301" + "0504030201c3"
                + Hexadecimal.text([UInt8(count)]) + data + "c5")
    }

    @Test func theSameSeedMakesTheSameBytes() {
        var scenario = Scenario(
            seed: 42, duration: .seconds(20),
            radios: [Scenario.Radio(), Scenario.Radio(name: "sim1", isExtended: true)],
            beacons: (0..<20).map { .numbered($0, distance: Double($0)) { $0.loss = 0.2 } })
        let first = Recording(scenario)
        let second = Recording(scenario)
        #expect(first.packets.count > 1000)
        #expect(first.packets == second.packets)
        #expect(first.receptions == second.receptions)
        scenario.seed = 43
        #expect(Recording(scenario).packets != first.packets)
    }

    @Test func anotherBeaconDoesNotChangeTheTimesOfTheFirst() {
        // A weak one: what it sends never spoils what the first one sends.
        let first = Scenario.Beacon.numbered(1)
        let other = Scenario.Beacon.numbered(2, distance: 900)
        func times(_ beacons: [Scenario.Beacon]) -> [Reception] {
            Recording(Scenario(duration: .seconds(30), beacons: beacons, noise: 0)).receptions
        }
        #expect(times([first]).count > 250)
        #expect(times([first]) == times([first, other]))
    }

    @Test func addresses() {
        func addresses(_ rotation: TimeInterval?) -> [UInt64] {
            Recording(
                Scenario(
                    duration: .seconds(100),
                    beacons: [.numbered(1) { $0.addressRotation = rotation }])
            ).receptions.map(\.address)
        }
        let fixed = Set(addresses(nil))
        #expect(fixed.count == 1)
        #expect(fixed.allSatisfy { $0 >> 46 == 0b11 }, "a random static address")
        let rotating = addresses(.seconds(10))
        #expect(Set(rotating).count == 10)
        #expect(rotating.allSatisfy { $0 >> 46 == 0b00 }, "non-resolvable private addresses")
        let changes = zip(rotating, rotating.dropFirst()).count { $0 != $1 }
        #expect(changes == 9)
    }
}
