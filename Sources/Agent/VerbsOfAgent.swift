// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import HCI
import LinuxIO
import Presence
import Scanner
import SinkKit
import SinkRuntime
import Store

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

    func reason(of name: Name) -> String? { adapters.first { $0.name == name }?.reason }

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
        static let beacon = Key<String?>.optionalText(
            "beacon", "The beacon to tell of, by its alias or its identity, as beacond scan shows it.")
        static let region = Key<String?>.optionalText("region", "The region to tell of.")
        static let events = Key<String>.choice(
            "events", default: EventWish.all.rawValue, of: EventWish.allCases.map(\.rawValue), "What to watch.")
    }

    /// What this daemon can be asked and told.
    var verbs: VerbTable {
        VerbTable(
            [
                Verb(
                    "state",
                    "Tells the present beacons, the regions, the adapters, the use of the radios and the sinks.",
                    [Keys.beacons.declaration, Keys.beacon.declaration, Keys.region.declaration]
                ) { [unowned self] values in
                    if let beacon = values[Keys.beacon] { return state(ofBeacon: beacon) }
                    if let region = values[Keys.region] { return state(ofRegion: region) }
                    return .lines(stateLines(beacons: Int(values[Keys.beacons])))
                },
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
            ] + scanningVerbs + approvalVerbs)
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
        let names = vocabulary.names
        var lines = (configured + strangers).prefix(limit).map(beaconLine)
        road.forEachRegion { lines.append(regionLine($0, inside: $1)) }
        let counts = Dictionary(sources.compactMap(\.scannerCounts)) { first, _ in first }
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
                if let counts = counts[adapter.name] { Self.write(counts, &writer) }
                writer.endObject()
            }
        }
        lines += radioLines
        for account in sinks.accounts {
            lines.append { writer in
                writer.key("sink")
                Self.write(account, &writer)
            }
        }
        lines.append { [unowned self] in writeGateway(&$0) }
        return lines
    }

    private func beaconLine(_ event: Event) -> (inout JSONWriter) -> Void {
        var event = event
        timeline.stamp(&event)
        return { [encoder] writer in
            writer.key("beacon")
            encoder.encodeState(event, into: &writer)
        }
    }

    private func regionLine(_ name: Name, inside: UInt32) -> (inout JSONWriter) -> Void {
        let isUnknown = road.isUnknown(region: name)
        return { [names = vocabulary.names] writer in
            writer.key("region")
            writer.beginObject()
            writer.key("region")
            writer.string(names[name])
            writer.key("state")
            writer.string(isUnknown ? "unknown" : inside > 0 ? "inside" : "outside")
            writer.key("inside")
            writer.integer(inside)
            if isUnknown {
                writer.key("reason")
                writer.string("blind")
            }
            writer.endObject()
        }
    }

    /// The beacon if it is present, and the gateway.
    private func state(ofBeacon text: String) -> VerbAnswer {
        var found: [Event] = []
        road.forEachPresent { event in
            let isMeant = event.identity.map { vocabulary.formats.isText(text, of: $0) } ?? false
            if isMeant || vocabulary.names[event.name] == text { found.append(copy event) }
        }
        let aliases = configuration.beacons.map { vocabulary.names[$0.alias] }.filter { !$0.isEmpty }
        // What looks like an identity may be that of a beacon that nobody knows yet.
        guard !found.isEmpty || aliases.contains(text) || text.contains("/") else {
            return .failed(Suggestion.complaint(about: text, kind: "beacon", in: aliases))
        }
        return .lines(found.map(beaconLine) + [{ [unowned self] in writeGateway(&$0) }])
    }

    private func state(ofRegion text: String) -> VerbAnswer {
        var lines: [(inout JSONWriter) -> Void] = []
        var known: [String] = []
        road.forEachRegion { name, inside in
            known.append(vocabulary.names[name])
            if known.last == text { lines.append(regionLine(name, inside: inside)) }
        }
        guard !lines.isEmpty else { return .failed(Suggestion.complaint(about: text, kind: "region", in: known)) }
        return .lines(lines + [{ [unowned self] in writeGateway(&$0) }])
    }

    private static func write(_ counts: AdapterScanner.Counts, _ writer: inout JSONWriter) {
        for (key, count) in [
            ("stolen_scans", counts.stolenScans), ("restarts", counts.restarts), ("resets", counts.resets),
            ("suspensions", counts.suspensions),
            ("dropped_packets", counts.droppedPackets), ("unknown_packets", counts.unknownPackets),
        ] {
            writer.key(key)
            writer.integer(count)
        }
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
            ("refused_commands", commands.refusals),
        ] {
            writer.key(key)
            writer.integer(value)
        }
        writer.key("outbox")
        writer.beginObject()
        writer.key("stream")
        writer.string(store.stream)
        let counts = store.counters
        for (key, count) in [
            ("committed", counts.committed), ("pending", counts.pending), ("in_memory", counts.inMemory),
            ("dropped", counts.dropped), ("expired", counts.expired), ("damaged", counts.damaged),
            ("commits", counts.commits), ("failed_commits", counts.failedCommits), ("written", counts.written),
        ] {
            writer.key(key)
            writer.integer(count)
        }
        writer.endObject()
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
    var troubles: [String] {
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
        if let trouble = store.trouble { troubles.append("transitions are in memory only: \(trouble)") }
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
