// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Configuration

extension Node {
    var text: String? {
        if case .text(let text) = content { text } else { nil }
    }

    var integer: Int64? {
        if case .integer(let integer) = content { integer } else { nil }
    }

    var number: Double? {
        switch content {
        case .number(let number): number
        case .integer(let integer): Double(integer)
        default: nil
        }
    }

    var elements: [Node]? {
        if case .list(let elements) = content { elements } else { nil }
    }
}

/// What `beacond scan` lets through.
struct ScanFilter {
    var uuid: String?
    var major: UInt16?
    var minor: UInt16?
    /// dBm; weaker beacons are left out.
    var strength: Int64?

    /// - Parameter event: an event of a beacon.
    func includes(_ event: Node) -> Bool {
        if let uuid, event["uuid"]?.text != uuid { return false }
        if let major, event["major"]?.integer != Int64(major) { return false }
        if let minor, event["minor"]?.integer != Int64(minor) { return false }
        if let strength, (event["rssi"]?.integer ?? .min) < strength { return false }
        return true
    }
}

/// What is known of one beacon, from its events.
struct ScanRow {
    /// Format and identity, or what tells it apart otherwise.
    let identity: String
    private(set) var alias: String?
    private(set) var addressEnding = "-"
    private(set) var rssi: Int64?
    private(set) var filtered: Double?
    private(set) var quality = "-"
    private(set) var proximity = "-"
    /// Metres; nil when unknown.
    private(set) var accuracy: Double?
    private(set) var heard: MonotonicTime
    /// Advertisements heard since, for the interval between them.
    private var count = 0.0
    private var time = TimeInterval.zero

    /// Over how long the interval is a mean, at most twice this: long enough to be steady, short enough to follow a
    /// change.
    private static let memory = TimeInterval.seconds(10)

    init(identity: String, at now: MonotonicTime) {
        self.identity = identity
        heard = now
    }

    mutating func take(_ event: Node, at now: MonotonicTime, isFirst: Bool) {
        alias = event["alias"]?.text
        addressEnding = event["address_ending"]?.text ?? "-"
        rssi = event["rssi"]?.integer
        filtered = event["rssi_filtered"]?.number
        quality = event["signal_quality"]?.text ?? "-"
        proximity = event["proximity"]?.text ?? "-"
        accuracy = event["accuracy"]?.number.flatMap { $0 < 0 ? nil : $0 }
        if !isFirst {
            count += event["count"]?.number ?? 1
            time = TimeInterval(nanoseconds: time.nanoseconds + (now - heard).nanoseconds)
            if time > Self.memory {
                count /= 2
                time = TimeInterval(nanoseconds: time.nanoseconds / 2)
            }
        }
        heard = now
    }

    /// The identity where there is little room: long fields by their beginning, and no word for the usual format.
    var shortIdentity: String {
        let words = identity.split(separator: " ", maxSplits: 1)
        guard words.count == 2 else { return identity }
        let fields = words[1].split(separator: "/").map { $0.count > 12 ? "\($0.prefix(8))…" : String($0) }
        return (words[0] == "ibeacon" ? "" : "\(words[0]) ") + fields.joined(separator: "/")
    }

    /// Mean time between two advertisements that were heard; nil until there were two. The beacon's own interval is
    /// shorter by what was missed.
    var interval: TimeInterval? {
        count > 0 ? TimeInterval(nanoseconds: Int64(Double(time.nanoseconds) / count)) : nil
    }

    /// Format and identity fields of an event of a beacon, in the order of the format; nil for other events.
    static func identity(of event: Node, _ formats: FormatCatalog) -> String? {
        guard let format = event["format"]?.text else { return nil }
        // A format of the daemon's configuration is not known here, and numbers its fields.
        let keys =
            formats.id(named: format).flatMap { formats[$0] }?.fields.map(\.key)
            ?? (1...LayoutString.maximumIdentifiers).map { "id\($0)" }
        let values = keys.compactMap { key in event[key].flatMap { $0.text ?? $0.integer.map(String.init) } }
        return values.isEmpty
            ? "\(format) \(event["address"]?.text ?? "")" : "\(format) \(values.joined(separator: "/"))"
    }
}

/// Words and numbers for a terminal.
enum TerminalText {
    /// A stranger's text without what would steer the terminal, cut or filled up to `width` columns.
    static func column(_ text: String, _ width: Int) -> String {
        var harmless = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { harmless.append(isHarmless(scalar) ? scalar : "\u{FFFD}") }
        if harmless.count > width {
            return String(String.UnicodeScalarView(harmless.prefix(max(0, width - 1)))) + "…"
        }
        return String(harmless) + String(repeating: " ", count: width - harmless.count)
    }

    /// A text without what would steer the terminal.
    static func line(_ text: String) -> String { column(text, text.unicodeScalars.count) }

    /// A number with one decimal, or without where that says enough.
    static func number(_ value: Double) -> String { number(value, decimals: value < 10 ? 1 : 0) }

    static func number(_ value: Double, decimals: Int) -> String {
        var writer = JSONWriter()
        writer.decimal(value, decimals: decimals)
        return writer.text
    }

    static func interval(_ interval: TimeInterval) -> String {
        interval < .seconds(1) ? "\(interval.milliseconds) ms" : "\(number(interval.seconds)) s"
    }

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
        default: true
        }
    }
}
