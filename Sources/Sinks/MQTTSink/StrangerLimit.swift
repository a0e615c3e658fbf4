// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Which beacons that the configuration does not name have topics: the first ones of each hour, up to a number. Who
/// invents identities, or walks past with a rotating one, makes a new topic with each.
struct StrangerLimit {
    private static let period = TimeInterval.seconds(3600)

    private let most: Int
    private var admitted: Set<BeaconIdentity> = []
    private var end = MonotonicTime(nanoseconds: .min)

    /// - Parameter most: beacons in an hour.
    init(_ most: Int) { self.most = most }

    mutating func admits(_ identity: BeaconIdentity, at now: MonotonicTime) -> Bool {
        if now >= end {
            admitted.removeAll(keepingCapacity: true)
            end = now + Self.period
        }
        if admitted.contains(identity) { return true }
        guard admitted.count < most else { return false }
        admitted.insert(identity)
        return true
    }
}
