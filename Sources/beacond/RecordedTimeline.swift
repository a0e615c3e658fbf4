// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// Follows one beacon through the events of a run, as the sink `json` wrote them: what was decided then stays as it was.
struct RecordedTimeline {
    private let formats: FormatCatalog
    private let path: String
    private var timeline: BeaconTimeline?
    private var others: [String] = []
    private var range = BeaconTimeline(identity: "", source: "")
    private var radios: [(time: MonotonicTime, adapter: String, state: String)] = []
    private var regions: [BeaconTimeline.Decision] = []
    private var badLines = 0

    /// Seconds, a year: anybody may have written the file.
    private static let longestExitTime = 31_536_000.0
    /// dBm that a controller can tell.
    private static let strengths = -128.0...127.0
    private static let mostInReport: Int64 = 1_000_000

    /// Times of one moment on the clock of decisions, rounded to milliseconds of the wall clock one after the other.
    private static let sameMoment = TimeInterval.milliseconds(2)

    init(formats: FormatCatalog, path: String) {
        self.formats = formats
        self.path = path
    }

    mutating func timeline(
        of selection: BeaconSelection, in text: [UInt8]
    ) throws(CommandError) -> BeaconTimeline {
        for line in text.split(separator: UInt8(ascii: "\n")) {
            guard let event = try? Document(Array(line)).root, let word = event["event"]?.text,
                let time = event["time"]?.text.flatMap(Self.time)
            else {
                badLines += 1
                continue
            }
            range.extend(to: time)
            take(event, word, time, selection)
        }
        guard range.beginning <= range.end else {
            throw CommandError(
                .noInput,
                "\(path): neither a btsnoop capture nor events of the sink json (docs/events.md), one on a line")
        }
        guard var timeline else { throw ExplainCommand.unknown(selection, among: others, in: path) }
        timeline.extend(to: range.beginning)
        timeline.extend(to: range.end)
        addRadios(to: &timeline)
        // A region that the beacon filled or emptied was told at the same moment, stamped at most a little apart.
        let moments = timeline.decisions.filter { $0.kind == .enter || $0.kind == .exit }.map(\.time)
        timeline.decisions += regions.filter { region in
            moments.contains { abs((region.time - $0).nanoseconds) <= Self.sameMoment.nanoseconds }
        }
        timeline.decisions = timeline.decisions.enumerated()
            .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
        // Files that were put together need not be in order.
        timeline.samples.sort { $0.time < $1.time }
        if badLines > 0 { timeline.notes.append("lines that are no events: \(badLines)") }
        timeline.decisions.append(.init(time: range.end, kind: .end, reason: Self.ending(timeline)))
        return timeline
    }

    private static func ending(_ timeline: BeaconTimeline) -> String {
        for decision in timeline.decisions.reversed() {
            switch decision.kind {
            case .enter, .known: return "present"
            case .unknown: return "unknown: no radio listens"
            case .exit: return "away"
            default: break
            }
        }
        return "away"
    }

    private mutating func take(_ event: Node, _ word: String, _ time: MonotonicTime, _ selection: BeaconSelection) {
        if word == "adapter", let adapter = event["adapter"]?.text, let state = event["state"]?.text {
            radios.append((time, TerminalText.line(adapter), TerminalText.line(state)))
        }
        if word.hasPrefix("region_"), let region = event["region"]?.text {
            let inside = event["inside"]?.integer ?? 0
            regions.append(
                .init(time: time, kind: .region, reason: TerminalText.line("\(word) \(region), \(inside) inside")))
        }
        guard ["sighting", "enter", "exit", "unknown", "known", "clone"].contains(word),
            let identity = ScanRow.identity(of: event, formats)
        else { return }
        guard timeline.map({ $0.identity == identity }) ?? selection.includes(identity, event) else {
            if timeline == nil, others.count < 1000, !others.contains(identity) { others.append(identity) }
            return
        }
        var timeline = timeline ?? BeaconTimeline(identity: identity, source: path)
        timeline.alias = event["alias"]?.text ?? timeline.alias
        take(event, word, time, into: &timeline)
        self.timeline = timeline
    }

    private func take(_ event: Node, _ word: String, _ time: MonotonicTime, into timeline: inout BeaconTimeline) {
        switch word {
        case "enter":
            timeline.decisions.append(.init(time: time, kind: .enter, reason: "heard often enough"))
        case "exit":
            let rule = event["exit_time"]?.number.map {
                BeaconTimeline.ExitRule(
                    time: min(max($0, 0), Self.longestExitTime),
                    limit: TerminalText.line(event["limited_by"]?.text ?? "-"))
            }
            var falseExits: (asked: Double, expected: Double)?
            if let asked = event["false_exits_asked"]?.number, let expected = event["false_exits_expected"]?.number {
                falseExits = (asked, expected)
            }
            let reason = BeaconTimeline.exitReason(
                event["reason"]?.text ?? "timeout", silentSince: event["last_seen"]?.text.flatMap(Self.time), at: time,
                falseExits: falseExits)
            timeline.decisions.append(.init(time: time, kind: .exit, exit: rule, reason: reason))
            return
        case "unknown":
            timeline.decisions.append(.init(time: time, kind: .unknown, reason: BeaconTimeline.unknownReason))
            return
        case "known":
            timeline.decisions.append(.init(time: time, kind: .known, reason: BeaconTimeline.knownReason))
            return
        case "clone":
            timeline.decisions.append(.init(time: time, kind: .clone, reason: "two devices send this identity"))
            return
        default: break
        }
        var strengths: ClosedRange<Int>?
        if let low = event["rssi_min"]?.integer, let high = event["rssi_max"]?.integer, low <= high,
            (-128...127).contains(low), (-128...127).contains(high)
        {
            strengths = Int(low)...Int(high)
        }
        timeline.samples.append(
            .init(
                time: time, strengths: strengths,
                filtered: event["rssi_filtered"]?.number.flatMap { Self.strengths.contains($0) ? $0 : nil },
                count: Int(min(max(event["count"]?.integer ?? 1, 0), Self.mostInReport)),
                adapter: TerminalText.line(event["adapter"]?.text ?? "-"), exit: nil))
    }

    private func addRadios(to timeline: inout BeaconTimeline) {
        var states: [String: String] = [:]
        var blindSince: MonotonicTime?
        for (time, adapter, state) in radios {
            states[adapter] = state
            let listens = states.values.contains("scanning")
            if !listens, blindSince == nil { blindSince = time }
            if listens, let since = blindSince {
                timeline.blindTimes.append(min(since, time)...time)
                blindSince = nil
            }
            timeline.decisions.append(
                .init(
                    time: time, kind: .radio,
                    reason: "\(adapter) \(state)\(listens ? "" : "; no radio listens, and silence does not count")"))
        }
        if let since = blindSince { timeline.blindTimes.append(since...max(since, timeline.end)) }
    }

    /// A moment as the sinks write it: `2026-11-30T21:09:00.123Z`.
    static func time(_ text: String) -> MonotonicTime? {
        let octets = Array(text.utf8)
        func number(_ start: Int, _ count: Int) -> Int64? {
            guard start + count <= octets.count else { return nil }
            return Int64(String(decoding: octets[start..<start + count], as: UTF8.self))
        }
        guard octets.count >= 20, octets.last == UInt8(ascii: "Z"), let year = number(0, 4), let month = number(5, 2),
            let day = number(8, 2), let hour = number(11, 2), let minute = number(14, 2), let second = number(17, 2),
            (1...12).contains(month), (1...31).contains(day), (0...24).contains(hour), (0...60).contains(minute),
            (0...60).contains(second), (0...9999).contains(year)
        else { return nil }
        var milliseconds: Int64 = 0
        if octets.count >= 24, octets[19] == UInt8(ascii: ".") { milliseconds = number(20, 3) ?? 0 }
        // Counted from March, so that a leap day ends a year; 1970-01-01 is day 719,468.
        let shifted = month > 2 ? year : year - 1
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
        return .zero + .milliseconds(seconds * 1000 + milliseconds)
    }
}
