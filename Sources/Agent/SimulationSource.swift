// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Simulation

/// A scenario that unfolds in real time.
final class SimulationSource: PacketSource {
    private let adapters: [Name]
    private var world: RadioWorld
    private let duration: TimeInterval
    private var packet: [UInt8] = []
    private var waiting: RadioWorld.Occurrence?
    private var beginning = MonotonicTime.zero
    private var isAtEnd = false

    /// - Parameter adapters: a name for each radio of the scenario.
    init(_ scenario: Scenario, adapters: [Name]) {
        self.adapters = adapters
        world = RadioWorld(scenario)
        duration = scenario.duration
        packet.reserveCapacity(260)
    }

    var nextDeadline: MonotonicTime {
        isAtEnd ? .distantFuture : due(waiting?.time ?? .zero + duration)
    }

    var hasEnded: Bool { isAtEnd }

    func start(at now: MonotonicTime, _ receiver: any PacketReceiver) {
        beginning = now
        waiting = world.next(into: &packet)
    }

    func advance(to now: MonotonicTime, _ receiver: any PacketReceiver) {
        while let occurrence = waiting, due(occurrence.time) <= now {
            let adapter = adapters[occurrence.radio]
            let time = due(occurrence.time)
            switch occurrence.kind {
            case .packet: receiver.packet(packet.span, at: time, from: adapter)
            case .activity(let activity):
                receiver.activity(activity, at: time, of: adapter)
                receiver.state(activity == .blind ? .blind : .scanning, at: time, of: adapter)
            }
            waiting = world.next(into: &packet)
        }
        let end = due(.zero + duration)
        if waiting == nil, !isAtEnd, end <= now {
            isAtEnd = true
            for adapter in adapters { receiver.state(.ended, at: end, of: adapter) }
        }
    }

    private func due(_ time: MonotonicTime) -> MonotonicTime {
        beginning + (time - .zero)
    }
}
