// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Glibc
import LinuxIO

/// The live table of `beacond scan`: strongest beacon first, redrawn in its place.
struct ScanTable {
    /// Beacons that are remembered; a hall full of them is more than a screen shows.
    private static let capacity = 4096
    private static let columns: [(title: String, width: Int)] = [
        ("ADDRESS", 11), ("RSSI", 4), ("QUALITY", 9), ("PROXIMITY", 9), ("DIST", 6), ("EVERY", 7), ("SEEN", 5),
    ]
    /// Columns for a beacon's name: on a terminal of 80 a short UUID with its numbers, at most all of it.
    private static let nameWidth = 16...60
    /// From here on there is room for two blanks between the columns.
    private static let wide = 110

    private let title: String
    private let recency: TimeInterval
    private let formats: FormatCatalog
    private let beginning = Clock.now
    private var rows: [String: ScanRow] = [:]
    private var adapters: [(name: String, state: String)] = []
    /// Lines of the table as it stands on the terminal.
    private var drawn = 0

    /// - Parameter recency: a beacon that was not heard for so long is left out.
    init(title: String, recency: TimeInterval, formats: FormatCatalog) {
        self.title = title
        self.recency = recency
        self.formats = formats
    }

    mutating func take(_ event: Node, at now: MonotonicTime) {
        if event["event"]?.text == "adapter" { return takeAdapter(event) }
        guard let word = event["event"]?.text, word == "sighting" || word == "enter",
            let identity = ScanRow.identity(of: event, formats)
        else { return }
        let isFirst = rows[identity] == nil
        if isFirst, rows.count >= Self.capacity { forget(at: now) }
        rows[identity, default: ScanRow(identity: identity, at: now)].take(event, at: now, isFirst: isFirst)
    }

    private mutating func takeAdapter(_ event: Node) {
        guard let name = event["adapter"]?.text, let state = event["state"]?.text else { return }
        adapters.removeAll { $0.name == name }
        adapters.append((name, state))
    }

    private mutating func forget(at now: MonotonicTime) {
        rows = rows.filter { now - $0.value.heard <= recency }
        if rows.count >= Self.capacity { rows.removeAll() }
    }

    // MARK: Drawing

    /// What to write to the terminal now.
    mutating func frame(at now: MonotonicTime, columns: Int, rows height: Int) -> String {
        let lines = lines(at: now, columns: columns, rows: height)
        var text = drawn == 0 ? "\u{1B}[?25l" : "\u{1B}[\(drawn)F"
        for line in lines { text += "\u{1B}[2K\(line)\n" }
        drawn = lines.count
        return text + "\u{1B}[J"
    }

    /// What gives the terminal back as it was, behind the last table.
    static let ending = "\u{1B}[?25h"

    /// The table as lines of at most `columns` characters, at most a screen of them.
    func lines(at now: MonotonicTime, columns: Int, rows height: Int) -> [String] {
        let gap = columns >= Self.wide ? 2 : 1
        let fixed = Self.columns.reduce(0) { $0 + $1.width + gap }
        let name = min(max(columns - fixed, Self.nameWidth.lowerBound), Self.nameWidth.upperBound)
        let shown = rows.values.filter { now - $0.heard <= recency }
            .sorted { ($0.filtered ?? -200, $1.identity) > ($1.filtered ?? -200, $0.identity) }
        // The title, the head and the line that counts the rest.
        let room = max(1, height - 4)
        let separator = String(repeating: " ", count: gap)
        let titles = ["BEACON"] + Self.columns.map(\.title)
        var lines = [head(count: shown.count, at: now)]
        lines.append(
            zip(titles, [name] + Self.columns.map(\.width)).map { TerminalText.column($0, $1) }
                .joined(separator: separator))
        lines += shown.prefix(room).map { Self.cells($0, name: name, at: now).joined(separator: separator) }
        if shown.count > room { lines.append("… and \(shown.count - room) more") }
        if shown.isEmpty { lines.append("nothing heard yet") }
        return lines.map { TerminalText.column($0, columns).trimmingEnd }
    }

    private func head(count: Int, at now: MonotonicTime) -> String {
        let states = adapters.map { "\($0.name) \($0.state)" }.joined(separator: ", ")
        let seconds = (now - beginning).milliseconds / 1000
        return
            "\(title)\(states.isEmpty ? "" : " (\(states))"): \(count) beacon\(count == 1 ? "" : "s") after \(seconds) s"
    }

    /// One row in plain columns, as the lines for a pipe have it too.
    static func cells(_ row: ScanRow, name: Int, at now: MonotonicTime) -> [String] {
        let values = [
            row.addressEnding, row.rssi.map(String.init) ?? "-", row.quality, row.proximity,
            row.accuracy.map { "\(TerminalText.number($0)) m" } ?? "-",
            row.interval.map(TerminalText.interval) ?? "-", "\(TerminalText.number((now - row.heard).seconds)) s",
        ]
        let identity = row.identity.count > name ? row.shortIdentity : row.identity
        return [TerminalText.column(row.alias ?? identity, name)]
            + zip(values, columns).map { TerminalText.column($0, $1.width) }
    }

    /// An event of a beacon as a line for a pipe: what happened and the cells of the beacon, its whole identity first.
    func line(_ event: Node) -> [UInt8] {
        let word = event["event"]?.text ?? "-"
        guard let identity = ScanRow.identity(of: event, formats) else { return Array(word.utf8) }
        let now = Clock.now
        let row = rows[identity] ?? ScanRow(identity: identity, at: now)
        let cells = Self.cells(row, name: Self.nameWidth.upperBound, at: now).dropLast()
        let time = TerminalText.column(event["time"]?.text ?? "-", 24)
        return Array(([time, TerminalText.column(word, 8)] + cells).joined(separator: "  ").trimmingEnd.utf8)
    }
}

extension String {
    /// Without blanks at the end.
    var trimmingEnd: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
