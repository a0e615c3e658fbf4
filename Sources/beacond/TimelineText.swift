// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// A timeline as a table: what was decided, and between two decisions how the beacon was heard.
struct TimelineText {
    /// A silence of this share of the exit time in force is worth a row.
    private static let notableShare = 0.5

    private let timeline: BeaconTimeline
    private var rows = [["TIME", "WHAT", "SIGNAL", "EXIT TIME", "WHY"]]

    init(_ timeline: BeaconTimeline) {
        self.timeline = timeline
        var heard: [BeaconTimeline.Sample] = []
        var samples = timeline.samples[...]
        for decision in timeline.decisions {
            while let sample = samples.first, sample.time <= decision.time {
                // A silence that nearly made an exit stands by itself.
                if let last = heard.last, let rule = last.exit,
                    (sample.time - last.time).seconds >= rule.time * Self.notableShare
                {
                    addHeard(&heard)
                    addSilence(from: last.time, to: sample.time, rule)
                }
                heard.append(sample)
                samples.removeFirst()
            }
            if decision.kind == .heard { heard.removeAll() } else { addHeard(&heard) }
            let last = timeline.samples.last { $0.time <= decision.time }
            let strength =
                switch decision.kind {
                case .heard, .enter: last.flatMap(Self.strength) ?? "-"
                default: ""
                }
            let rule = decision.exit ?? (decision.kind == .enter ? last?.exit : nil)
            rows.append([
                BeaconTimeline.clock(decision.time), decision.kind.rawValue, strength, rule.map(Self.words) ?? "",
                decision.reason,
            ])
        }
    }

    /// What was heard since the last row.
    private mutating func addHeard(_ samples: inout [BeaconTimeline.Sample]) {
        defer { samples.removeAll() }
        // A single sighting is that of the decision itself.
        guard let first = samples.first, let last = samples.last, samples.count > 1 else { return }
        let count = samples.reduce(0) { $0 + $1.count }
        let silence = zip(samples, samples.dropFirst()).reduce(0) { max($0, ($1.1.time - $1.0.time).seconds) }
        rows.append([
            BeaconTimeline.clock(first.time), "heard", Self.range(samples), Self.exitTimes(first.exit, last.exit),
            "\(count) advertisements in \(Self.seconds((last.time - first.time).seconds)), "
                + "longest silence \(Self.seconds(silence))",
        ])
    }

    private mutating func addSilence(
        from beginning: MonotonicTime, to end: MonotonicTime, _ rule: BeaconTimeline.ExitRule
    ) {
        let silence = (end - beginning).seconds
        let share = TerminalText.number(silence / rule.time * 100, decimals: 0)
        rows.append([
            BeaconTimeline.clock(beginning), "silence", "", Self.words(rule),
            "\(Self.seconds(silence)), \(share) % of the exit time",
        ])
    }

    private static func strength(_ sample: BeaconTimeline.Sample) -> String? {
        sample.strengths.map { $0.count == 1 ? "\($0.lowerBound) dBm" : "\($0.lowerBound) to \($0.upperBound) dBm" }
    }

    private static func range(_ samples: [BeaconTimeline.Sample]) -> String {
        let strengths = samples.compactMap(\.strengths)
        guard let low = strengths.map(\.lowerBound).min(), let high = strengths.map(\.upperBound).max() else {
            return "-"
        }
        let filtered = samples.last { $0.filtered != nil }?.filtered
        let ending = filtered.map { ", filtered \(TerminalText.number($0, decimals: 0))" } ?? ""
        return "\(low) to \(high) dBm\(ending)"
    }

    private static func words(_ rule: BeaconTimeline.ExitRule) -> String { "\(seconds(rule.time)) (\(rule.limit))" }

    private static func exitTimes(_ first: BeaconTimeline.ExitRule?, _ last: BeaconTimeline.ExitRule?) -> String {
        guard let last else { return "" }
        guard let first, first != last else { return words(last) }
        return "\(seconds(first.time)) to \(words(last))"
    }

    private static func seconds(_ value: Double) -> String { "\(TerminalText.number(value)) s" }

    /// What stands above the table.
    static func title(_ timeline: BeaconTimeline) -> [String] {
        let count = timeline.samples.reduce(0) { $0 + $1.count }
        let stays = timeline.stays
        let present = stays.reduce(0) { $0 + ($1.upperBound - $1.lowerBound).seconds }
        let times = stays.count == 1 ? "once" : "\(stays.count) times"
        return [
            TerminalText.line(timeline.alias.map { "\($0)  (\(timeline.identity))" } ?? timeline.identity),
            "\(TerminalText.line(timeline.source)): \(BeaconTimeline.date(timeline.beginning)) "
                + "\(BeaconTimeline.clock(timeline.beginning, milliseconds: false)) to "
                + "\(BeaconTimeline.clock(timeline.end, milliseconds: false)) UTC, "
                + "\(seconds(timeline.seconds(timeline.end)))",
            "\(count) advertisements heard; present \(times), \(seconds(present)) in all",
        ]
    }

    var text: String {
        let widths = rows[0].indices.map { column in rows.map { $0[column].unicodeScalars.count }.max() ?? 0 }
        var text = Self.title(timeline).joined(separator: "\n") + "\n\n"
        for row in rows {
            text += zip(row, widths).map { TerminalText.column($0, $1) }.joined(separator: "  ").trimmingEnd + "\n"
        }
        if !timeline.notes.isEmpty { text += "\n" }
        for note in timeline.notes { text += "note: \(TerminalText.line(note))\n" }
        return text
    }
}
