// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import Simulation

/// A scenario that unfolds in real time.
final class SimulationSource: PacketSource {
    let adapters: [Name]
    private var world: RadioWorld
    private let duration: TimeInterval
    private var packet: [UInt8] = []
    /// Some radio does as it is told, so the world must not be ahead of the clock.
    private let isDirected: Bool
    /// The next occurrence of a world that may be ahead of it.
    private var waiting: RadioWorld.Occurrence?
    private var beginning = MonotonicTime.zero
    private var isAtEnd = false

    /// - Parameters:
    ///   - adapters: a name for each radio of the scenario.
    ///   - parameters: what directed radios begin with.
    init(_ scenario: Scenario, adapters: [Name], parameters: ScanParameters) {
        self.adapters = adapters
        world = RadioWorld(scenario)
        world.use(Self.times(parameters), at: .zero)
        isDirected = scenario.radios.contains(where: \.isDirected)
        duration = scenario.duration
        packet.reserveCapacity(260)
    }

    var nextDeadline: MonotonicTime {
        guard !isAtEnd else { return .distantFuture }
        let end = MonotonicTime.zero + duration
        return due(min(end, isDirected ? world.nextTime : waiting?.time ?? end))
    }

    var hasEnded: Bool { isAtEnd }

    func start(at now: MonotonicTime, _ receiver: any PacketReceiver) {
        beginning = now
        if !isDirected { waiting = world.next(into: &packet) }
    }

    private func next(at now: MonotonicTime) -> RadioWorld.Occurrence? {
        if isDirected { return world.next(until: .zero + (now - beginning), into: &packet) }
        guard let waiting, due(waiting.time) <= now else { return nil }
        return waiting
    }

    func advance(to now: MonotonicTime, _ receiver: any PacketReceiver) {
        while let occurrence = next(at: now) {
            let adapter = adapters[occurrence.radio]
            let time = due(occurrence.time)
            switch occurrence.kind {
            case .packet: receiver.packet(packet.span, at: time, from: adapter)
            case .activity(let activity):
                receiver.activity(activity, at: time, of: adapter)
                receiver.state(activity == .blind ? .blind : .scanning, at: time, of: adapter)
            }
            if !isDirected { waiting = world.next(into: &packet) }
        }
        let end = due(.zero + duration)
        if waiting == nil, !isAtEnd, end <= now {
            isAtEnd = true
            for adapter in adapters { receiver.state(.ended, at: end, of: adapter) }
        }
    }

    func use(_ parameters: ScanParameters?, at now: MonotonicTime, _ receiver: any PacketReceiver) {
        world.use(parameters.map(Self.times), at: .zero + (now - beginning))
    }

    private static func times(_ parameters: ScanParameters) -> (window: TimeInterval, interval: TimeInterval) {
        (
            TimeInterval(nanoseconds: parameters.window.nanoseconds),
            TimeInterval(nanoseconds: parameters.interval.nanoseconds)
        )
    }

    private func due(_ time: MonotonicTime) -> MonotonicTime {
        beginning + (time - .zero)
    }
}
