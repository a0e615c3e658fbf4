// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import LinuxIO
import SinkKit

/// The verbs that want something of the radios.
extension Agent {
    private enum Keys {
        static let duration = Key<TimeInterval>.duration(
            "duration", default: .seconds(10), in: .milliseconds(100) ... .seconds(3600), "How long to scan.")
        static let profile = Key<String>.text(
            "profile", default: ScanProfile.continuous.name, "The profile to scan with.")
        static let held = Key<String?>.optionalText(
            "profile", example: "\"economy\"", "The profile to hold, or none to hold none any more.")
        static let holding = Key<TimeInterval?>.optionalDuration(
            "duration", in: .milliseconds(100) ... .seconds(7 * 86_400),
            "How long to hold it; if not given, until told otherwise.")
    }

    var scanningVerbs: [Verb] {
        [
            Verb(
                "scan", "Scans for a time, and then tells each beacon that was heard.",
                [Keys.profile.declaration, Keys.duration.declaration]
            ) { [unowned self] values in
                search(values[Keys.profile], for: values[Keys.duration], onlyStrangers: false)
            },
            Verb(
                "discover", "Scans for a time, and then tells each beacon that is not in the configuration.",
                [Keys.profile.declaration, Keys.duration.declaration]
            ) { [unowned self] values in
                search(values[Keys.profile], for: values[Keys.duration], onlyStrangers: true)
            },
            Verb(
                "profile", "Holds a scan profile beside what others hold, and tells which one is in force.",
                [Keys.held.declaration, Keys.holding.declaration]
            ) { [unowned self] values in hold(values[Keys.held], for: values[Keys.holding]) },
        ]
    }

    // MARK: Scans for a time

    private func search(_ profile: String, for duration: TimeInterval, onlyStrangers: Bool) -> VerbAnswer {
        guard let profile = configuration.scan[profile] else { return noProfile(profile) }
        let search = search(profile, for: duration, onlyStrangers: onlyStrangers)
        return .later(duration) { [unowned self] in
            // Present beacons whose report is not due yet were heard all the same.
            road.forEachPresent { event in
                guard let lastSeen = event.lastSeen else { return }
                var event = copy event
                event.kind = .sighting
                event.time = lastSeen
                search.note(event)
            }
            return search.found.map(sightingLine) + [
                { writer in
                    writer.key("profile")
                    writer.string(profile.name)
                    writer.key("duration")
                    writer.decimal(duration.seconds, decimals: 3)
                    writer.key("found")
                    writer.integer(search.found.count)
                    if search.isCut {
                        writer.key("cut")
                        writer.boolean(true)
                    }
                }
            ]
        }
    }

    private func sightingLine(_ event: Event) -> (inout JSONWriter) -> Void {
        var event = event
        timeline.stamp(&event)
        return { [encoder] writer in
            writer.key("beacon")
            encoder.encode(Delivery(role: .sightings, event: event), stream: "", into: &writer)
        }
    }

    // MARK: Profiles

    private func hold(_ name: String?, for duration: TimeInterval?) -> VerbAnswer {
        switch name {
        case nil where duration != nil: return .failed("$.duration: needs a \"profile\" to hold")
        case nil: break
        case "none": changeDemands { $0.release(.command) }
        case let name?:
            guard let profile = configuration.scan[name] else { return noProfile(name) }
            let end = duration.map { now + $0 } ?? .distantFuture
            changeDemands { $0.hold(profile, for: .command, until: end) }
        }
        followDemand()
        return .lines([{ [unowned self] in writeProfile(&$0) }])
    }

    private func noProfile(_ name: String) -> VerbAnswer {
        .failed(Suggestion.complaint(about: name, kind: "profile", in: configuration.scan.profiles.map(\.name)))
    }

    /// The profile in force, who wants it, and what the command holds.
    private func writeProfile(_ writer: inout JSONWriter) {
        writer.key("profile")
        if let profile = directive?.profile { writer.string(profile.name) } else { writer.null() }
        writer.key("holders")
        Self.write(holdersInForce, &writer)
        guard let demand = demands.demand(of: .command), demand.end > now else { return }
        writer.key("held")
        writer.string(demand.profile.name)
        if demand.end != .distantFuture {
            writer.key("held_for")
            writer.decimal((demand.end - now).seconds, decimals: 3)
        }
    }

    private static func write(_ words: [String], _ writer: inout JSONWriter) {
        writer.beginArray()
        for word in words { writer.string(word) }
        writer.endArray()
    }

    /// How answers name who holds a profile.
    func word(_ holder: ScanDemands.Holder) -> String {
        switch holder {
        case .monitoring: "monitoring"
        case .region(let name): "region \(vocabulary.names[name])"
        // Their number says nothing to anybody, and would make an account of each.
        case .timed: "scan"
        case .watching: "watch"
        case .command: "command"
        }
    }

    // MARK: What it costs

    /// One line for each account of the ledger.
    var radioLines: [(inout JSONWriter) -> Void] {
        let ledger = settledAccounts()
        return ledger.accounts.enumerated().map { index, account in
            { writer in
                writer.key("radio")
                writer.beginObject()
                writer.key("profile")
                if let profile = account.profile { writer.string(profile) } else { writer.null() }
                writer.key("holders")
                Self.write(account.holders, &writer)
                writer.key("in_force")
                writer.boolean(index == ledger.current)
                for (key, value) in [
                    ("time", account.time.seconds), ("radio_share", account.radioShare),
                    ("cpu_time", account.processorTime.seconds), ("cpu_share", account.processorShare),
                ] {
                    writer.key(key)
                    writer.decimal(value, decimals: 6)
                }
                writer.endObject()
            }
        }
    }
}
