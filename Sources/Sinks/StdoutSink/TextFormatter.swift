// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Events as aligned columns for a person at a terminal: time in UTC, event, who, end of the address, strength, quality,
/// proximity, distance.
struct TextFormatter: Sendable {
    /// Longest field of an identity that is shown whole; of a longer one the beginning is enough to tell beacons apart.
    private static let longestField = 12
    private static let shortenedField = 8

    let vocabulary: Vocabulary

    /// One line without its newline.
    func line(_ event: borrowing Event) -> [UInt8] {
        var columns = Columns(text: Self.time(event.wallTime))
        columns.append(event.kind.word, width: 12)
        switch event.kind {
        case .sighting, .enter, .unknown, .known, .proximity, .ranging, .clone:
            appendBeacon(event, &columns)
        case .exit:
            appendBeacon(event, &columns)
            columns.append("\(event.exitReason.word) after \(Self.rounded(event.exitTime.seconds)) s", width: 0)
        case .regionEnter, .regionExit, .regionUnknown, .regionKnown:
            columns.append(vocabulary.names[event.name], width: 28)
            columns.append("\(event.insideCount) inside", width: 0)
        case .adapter:
            columns.append(vocabulary.names[event.name], width: 28)
            columns.append(event.adapterState.word, width: 0)
            if event.trouble != .none { columns.append(vocabulary.names[event.trouble], width: 0) }
        case .health:
            columns.append(event.isHealthy ? "well" : "not well", width: 28)
            if event.trouble != .none { columns.append(vocabulary.names[event.trouble], width: 0) }
        case .flood:
            let counts = event.flood
            columns.append(
                "\(counts.refused) sightings refused, \(counts.evicted) beacons forgotten, \(event.insideCount) tracked",
                width: 0)
        case .gap:
            columns.append("\(event.gap.first) to \(event.gap.last) are missing", width: 0)
        }
        return columns.line
    }

    private func appendBeacon(_ event: borrowing Event, _ columns: inout Columns) {
        columns.append(who(event), width: 28)
        columns.append(Self.addressEnding(event.address), width: 11)
        columns.append(event.signal.last.map { "\($0) dBm" } ?? "-", width: 8)
        columns.append(event.signal.filtered.map { SignalQuality(strength: $0).word } ?? "-", width: 9)
        columns.append(event.proximity.word, width: 9)
        columns.append(event.accuracy < 0 ? "-" : "\(Self.rounded(Double(event.accuracy))) m", width: 8)
    }

    /// The alias, else the format and the identity in short.
    private func who(_ event: borrowing Event) -> String {
        if event.name != .none { return vocabulary.names[event.name] }
        guard let identity = event.identity else { return "-" }
        var fields: [String] = []
        vocabulary.formats.forEachField(of: identity) { _, text in
            fields.append(text.count > Self.longestField ? text.prefix(Self.shortenedField) + "…" : text)
        }
        return "\(vocabulary.formats[identity.format]?.name ?? "unknown") \(fields.joined(separator: "/"))"
    }

    /// `2026-11-30 21:09:00.123Z`
    private static func time(_ time: WallTime) -> String {
        func digits(_ value: Int, _ count: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
        }
        guard let date = CivilTime(time) else { return "-" }
        return "\(digits(date.year, 4))-\(digits(date.month, 2))-\(digits(date.day, 2)) "
            + "\(digits(date.hour, 2)):\(digits(date.minute, 2)):\(digits(date.second, 2)).\(digits(date.millisecond, 3))Z"
    }

    private static func addressEnding(_ address: DeviceAddress) -> String {
        if address.isAnonymous { return "-" }
        let digits = Array(
            Hexadecimal.text((0..<4).reversed().map { UInt8(truncatingIfNeeded: address.value >> ($0 * 8)) }))
        return stride(from: 0, to: digits.count, by: 2).map { String(digits[$0...$0 + 1]) }.joined(separator: ":")
    }

    /// One decimal, half away from zero.
    private static func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }
}

/// Columns of a line, each padded to its width and two spaces apart.
private struct Columns {
    private var text: String

    init(text: String) { self.text = text }

    /// Without the padding of the last column.
    var line: [UInt8] { Array(text.utf8.reversed().drop { $0 == UInt8(ascii: " ") }.reversed()) }

    /// - Parameter width: 0 for the last column.
    mutating func append(_ column: String, width: Int) {
        text += "  "
        var count = 0
        for scalar in column.unicodeScalars {
            // What a stranger sends must not steer the terminal.
            text.unicodeScalars.append(Self.isHarmless(scalar) ? scalar : "\u{FFFD}")
            count += 1
        }
        text += String(repeating: " ", count: max(0, width - count))
    }

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
        default: true
        }
    }
}
