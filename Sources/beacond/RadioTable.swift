// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// What scanning took, in columns: a row for each profile with those who held it. The one in force has a star.
enum RadioTable {
    /// - Parameter accounts: as the verb `state` tells them.
    static func text(_ accounts: [Node]) -> String {
        guard !accounts.isEmpty else { return "" }
        var rows = [[" ", "profile", "time", "radio", "CPU", "CPU time", "wanted by"]]
        for account in accounts {
            let isInForce = if case .boolean(true) = account["in_force"]?.content { true } else { false }
            let holders = (account["holders"]?.elements ?? []).compactMap(\.text).joined(separator: ", ")
            rows.append([
                isInForce ? "*" : " ", account["profile"]?.text ?? "none",
                "\(number(account["time"], 1)) s", "\(number(account["radio_share"], 1, factor: 100)) %",
                "\(number(account["cpu_share"], 2, factor: 100)) %", "\(number(account["cpu_time"], 2)) s",
                TerminalText.line(holders.isEmpty ? "-" : holders),
            ])
        }
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = zip(row, widths).map { TerminalText.column($0, $1) }
            return "radio    \(cells.joined(separator: "  ").trimmingEnd)\n"
        }.joined()
    }

    private static func number(_ node: Node?, _ decimals: Int, factor: Double = 1) -> String {
        PlanTable.decimal((node?.number ?? 0) * factor, decimals)
    }
}
