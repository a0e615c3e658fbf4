// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What is heard while somebody scans for a time: each beacon once, as it was heard last.
final class BeaconSearch {
    /// Beacons that are kept; of this many an answer has half a megabyte.
    static let capacity = 1000

    let beginning: MonotonicTime
    /// After this it takes nothing more.
    let end: MonotonicTime
    /// Beacons that the configuration knows are of no interest.
    private let onlyStrangers: Bool
    private var places: [BeaconIdentity: Int] = [:]
    private(set) var found: [Event] = []
    /// Beacons that there was no room for are not in ``found``.
    private(set) var isCut = false

    init(at beginning: MonotonicTime, for duration: TimeInterval, onlyStrangers: Bool) {
        self.beginning = beginning
        end = beginning + duration
        self.onlyStrangers = onlyStrangers
    }

    /// Takes an event of a beacon that was heard at its time; others are nothing to it.
    func note(_ event: borrowing Event) {
        var event = copy event
        guard event.kind == .sighting || event.kind == .enter, event.time >= beginning, event.time <= end,
            let identity = event.identity, !(onlyStrangers && event.isConfigured)
        else { return }
        event.kind = .sighting
        if let place = places[identity] {
            if found[place].time <= event.time { found[place] = event }
        } else if found.count < Self.capacity {
            places[identity] = found.count
            found.append(event)
        } else {
            isCut = true
        }
    }
}
