// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration
import Presence

/// The rows of `beacond plan` in columns.
struct PlanTable {
    private var rows: [[String]]
    private let isSimulated: Bool
    private var limits: Set<HitModel.Limit> = []

    /// - Parameter isSimulated: whether there are columns for the simulated times.
    init(isSimulated: Bool) {
        self.isSimulated = isSimulated
        let simulated = isSimulated ? ["sim. 50 %", "95 %", "99 %"] : []
        rows = [["interval", "heard", "reports", "CPU", "50 %", "95 %", "99 %"] + simulated + ["beat", "exit", ""]]
    }

    /// - Parameter share: of the processor.
    mutating func add(_ plan: ScanProfilePlan, processor share: Double, _ simulated: ScanProfilePlan.Times?) {
        limits.formUnion(plan.limits)
        rows.append(
            [
                DurationText.text(plan.interval), "\(Self.decimal(plan.chance * 100, 1)) %",
                "\(Self.decimal(plan.reportsPerSecond, plan.reportsPerSecond < 1 ? 3 : 1))/s",
                "\(Self.decimal(share * 100, 5)) %",
            ] + Self.words(plan.firstHeard) + (simulated.map(Self.words) ?? [])
                + [
                    plan.beatFactor.map { $0.isFinite ? Self.decimal($0, 1) : "inf" } ?? "-", Self.word(plan.exitTime),
                    plan.limits.map(\.rawValue).joined(separator: " "),
                ])
    }

    /// The rows, each column as wide as its widest word, and what the words of the last column mean.
    var text: String {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        var text = ""
        for row in rows {
            var line = ""
            for (word, width) in zip(row.dropLast(), widths) {
                line += String(repeating: " ", count: width - word.count + 2) + word
            }
            text += row.last.map { $0.isEmpty ? line : "\(line)  \($0)" } ?? line
            text += "\n"
        }
        for limit in HitModel.Limit.allCases where limits.contains(limit) {
            text += "\(limit.rawValue): \(Self.explanation(limit))\n"
        }
        return text
    }

    static func decimal(_ number: Double, _ decimals: Int) -> String {
        var writer = JSONWriter()
        writer.decimal(number, decimals: decimals)
        return writer.text
    }

    private static func words(_ times: ScanProfilePlan.Times) -> [String] {
        [word(times.median), word(times.most), word(times.nearlyAll)]
    }

    /// Seconds, with three digits or so.
    private static func word(_ time: TimeInterval?) -> String {
        time.map { "\(decimal($0.seconds, $0 < .seconds(10) ? 2 : 0))s" } ?? "-"
    }

    private static func explanation(_ limit: HitModel.Limit) -> String {
        switch limit {
        case .shortWindow: "the window is so short that beacons differ and the radio's tuning counts"
        case .clockTolerance: "the tolerance of the clocks decides how fast the phase creeps; the times are a guess"
        }
    }
}
