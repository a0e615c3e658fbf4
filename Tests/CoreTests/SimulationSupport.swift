// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Simulation

extension MonotonicTime {
    static func seconds(_ seconds: Double) -> Self {
        Self(nanoseconds: Int64((seconds * 1e9).rounded()))
    }

    var seconds: Double { Double(nanoseconds) / 1e9 }
}

extension TimeInterval {
    static func microseconds(_ microseconds: Int64) -> Self { Self(nanoseconds: microseconds * 1000) }
}

extension Scenario.Radio {
    /// Listens without a gap to one channel for so long that a test never sees it change.
    static let unmoving = Self(window: .seconds(100_000), interval: .seconds(100_000))
}

extension Scenario.Beacon {
    /// An iBeacon whose minor is its number, with the rest as the test wants it.
    static func numbered(
        _ number: Int, interval: TimeInterval = .milliseconds(100), distance: Double = 1,
        _ change: (inout Self) -> Void = { _ in }
    ) -> Self {
        var beacon = Self(
            advertisement: .iBeacon(
                uuid: [UInt8](repeating: 0xAB, count: 16), major: 1, minor: UInt16(number)),
            interval: interval, path: [.init(time: .zero, distance: distance)])
        change(&beacon)
        return beacon
    }
}

/// What a host received, with the little of a packet that most tests look at.
struct Reception: Equatable {
    var time: MonotonicTime
    var radio: Int
    /// The minor of an iBeacon, which is how these tests number their beacons.
    var minor: Int
    var address: UInt64
    var rssi: Int
}

/// A world that has come to its end.
struct Recording {
    var receptions: [Reception] = []
    var packets: [[UInt8]] = []
    var activities: [RadioWorld.Occurrence] = []
    var world: RadioWorld

    init(_ scenario: Scenario) {
        world = RadioWorld(scenario)
        var packet: [UInt8] = []
        while let occurrence = world.next(into: &packet) {
            guard occurrence.kind == .packet else {
                activities.append(occurrence)
                continue
            }
            packets.append(packet)
            // Offsets of a legacy report of an iBeacon with flags.
            guard packet.count == 45 else { continue }
            receptions.append(
                Reception(
                    time: occurrence.time, radio: occurrence.radio, minor: Int(packet[41]) << 8 | Int(packet[42]),
                    address: packet[7..<13].reversed().reduce(0) { $0 << 8 | UInt64($1) },
                    rssi: Int(Int8(bitPattern: packet[44]))))
        }
    }

    /// Seconds from each reception to the next one.
    var gaps: [Double] {
        zip(receptions, receptions.dropFirst()).map { ($1.time - $0.time).seconds }
    }

    /// The share of the PDUs that a radio could have received and did.
    func share(radio: Int = 0) -> Double {
        let tally = world.tally(ofRadio: radio)
        return Double(tally.heard) / Double(tally.heard + tally.collided + tally.faint + tally.lost)
    }
}

func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(values.count) }
