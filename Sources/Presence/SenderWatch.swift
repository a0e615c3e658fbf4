// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Notices that two devices send one identity: a rolling address changes and never comes back, but those of two devices
/// take turns.
struct SenderWatch: Sendable {
    /// The address before the present one, or the other one of two.
    private(set) var other = DeviceAddress.anonymous
    private var turns: UInt8 = 0
    /// Sightings of the other device in a row.
    private var otherInARow: UInt8 = 0
    private(set) var areTwo = false

    /// Turns back to the address before that prove it. One is also what a packet does that was delivered late.
    private static let enough: UInt8 = 3
    /// With so many sightings of the other one alone, the first one is gone.
    private static let gone: UInt8 = 32

    /// Takes in the address of a sighting of a beacon that had `current` before. Returns whether it is from another
    /// device than the one that the signal is of.
    mutating func isOther(_ address: DeviceAddress, than current: DeviceAddress) -> Bool {
        if address == current {
            otherInARow = 0
            return false
        }
        if areTwo {
            other = address
            otherInARow += 1
            guard otherInARow >= Self.gone else { return true }
            self = SenderWatch()
            return false
        }
        turns = address == other ? turns + 1 : 0
        other = current
        if turns >= Self.enough { areTwo = true }
        return false
    }
}
