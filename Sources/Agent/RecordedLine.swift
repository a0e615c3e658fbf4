// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Configuration
import Presence

/// One line of a recording of sightings: something that happened at its `t`.
public struct RecordedLine {
    public enum Content {
        case sighting(Sighting)
        case radio(Name, RadioActivity)
        /// Only time passes.
        case moment
    }

    public let time: MonotonicTime
    public let content: Content
}

/// What is wrong with a line.
struct RecordedLineError: Error {
    let text: String

    init(_ text: String) { self.text = text }

    init(_ key: String, expected: String) { text = "\"\(key)\": expected \(expected)" }
}

/// Reads the lines of a recording in their order, because a radio that listens again does so as it did before.
struct RecordedLines {
    private let formats: FormatCatalog
    private let names: NameTable
    private var last = MonotonicTime.zero
    /// What each radio does while it listens.
    private var patterns: [Name: ScanPattern] = [:]

    /// 285 years: more would not fit into nanoseconds.
    private static let latest = 9e9
    /// Longest scan interval of extended scanning: 65,535 slots of 0.625 ms (Core 5.4, Vol 4, Part E, 7.8.64).
    private static let durations = 2.5...40_960.0

    init(formats: FormatCatalog, names: NameTable) {
        self.formats = formats
        self.names = names
    }

    /// - Returns: nil for an empty line.
    mutating func read(_ line: Span<UInt8>) throws(RecordedLineError) -> RecordedLine? {
        guard line.indices.contains(where: { line[$0] > 0x20 }) else { return nil }
        let root: Node
        do { root = try Document(line.indices.map { line[$0] }).root } catch {
            throw RecordedLineError("column \(error.column): \(error.text)")
        }
        guard case .object = root.content else {
            throw RecordedLineError("expected an object such as {\"t\": 12.5}")
        }
        let time = try time(root)
        guard time >= last else {
            throw RecordedLineError("\"t\" is earlier than in the line before; sort the lines by \"t\"")
        }
        last = time
        return RecordedLine(time: time, content: try content(root, time))
    }

    private func time(_ root: Node) throws(RecordedLineError) -> MonotonicTime {
        guard let seconds = root["t"]?.value, (0...Self.latest).contains(seconds) else {
            throw RecordedLineError("t", expected: "seconds from 0 to 9000000000")
        }
        return MonotonicTime(nanoseconds: Int64((seconds * 1e9).rounded()))
    }

    private mutating func content(_ root: Node, _ time: MonotonicTime) throws(RecordedLineError) -> RecordedLine.Content
    {
        if root["format"] != nil { return .sighting(try sighting(root, time)) }
        let radioKeys = ["window_ms", "interval_ms", "listening"].filter { root[$0] != nil }
        guard root["adapter"] != nil else {
            if let key = radioKeys.first { throw RecordedLineError("\"\(key)\" needs \"adapter\" beside it") }
            return .moment
        }
        let adapter = try adapter(root)
        guard !radioKeys.isEmpty else {
            throw RecordedLineError(
                "nothing is said of \"adapter\": a sighting needs \"format\", a radio \"window_ms\" and \"interval_ms\" or \"listening\""
            )
        }
        if radioKeys.first != "listening" { patterns[adapter] = try pattern(root) }
        let pattern = patterns[adapter] ?? ScanProfile.continuous.pattern
        let scanning = RadioActivity.scanning(window: pattern.window, interval: pattern.interval)
        switch root["listening"]?.content {
        case nil, .integer(1)?, .boolean(true)?: return .radio(adapter, scanning)
        case .integer(0)?, .boolean(false)?: return .radio(adapter, .paused)
        case .null?: return .radio(adapter, .blind)
        default: throw RecordedLineError("listening", expected: "1, 0 (paused) or null (blind)")
        }
    }

    private func pattern(_ root: Node) throws(RecordedLineError) -> ScanPattern {
        func duration(_ key: String) throws(RecordedLineError) -> TimeInterval {
            guard let value = root[key]?.value, Self.durations.contains(value) else {
                throw RecordedLineError(key, expected: "milliseconds from 2.5 to 40960")
            }
            return TimeInterval(nanoseconds: Int64((value * 1e6).rounded()))
        }
        let window = try duration("window_ms")
        let interval = try duration("interval_ms")
        guard window <= interval else {
            throw RecordedLineError("window_ms", expected: "no more than \"interval_ms\"")
        }
        return ScanPattern(window: window, interval: interval)
    }

    private func sighting(_ root: Node, _ time: MonotonicTime) throws(RecordedLineError) -> Sighting {
        Sighting(
            time: time, identity: try identity(root), address: try address(root), rssi: try strength(root, "rssi"),
            measuredPower: try strength(root, "measured_power"), adapter: try adapter(root))
    }

    private func adapter(_ root: Node) throws(RecordedLineError) -> Name {
        guard case .text(let word)? = root["adapter"]?.content, !word.isEmpty, word.utf8.count <= 64 else {
            throw RecordedLineError("adapter", expected: "a name of 1 to 64 characters such as \"hci0\"")
        }
        return names.intern(word)
    }

    /// nil when it is left out, null, or 127, which a controller says that did not measure it.
    private func strength(_ root: Node, _ key: String) throws(RecordedLineError) -> Int8? {
        guard let node = root[key] else { return nil }
        if case .null = node.content { return nil }
        guard let value = node.value, value == 127 || (-127...20).contains(value) else {
            throw RecordedLineError(key, expected: "dBm from -127 to 20, or 127 or null when it is not known")
        }
        return value == 127 ? nil : Int8(value.rounded())
    }

    private func address(_ root: Node) throws(RecordedLineError) -> DeviceAddress {
        switch root["address"]?.content {
        case nil, .null?: return .anonymous
        case .text(let text)?:
            if let address = DeviceAddress(text: text, kind: .randomDevice) { return address }
        default: break
        }
        throw RecordedLineError("address", expected: "an address such as \"c4:7c:8d:6a:11:22\"")
    }

    private func identity(_ root: Node) throws(RecordedLineError) -> BeaconIdentity {
        guard case .text(let name)? = root["format"]?.content, let id = formats.id(named: name),
            let format = formats[id]
        else {
            let known = formats.formats.filter { !$0.fields.isEmpty }.map { "\"\($0.name)\"" }
            throw RecordedLineError("format", expected: "one of \(known.joined(separator: ", "))")
        }
        guard !format.fields.isEmpty else {
            throw RecordedLineError("frames of format \"\(name)\" name no beacon")
        }
        var octets: [UInt8] = []
        for field in format.fields {
            guard let value = root[field.key] else {
                throw RecordedLineError("a beacon of format \"\(name)\" needs \"\(field.key)\"")
            }
            guard let part = Self.octets(value, field), octets.count + part.count <= BeaconIdentity.capacity else {
                throw RecordedLineError("\"\(field.key)\" is not as beacons of format \"\(name)\" have it")
            }
            octets += part
        }
        return BeaconIdentity(format: id, octets: octets.span)
    }

    private static func octets(_ value: Node, _ field: IdentityField) -> [UInt8]? {
        switch (value.content, field.spelling) {
        case (.integer(let number), .number): FormatCatalog.octets(field, text: "\(number)")
        case (.text, .number), (.integer, _): nil
        case (.text(let text), _): FormatCatalog.octets(field, text: text)
        default: nil
        }
    }
}

extension Node {
    /// A number of either kind.
    fileprivate var value: Double? {
        switch content {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }
}
