// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import HCI
import LinuxIO
import Presence
import Scanner
import SinkKit

/// Follows one beacon through a capture, on the road that the daemon has.
struct CaptureTimeline {
    private let configuration: AgentConfiguration
    private let names: NameTable
    private let path: String

    /// - Parameter configuration: its presence settings decide as they would in the daemon.
    init(_ configuration: AgentConfiguration, names: NameTable, path: String) {
        var configuration = configuration
        // It only says how often is told what is decided in any case.
        configuration.presence.reportInterval = .zero
        self.configuration = configuration
        self.names = names
        self.path = path
    }

    func timeline(of selection: BeaconSelection) throws(CommandError) -> BeaconTimeline {
        let (identity, event) = try find(selection)
        let formats = configuration.decoder.catalog
        var timeline = BeaconTimeline(identity: ScanRow.identity(of: event, formats) ?? selection.text, source: path)
        timeline.alias = event["alias"]?.text
        timeline.notes.append("a capture does not say when the radio paused: it counts as listening all the time")
        try follow(identity, into: &timeline)
        return timeline
    }

    /// The first beacon in the capture that is meant, with one of its sightings.
    private func find(_ selection: BeaconSelection) throws(CommandError) -> (BeaconIdentity, Node) {
        let catalog = configuration.decoder.catalog
        let encoder = EventEncoder(gateway: "", vocabulary: Vocabulary(formats: catalog, names: names))
        var writer = JSONWriter()
        var found: (BeaconIdentity, Node)?
        var seen: Set<BeaconIdentity> = []
        var others: [String] = []
        do throws(AgentError) {
            _ = try Replay(configuration, names: names, input: .capture(path: path)).run(everySighting: true) { event in
                guard let identity = event.identity, seen.insert(identity).inserted else { return true }
                writer.reset()
                encoder.encode(Delivery(role: .sightings, event: copy event), stream: "", into: &writer)
                guard let node = try? Document(writer.bytes).root, let name = ScanRow.identity(of: node, catalog) else {
                    return true
                }
                others.append(name)
                if selection.includes(name, node) { found = (identity, node) }
                return found == nil
            }
        } catch { throw CommandError(error) }
        guard let found else { throw ExplainCommand.unknown(selection, among: others, in: path) }
        return found
    }

    private func follow(_ identity: BeaconIdentity, into timeline: inout BeaconTimeline) throws(CommandError) {
        var road = Road(configuration)
        let adapter = names.intern(SourceSpecification.capture(path: path).adapterName)
        var last = MonotonicTime.zero
        var insight: BeaconInsight?
        do {
            var reader = try CaptureReader(path: path)
            while true {
                let found = try reader.next { _, time, packet in
                    // A clock that was set back while it recorded: time never runs backwards.
                    last = max(last, time)
                    timeline.extend(to: last)
                    if let before = insight, let deadline = before.deadline, deadline <= last {
                        road.tick(last) { self.take($0, identity, before, &timeline) }
                        insight = road.insight(of: identity)
                        if before.state == .candidate, insight?.state != .candidate {
                            timeline.decisions.append(self.forgotten(before, at: deadline))
                        }
                    }
                    let before = insight
                    road.receive(packet, at: last, from: adapter) { self.take($0, identity, before, &timeline) }
                    insight = road.insight(of: identity)
                    guard let now = insight, now.lastSeen != before?.lastSeen else { return }
                    if now.state == .candidate, before?.state != .candidate {
                        timeline.decisions.append(self.firstHeard(now))
                    }
                    timeline.samples.append(self.sample(now))
                }
                if !found { break }
            }
            if reader.endedEarly { timeline.notes.append("the capture ends in the middle of a record") }
        } catch {
            guard road.packetCount > 0 else { throw CommandError(.noInput, error.description) }
            timeline.notes.append(error.description)
        }
        timeline.decisions.append(ending(insight, at: last))
    }

    private func sample(_ insight: BeaconInsight) -> BeaconTimeline.Sample {
        BeaconTimeline.Sample(
            time: insight.lastSeen, strengths: insight.signal.last.map { Int($0)...Int($0) },
            filtered: insight.signal.filtered.map(Double.init), count: 1,
            adapter: SourceSpecification.capture(path: path).adapterName, exit: rule(insight))
    }

    private func rule(_ insight: BeaconInsight) -> BeaconTimeline.ExitRule? {
        insight.state == .present
            ? BeaconTimeline.ExitRule(time: insight.exitTime.seconds, limit: insight.limit.word) : nil
    }

    private func firstHeard(_ insight: BeaconInsight) -> BeaconTimeline.Decision {
        let count = configuration.presence.enterCount
        return BeaconTimeline.Decision(
            time: insight.lastSeen, kind: .heard,
            reason: "a candidate: enters with its sighting number \(count)")
    }

    private func forgotten(_ insight: BeaconInsight, at time: MonotonicTime) -> BeaconTimeline.Decision {
        BeaconTimeline.Decision(
            time: time, kind: .forgotten,
            reason: "too few sightings to enter, then silent for "
                + "\(TerminalText.number((time - insight.lastSeen).seconds)) s (enter_gap)")
    }

    /// What is decided about the beacon, and about the regions that it belongs to.
    private func take(
        _ event: borrowing Event, _ identity: BeaconIdentity, _ insight: BeaconInsight?,
        _ timeline: inout BeaconTimeline
    ) {
        func add(_ kind: BeaconTimeline.Kind, _ reason: String, exit: BeaconTimeline.ExitRule? = nil) {
            timeline.decisions.append(.init(time: event.time, kind: kind, exit: exit, reason: reason))
        }
        let name = event.name
        switch event.kind {
        case .enter where event.identity == identity:
            // The sighting that made it enter at once is the first one too.
            add(.enter, insight?.state == .candidate ? "heard often enough" : "heard")
        case .exit where event.identity == identity:
            let falseExits = event.falseExits.map {
                (asked: Double($0.asked) * 86_400, expected: Double($0.expected) * 86_400)
            }
            add(
                .exit,
                BeaconTimeline.exitReason(
                    event.exitReason.word, silentSince: event.lastSeen, at: event.time, falseExits: falseExits),
                exit: .init(time: event.exitTime.seconds, limit: event.exitLimit.word))
        case .unknown where event.identity == identity: add(.unknown, BeaconTimeline.unknownReason)
        case .known where event.identity == identity: add(.known, BeaconTimeline.knownReason)
        case .clone where event.identity == identity:
            add(.clone, "two devices send this identity")
        case .regionEnter, .regionExit, .regionUnknown, .regionKnown:
            guard
                configuration.regions.contains(where: {
                    $0.name == name && $0.patterns.contains { $0.matches(identity) }
                })
            else { return }
            add(.region, "\(event.kind.word) \(names[name]), \(event.insideCount) inside")
        default: break
        }
    }

    private func ending(_ insight: BeaconInsight?, at time: MonotonicTime) -> BeaconTimeline.Decision {
        var text: String
        switch insight?.state {
        case nil: text = "not tracked"
        case .candidate: text = "a candidate that has not entered"
        case .away: text = "away"
        case .unknown: text = "unknown: no radio listens"
        case .present: text = "present"
        }
        if let insight {
            if insight.state == .present, let deadline = insight.deadline {
                text += ", leaves at \(BeaconTimeline.clock(deadline)) if it is not heard"
            }
            if let interval = insight.advertisingInterval {
                text += "; learned: an advertisement every \(TerminalText.interval(interval))"
                if let loss = insight.loss {
                    text += ", of which \(TerminalText.number(loss * 100, decimals: 0)) % are not heard"
                }
            }
        }
        return .init(time: time, kind: .end, exit: insight.flatMap(rule), reason: text)
    }
}
