// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence

extension AgentConfiguration {
    /// Whether a beacon is named, or a region that it belongs to.
    func names(_ identity: BeaconIdentity) -> Bool {
        beacons.contains { $0.identity == identity }
            || regions.contains { region in region.patterns.contains { $0.matches(identity) } }
    }

    /// The last states of the beacons and regions that an older configuration names and this one does not, wherever they
    /// were: sinks that have others keep a state have it dropped.
    func droppedStates(of older: AgentConfiguration, at time: MonotonicTime) -> [Event] {
        let beacons = older.beacons.filter { !names($0.identity) }.map { rule in
            var event = Event(kind: .exit, time: time)
            event.identity = rule.identity
            event.name = rule.alias
            event.isConfigured = true
            event.exitReason = .removed
            return event
        }
        let known = Set(regions.map(\.name))
        let regions = older.regions.filter { !known.contains($0.name) }.map { rule in
            // Unlike that of a region that only lost its last beacon.
            var event = Event(kind: .regionExit, time: time)
            event.name = rule.name
            event.exitReason = .removed
            return event
        }
        return beacons + regions
    }
}
