// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Puts the beacons of each region together that were ranged at one moment: they come one by one, and a batch may end
/// between them.
struct RangingRounds {
    /// The beacons of each region's newest round that came so far.
    private var rounds: [Name: [Event]] = [:]

    /// Takes a beacon of a round.
    ///
    /// - Returns: a round with nothing more to come, nearest first: the one of this beacon when it was the last, or the
    ///   one before it when some of that were lost on the way. Empty while the round goes on.
    mutating func add(_ event: borrowing Event) -> [Event] {
        let event = copy event
        var round = rounds[event.region] ?? []
        if let time = round.first?.time, time != event.time {
            // A newer round took the place of what waited of this one.
            guard time < event.time else { return [] }
            guard event.insideCount > 1 else {
                rounds[event.region] = nil
                return [event]
            }
            rounds[event.region] = [event]
            return Self.sorted(round)
        }
        round.append(event)
        guard round.count >= Int(event.insideCount) else {
            rounds[event.region] = round
            return []
        }
        rounds[event.region] = nil
        return Self.sorted(round)
    }

    private static func sorted(_ round: [Event]) -> [Event] { round.sorted { $0.rank < $1.rank } }
}
