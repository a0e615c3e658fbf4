// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Presence

extension AgentConfigurationKeys {
    /// The keys of `signal`, in `presence` and in the entries of `beacons` and `regions`.
    enum Signal {
        private static let strengths: ClosedRange<Int64> = -127...20
        private static let distances = 0.1...1000.0
        private static let dwells = TimeInterval.zero ... .seconds(3600)

        static let enterRSSI = Key<Int64?>.optionalInteger(
            "enter_rssi", in: strengths, "It may enter at this strength or more, in dBm.")
        static let exitRSSI = Key<Int64?>.optionalInteger(
            "exit_rssi", in: strengths, "It leaves below this strength; without it by silence alone.")
        static let enterDistance = Key<Double?>.optionalNumber(
            "enter_distance", in: distances, "Instead of a strength: it may enter within this distance, in metres.")
        static let exitDistance = Key<Double?>.optionalNumber(
            "exit_distance", in: distances, "It leaves beyond this distance; without it by silence alone.")
        static let enterDwell = Key<TimeInterval>.duration(
            "enter_dwell", default: .zero, in: dwells, "How long it must have kept to the one.")
        static let exitDwell = Key<TimeInterval>.duration(
            "exit_dwell", default: .seconds(10), in: dwells, "How long it must have been past the other.")

        static let section = Section(
            [
                enterRSSI.declaration, exitRSSI.declaration, enterDistance.declaration, exitDistance.declaration,
                enterDwell.declaration, exitDwell.declaration,
            ], check: check)

        static func key(_ summary: String) -> Key<Values> {
            .section("signal", section, example: #"{"enter_rssi": -100}"#, summary)
        }

        private static func check(_ values: Values, _ complaints: inout Complaints) {
            let (strength, distance) = (values[enterRSSI], values[enterDistance])
            guard (strength == nil) != (distance == nil) else {
                complaints.add(nil, "needs one of \"enter_rssi\" and \"enter_distance\"")
                return
            }
            if let strength, let exit = values[exitRSSI], exit > strength {
                complaints.add("exit_rssi", "must not be more than \"enter_rssi\"")
            }
            if let distance, let exit = values[exitDistance], exit < distance {
                complaints.add("exit_distance", "must not be less than \"enter_distance\"")
            }
            if strength != nil, values[exitDistance] != nil {
                complaints.add("exit_distance", "does not go with \"enter_rssi\"")
            }
            if distance != nil, values[exitRSSI] != nil {
                complaints.add("exit_rssi", "does not go with \"enter_distance\"")
            }
        }
    }
}

extension SignalGate {
    /// nil when the section is not given.
    init?(_ values: Values, _ key: Key<Values>) {
        guard values.isGiven(key) else { return nil }
        let section = values[key]
        let strength = section[AgentConfigurationKeys.Signal.enterRSSI]
        guard let enter = strength.map(Double.init) ?? section[AgentConfigurationKeys.Signal.enterDistance] else {
            return nil
        }
        let exit =
            section[AgentConfigurationKeys.Signal.exitRSSI].map(Double.init)
            ?? section[AgentConfigurationKeys.Signal.exitDistance]
        self.init(
            strength == nil ? .distance : .strength, enter: enter, exit: exit,
            enterDwell: section[AgentConfigurationKeys.Signal.enterDwell],
            exitDwell: section[AgentConfigurationKeys.Signal.exitDwell])
    }
}
