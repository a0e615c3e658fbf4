// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Simulation
import Testing

@testable import Agent

/// The keys of a scenario file and the scenario that they become.
@Suite struct ScenarioFileTests {
    private func values(_ given: [String: Value]) -> Values { Values(given: given) }

    private func section(_ given: [String: Value]) -> Value { .section(values(given)) }

    private static let uuid = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"

    /// A radio of which nothing is said does as it is told.
    private static var directed: Scenario.Radio {
        var radio = Scenario.Radio()
        radio.isDirected = true
        return radio
    }

    @Test func defaults() throws {
        let scenario = Scenario(values(["beacons": .list([section(["uuid": .text(Self.uuid)])])]))
        let uuid = try #require(UUIDText.octets(Self.uuid))
        #expect(
            scenario
                == Scenario(
                    duration: .seconds(60), radios: [Self.directed],
                    beacons: [
                        .init(advertisement: .iBeacon(uuid: uuid, major: 0, minor: 0), interval: .milliseconds(100))
                    ]))
    }

    @Test func everyKeyArrives() {
        let period = section(["from": .duration(.seconds(3)), "to": .duration(.seconds(5))])
        let range = MonotonicTime(nanoseconds: 3_000_000_000)..<MonotonicTime(nanoseconds: 5_000_000_000)
        let scenario = Scenario(
            values([
                "seed": .integer(9), "duration": .duration(.seconds(90)), "path_loss_exponent": .number(2.7),
                "noise": .number(1.5),
                "walls": .list([
                    section([
                        "beyond": .number(4), "attenuation": .number(8), "from": .duration(.seconds(3)),
                        "to": .duration(.seconds(5)),
                    ])
                ]),
                "radios": .list([
                    section([
                        "name": .text("hci7"), "window": .duration(.milliseconds(30)),
                        "interval": .duration(.milliseconds(60)), "extended": .boolean(true),
                        "sensitivity": .number(-80), "blind": .list([period]),
                        "burst": section(["on": .duration(.seconds(1)), "off": .duration(.seconds(2))]),
                    ]),
                    section([:]),
                ]),
                "beacons": .list([
                    section([
                        "alias": .text("bicycle"), "format": .text("altbeacon"), "id1": .text(Self.uuid),
                        "id2": .integer(3), "id3": .integer(65_535), "address": .text("00:11:22:33:44:55"),
                        "address_kind": .text("public"), "measured_power": .integer(-70),
                        "interval": .duration(.milliseconds(250)),
                        "path": .list([section(["at": .duration(.seconds(3)), "distance": .number(2.5)])]),
                        "visits": .list([period]), "silent": .list([period]), "loss": .number(0.25),
                    ]),
                    section([
                        "format": .text("eddystone-uid"), "namespace": .text("00010203040506070809"),
                        "instance": .text("0A0B0C0D0E0F"), "rotate_address": .duration(.seconds(900)),
                        "visits": .list([section(["from": .duration(.seconds(3))])]),
                    ]),
                    section(["payload": .text("020106"), "visits": .list([])]),
                ]),
            ]))
        let uuid = UUIDText.octets(Self.uuid) ?? []
        #expect(
            scenario
                == Scenario(
                    seed: 9, duration: .seconds(90),
                    radios: [
                        .init(
                            name: "hci7", window: .milliseconds(30), interval: .milliseconds(60), isExtended: true,
                            sensitivity: -80, blind: [range], burst: .init(on: .seconds(1), off: .seconds(2))),
                        Self.directed,
                    ],
                    beacons: [
                        .init(
                            alias: "bicycle", advertisement: .altBeacon(id1: uuid, id2: 3, id3: 65_535),
                            address: DeviceAddress(value: 0x0011_2233_4455, kind: .publicDevice), measuredPower: -70,
                            interval: .milliseconds(250), path: [.init(time: range.lowerBound, distance: 2.5)],
                            visits: [range], silent: [range], loss: 0.25),
                        .init(
                            advertisement: .eddystoneUID(
                                namespace: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], instance: [10, 11, 12, 13, 14, 15]),
                            addressRotation: .seconds(900), interval: .milliseconds(100),
                            visits: [range.lowerBound ..< .distantFuture]),
                        .init(advertisement: .payload([2, 1, 6]), interval: .milliseconds(100), visits: []),
                    ], pathLossExponent: 2.7, noise: 1.5,
                    walls: [.init(distance: 4, attenuation: 8, period: range)]))
    }

    /// What a check across keys says.
    private func complaints(_ check: (Values, inout Complaints) -> Void, _ given: [String: Value]) -> [String] {
        var complaints = Complaints()
        check(values(given), &complaints)
        return complaints.items.map(\.text)
    }

    @Test(arguments: [
        (["uuid": Value.text(uuid)], []),
        (["payload": .text("020106")], []),
        ([:], ["the format \"ibeacon\" needs \"uuid\""]),
        (
            ["format": .text("eddystone-uid"), "uuid": .text(uuid)],
            [
                "belongs to the format \"ibeacon\"", "the format \"eddystone-uid\" needs \"namespace\"",
                "the format \"eddystone-uid\" needs \"instance\"",
            ]
        ),
        (
            ["payload": .text(""), "format": .text("ibeacon"), "minor": .integer(1)],
            ["does not go with \"payload\"", "belongs to the format \"ibeacon\""]
        ),
        (
            ["uuid": .text(uuid), "address": .text("C3:00:00:00:00:01"), "rotate_address": .duration(.seconds(1))],
            ["does not go with \"address\""]
        ),
        (
            [
                "uuid": .text(uuid),
                "path": .list([
                    .section(Values(given: ["at": .duration(.seconds(2))])),
                    .section(Values(given: ["at": .duration(.seconds(2))])),
                ]),
            ],
            ["its points are not in the order of time"]
        ),
    ])
    func checksOfABeacon(_ given: [String: Value], expected: [String]) {
        #expect(complaints(ScenarioFile.checkBeacon, given) == expected)
    }

    @Test func otherChecks() {
        #expect(
            complaints(ScenarioFile.checkRadio, ["window": .duration(.milliseconds(101))])
                == ["is longer than \"interval\""])
        #expect(complaints(ScenarioFile.checkRadio, [:]) == [])
        #expect(
            complaints(ScenarioFile.checkPeriod, ["from": .duration(.seconds(2)), "to": .duration(.seconds(2))])
                == ["is not later than \"from\""])
        #expect(complaints(ScenarioFile.checkPeriod, ["from": .duration(.seconds(2))]) == [])
        #expect(
            complaints(ScenarioFile.checkFile, ["radios": .list([section([:]), section([:])])])
                == ["two radios have the same \"name\""])
        #expect(complaints(ScenarioFile.checkFile, ["radios": .list([section([:])])]) == [])
    }

    /// Values that no reader has checked make a scenario that runs all the same.
    @Test func uncheckedValuesDoNotTrap() {
        let scenario = Scenario(
            values([
                "beacons": .list([
                    section([:]), section(["format": .text("altbeacon"), "id1": .text("x")]),
                    section([
                        "payload": .text("xyz"),
                        "visits": .list([section(["from": .duration(.seconds(9)), "to": .duration(.seconds(1))])]),
                    ]),
                ])
            ]))
        #expect(scenario.beacons.map(\.advertisement) == [.payload([]), .payload([]), .payload([])])
        #expect(scenario.beacons[2].visits.allSatisfy { $0.isEmpty })
    }
}
