// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import SinkKit
import SinkRuntime
import Store

/// The sinks of a run: each with its worker, and the outbox from which the durable ones read.
final class SinkSet {
    struct Context {
        var gateway: String
        var vocabulary: Vocabulary
        var version: String
        var registry: SinkRegistry
        var log: Log
        /// nil when transitions need not outlive the process.
        var store: Store?
        /// Where requests that sinks are sent go.
        var commands: CommandReceiver
        /// What the configuration in force names.
        var inventory: InventoryBoard
        /// Called on a worker's thread when the reader of a sink went away.
        var onFinished: @Sendable () -> Void
    }

    private let context: Context
    private var members: [(instance: AgentConfiguration.SinkInstance, worker: SinkWorker)] = []
    private var keepsTransitions = false

    init(_ context: Context) { self.context = context }

    func start(_ instances: [AgentConfiguration.SinkInstance]) throws(SystemError) {
        for instance in instances {
            guard let registration = context.registry[instance.kind] else { continue }
            let log = context.log
            let sinkContext = SinkContext(
                name: instance.name, gateway: context.gateway, vocabulary: context.vocabulary,
                version: context.version, log: { log($0, "sink \(instance.name): \($1)") }, isStopping: { false },
                now: { Clock.now }, commands: context.commands, inventory: context.inventory)
            let worker = try SinkWorker(
                registration: registration, configuration: instance.values, context: sinkContext,
                queueCapacity: instance.queueCapacity, source: context.store, onFinished: context.onFinished)
            members.append((instance, worker))
            keepsTransitions = keepsTransitions || registration.descriptor.isDurable && context.store != nil
            try worker.start()
        }
        // Nothing is kept for a sink that is no longer configured.
        for sink in context.store?.knownSinks ?? [] where !members.contains(where: { $0.worker.name == sink }) {
            context.store?.forget(sink: sink)
        }
    }

    /// Keeps the sinks whose configuration is the same, ends the others, and starts what is new with the present states.
    func change(
        to instances: [AgentConfiguration.SinkInstance], states: ((borrowing Event) -> Void) -> Void
    ) throws(SystemError) {
        let old = members
        members = old.filter { member in instances.contains { $0 == member.instance } }
        Self.stop(
            old.filter { member in !instances.contains { $0 == member.instance } }.map(\.worker), within: .seconds(1))
        let kept = members.map(\.worker.name)
        try start(instances.filter { !kept.contains($0.name) })
        for member in members where !kept.contains(member.worker.name) {
            states { member.worker.prime($0) }
        }
    }

    /// Hands an event to every sink that wants it; never waits.
    func offer(_ event: Event) {
        // A stranger is worth no record: a flood of made-up beacons must not reach the disk.
        var position: UInt64 = 0
        if keepsTransitions, event.isTransition, event.identity == nil || event.isConfigured {
            position = context.store?.append(event, opensTurn: true) ?? 0
        }
        for member in members { member.worker.offer(event, at: position) }
    }

    /// Makes a state known that no transition led to.
    func prime(_ event: borrowing Event) {
        for member in members { member.worker.prime(event) }
    }

    func reopen() {
        for member in members { member.worker.reopen() }
    }

    func stop(within time: TimeInterval) {
        Self.stop(members.map(\.worker), within: time)
        members = []
    }

    /// How one sink fares.
    struct Account {
        var name: String
        var kind: String
        var counters: SinkCounters
    }

    var accounts: [Account] {
        members.map { Account(name: $0.worker.name, kind: $0.instance.kind, counters: $0.worker.counters) }
    }

    /// One line: each sink with its state.
    var summary: String {
        accounts.map { "\($0.name) \($0.counters.state.word)" }.joined(separator: ", ")
    }

    private static func stop(_ workers: [SinkWorker], within time: TimeInterval) {
        let deadline = Clock.now + time
        for worker in workers { worker.stop(deadline: deadline) }
        for worker in workers { _ = worker.join() }
    }
}
