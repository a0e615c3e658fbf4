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

/// Follows one beacon through a capture or a recording of sightings, on the road that the daemon has.
struct CaptureTimeline {
    private let configuration: AgentConfiguration
    private let names: NameTable
    private let path: String
    private let input: Replay.Input

    /// - Parameter configuration: its presence settings decide as they would in the daemon.
    init(_ configuration: AgentConfiguration, names: NameTable, path: String, isRecording: Bool) {
        var configuration = configuration
        // It only says how often is told what is decided in any case.
        configuration.presence.reportInterval = .zero
        self.configuration = configuration
        self.names = names
        self.path = path
        input = isRecording ? .recording(path: path) : .capture(path: path)
    }

    func timeline(of selection: BeaconSelection) throws(CommandError) -> BeaconTimeline {
        let (identity, event) = try find(selection)
        let formats = configuration.decoder.catalog
        var timeline = BeaconTimeline(identity: ScanRow.identity(of: event, formats) ?? selection.text, source: path)
        timeline.alias = event["alias"]?.text
        if case .capture = input {
            timeline.notes.append("a capture does not say when the radio paused: it counts as listening all the time")
        }
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
            _ = try Replay(configuration, names: names, input: input).run(everySighting: true) { event in
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

    /// Where the story is.
    private struct Progress: ~Copyable {
        var road: Road
        var last = MonotonicTime.zero
        var insight: BeaconInsight?
    }

    private func follow(_ identity: BeaconIdentity, into timeline: inout BeaconTimeline) throws(CommandError) {
        var progress = Progress(road: Road(configuration))
        switch input {
        case .capture(let path): try follow(identity, capture: path, &progress, &timeline)
        case .recording(let path): try follow(identity, recording: path, &progress, &timeline)
        }
        timeline.decisions.append(ending(progress.insight, at: progress.last))
    }

    private func follow(
        _ identity: BeaconIdentity, capture path: String, _ progress: inout Progress, _ timeline: inout BeaconTimeline
    ) throws(CommandError) {
        let name = SourceSpecification.capture(path: path).adapterName
        let adapter = names.intern(name)
        do {
            var reader = try CaptureReader(path: path)
            while true {
                let found = try reader.next { _, time, packet in
                    begin(identity, at: time, &progress, &timeline)
                    let (before, last) = (progress.insight, progress.last)
                    progress.road.receive(packet, at: last, from: adapter) { take($0, identity, before, &timeline) }
                    finish(identity, by: name, &progress, &timeline)
                }
                if !found { break }
            }
            if reader.endedEarly { timeline.notes.append("the capture ends in the middle of a record") }
        } catch {
            guard progress.road.packetCount > 0 else { throw CommandError(.noInput, error.description) }
            timeline.notes.append(error.description)
        }
    }

    private func follow(
        _ identity: BeaconIdentity, recording path: String, _ progress: inout Progress, _ timeline: inout BeaconTimeline
    ) throws(CommandError) {
        do {
            var recording = try Recording(path: path, formats: configuration.decoder.catalog, names: names)
            while let line = try recording.next() {
                begin(identity, at: line.time, &progress, &timeline)
                let before = progress.insight
                switch line.content {
                case .sighting(let sighting):
                    progress.road.observe(sighting) { take($0, identity, before, &timeline) }
                    finish(identity, by: names[sighting.adapter], &progress, &timeline)
                case .radio(let name, let activity):
                    timeline.decisions.append(
                        .init(time: line.time, kind: .radio, reason: "\(names[name]) \(Self.text(activity))"))
                    progress.road.radio(name, activity, at: line.time) { take($0, identity, before, &timeline) }
                case .moment: progress.road.tick(line.time) { take($0, identity, before, &timeline) }
                }
                progress.insight = progress.road.insight(of: identity)
            }
        } catch { throw CommandError(.noInput, error.description) }
    }

    private static func text(_ activity: RadioActivity) -> String {
        switch activity {
        case .scanning(let window, let interval) where window == interval: "listens without pause"
        case .scanning(let window, let interval):
            "listens \(TerminalText.interval(window)) of \(TerminalText.interval(interval))"
        case .paused: "pauses"
        case .blind: "is blind"
        }
    }

    /// Time passes, and with it what was due.
    private func begin(
        _ identity: BeaconIdentity, at time: MonotonicTime, _ progress: inout Progress, _ timeline: inout BeaconTimeline
    ) {
        // A clock that was set back while it recorded: time never runs backwards.
        progress.last = max(progress.last, time)
        let last = progress.last
        timeline.extend(to: last)
        guard let before = progress.insight, let deadline = before.deadline, deadline <= last else { return }
        progress.road.tick(last) { take($0, identity, before, &timeline) }
        progress.insight = progress.road.insight(of: identity)
        if before.state == .candidate, progress.insight?.state != .candidate {
            timeline.decisions.append(forgotten(before, at: deadline))
        }
    }

    /// Notes what a sighting changed.
    private func finish(
        _ identity: BeaconIdentity, by adapter: String, _ progress: inout Progress, _ timeline: inout BeaconTimeline
    ) {
        let before = progress.insight
        progress.insight = progress.road.insight(of: identity)
        guard let now = progress.insight, now.lastSeen != before?.lastSeen else { return }
        if now.state == .candidate, before?.state != .candidate { timeline.decisions.append(firstHeard(now)) }
        timeline.samples.append(
            BeaconTimeline.Sample(
                time: now.lastSeen, strengths: now.signal.last.map { Int($0)...Int($0) },
                filtered: now.signal.filtered.map(Double.init), count: 1, adapter: adapter, exit: rule(now)))
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
