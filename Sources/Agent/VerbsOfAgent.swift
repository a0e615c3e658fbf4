// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import HCI
import LinuxIO
import SinkKit
import SinkRuntime

/// What became of each adapter, for those who ask.
struct AdapterStates {
    private(set) var adapters: [(name: Name, state: Event.AdapterState, reason: String?)] = []

    /// A state that is well again forgets why it was not.
    mutating func note(_ state: Event.AdapterState, of name: Name) {
        let isWell = state == .scanning || state == .ended
        if let place = adapters.firstIndex(where: { $0.name == name }) {
            adapters[place].state = state
            if isWell { adapters[place].reason = nil }
        } else {
            adapters.append((name, state, nil))
        }
    }

    mutating func note(failure reason: String, of name: Name) {
        if let place = adapters.firstIndex(where: { $0.name == name }) {
            adapters[place].reason = reason
        } else {
            adapters.append((name, .failed, reason))
        }
    }
}

extension Agent {
    private enum Keys {
        /// Of 10,000 beacons the answer has some 5 MB.
        static let beacons = Key<Int64>.integer(
            "beacons", default: 1000, in: 0...10_000, "Present beacons that are told of at most, configured ones first."
        )
        static let duration = Key<TimeInterval>.duration(
            "duration", default: .seconds(10), in: .milliseconds(100) ... .seconds(3600), "How long to watch.")
        static let events = Key<String>.choice(
            "events", default: EventWish.all.rawValue, of: EventWish.allCases.map(\.rawValue), "What to watch.")
    }

    /// What this daemon can be asked and told.
    var verbs: VerbTable {
        VerbTable([
            Verb(
                "state", "Tells the present beacons, the regions, the adapters and the sinks.",
                [Keys.beacons.declaration]
            ) { [unowned self] values in .lines(stateLines(beacons: Int(values[Keys.beacons]))) },
            Verb("health", "Tells whether the gateway does its work, and if not, why.") { [unowned self] _ in
                .lines([healthLine])
            },
            Verb(
                "watch", "Sends events as they happen, for a time.",
                [Keys.duration.declaration, Keys.events.declaration]
            ) { values in
                .events(EventWish(rawValue: values[Keys.events]) ?? .all, values[Keys.duration])
            },
            Verb("reload", "Reads the configuration again; a bad file changes nothing.") { [unowned self] _ in
                switch reload() {
                case .done: .lines([{ _ in }])
                case .failed(let reason): .failed(reason)
                }
            },
        ])
    }

    // MARK: State

    private func stateLines(beacons limit: Int) -> [(inout JSONWriter) -> Void] {
        var configured: [Event] = []
        var strangers: [Event] = []
        road.forEachPresent { event in
            // Room for as many of each kind as may be told at all.
            if event.isConfigured {
                if configured.count < limit { configured.append(copy event) }
            } else if strangers.count < limit {
                strangers.append(copy event)
            }
        }
        let encoder = encoder
        let names = vocabulary.names
        var lines: [(inout JSONWriter) -> Void] = (configured + strangers).prefix(limit).map { event in
            var event = event
            timeline.stamp(&event)
            return { writer in
                writer.key("beacon")
                encoder.encodeState(event, into: &writer)
            }
        }
        road.forEachRegion { name, inside in
            lines.append { writer in
                writer.key("region")
                writer.beginObject()
                writer.key("region")
                writer.string(names[name])
                writer.key("state")
                writer.string(inside > 0 ? "inside" : "outside")
                writer.key("inside")
                writer.integer(inside)
                writer.endObject()
            }
        }
        for adapter in adapterStates.adapters {
            lines.append { writer in
                writer.key("adapter")
                writer.beginObject()
                writer.key("adapter")
                writer.string(names[adapter.name])
                writer.key("state")
                writer.string(adapter.state.word)
                if let reason = adapter.reason {
                    writer.key("reason")
                    writer.string(reason)
                }
                writer.endObject()
            }
        }
        for account in sinks.accounts {
            lines.append { writer in
                writer.key("sink")
                Self.write(account, &writer)
            }
        }
        lines.append { [unowned self] in writeGateway(&$0) }
        return lines
    }

    private func writeGateway(_ writer: inout JSONWriter) {
        writer.key("gateway")
        writer.string(gateway)
        writer.key("version")
        writer.string(setup.version)
        writer.key("v")
        writer.integer(EventEncoder.version)
        writer.key("uptime")
        writer.decimal((Clock.now - beginning).seconds, decimals: 3)
        for (key, value) in [("present", road.presentCount), ("tracked", road.trackedCount)] {
            writer.key(key)
            writer.integer(value)
        }
        for (key, value) in [
            ("packets", road.packetCount), ("reports", road.reportCount), ("sightings", road.sightingCount),
        ] {
            writer.key(key)
            writer.integer(value)
        }
        writer.key("malformed")
        writer.beginObject()
        for reason in MalformedReason.allCases where road.malformed[reason] > 0 {
            writer.key(reason.word)
            writer.integer(road.malformed[reason])
        }
        writer.endObject()
    }

    private static func write(_ account: SinkSet.Account, _ writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("sink")
        writer.string(account.name)
        writer.key("kind")
        writer.string(account.kind)
        writer.key("state")
        writer.string(account.counters.state.word)
        if let error = account.counters.lastError {
            writer.key("last_error")
            writer.string(error)
        }
        writer.key("connections")
        writer.integer(account.counters.connections)
        for (role, counts) in [
            ("states", account.counters.states), ("transitions", account.counters.transitions),
            ("sightings", account.counters.sightings),
        ] where counts.offered > 0 {
            writer.key(role)
            writer.beginObject()
            for (word, count) in [
                ("offered", counts.offered), ("written", counts.written), ("rejected", counts.rejected),
                ("dropped", counts.dropped), ("conflated", counts.conflated), ("in_flight", counts.inFlight),
                ("queued", counts.queued),
            ] {
                writer.key(word)
                writer.integer(count)
            }
            writer.endObject()
        }
        writer.endObject()
    }

    // MARK: Health

    /// One sentence for each thing that is not as it should be.
    private var troubles: [String] {
        var troubles: [String] = []
        for adapter in adapterStates.adapters where adapter.state != .scanning && adapter.state != .ended {
            let reason = adapter.reason.map { ": \($0)" } ?? ""
            troubles.append("\(vocabulary.names[adapter.name]) is \(adapter.state.word)\(reason)")
        }
        for account in sinks.accounts where account.counters.state != .open {
            let reason = account.counters.lastError.map { ": \($0)" } ?? ""
            troubles.append("sink \(account.name) is \(account.counters.state.word)\(reason)")
        }
        if !storeIsAlive { troubles.append("the store's writer is stuck") }
        return troubles
    }

    private var healthLine: (inout JSONWriter) -> Void {
        let troubles = troubles
        return { writer in
            writer.key("healthy")
            writer.boolean(troubles.isEmpty)
            writer.key("troubles")
            writer.beginArray()
            for trouble in troubles { writer.string(trouble) }
            writer.endArray()
        }
    }
}

extension SinkState {
    var word: String {
        switch self {
        case .starting: "starting"
        case .open: "open"
        case .waiting: "waiting"
        case .failed: "failed"
        case .finished: "finished"
        }
    }
}
