// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// One mistake in a configuration file, as one line for a person.
public struct Problem: Sendable, Equatable, CustomStringConvertible {
    /// The file as the person named it.
    public let file: String
    /// From 1; 0 when the file as a whole is meant.
    public let line: Int
    /// In characters from 1; only for mistakes of syntax, which have no path.
    public let column: Int?
    /// Where the value stands, `$.sinks[0].config.qos`; empty for mistakes of syntax.
    public let path: String
    /// What was expected, what was found, and the cure where one is known.
    public let text: String

    init(file: String, line: Int, column: Int? = nil, path: String = "", text: String) {
        self.file = file
        self.line = line
        self.column = column
        self.path = path
        self.text = oneLine(text)
    }

    public var description: String {
        var place = file
        if line > 0 { place += ":\(line)" }
        if let column { place += ":\(column)" }
        return path.isEmpty ? "\(place): \(text)" : "\(place): \(path): \(text)"
    }
}

/// Why a configuration was refused: everything that is wrong with it, in file order.
public struct ConfigurationError: Error, CustomStringConvertible {
    /// At least one.
    public let problems: [Problem]

    /// One line for each problem, without a newline at the end.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// The way from the top of a document to a value in it.
struct Path {
    private(set) var steps: [PathStep] = []

    func appending(_ step: PathStep) -> Path {
        var path = self
        path.steps.append(step)
        return path
    }

    /// The key that is nearest to the value.
    var lastKey: String? {
        for case .key(let key) in steps.reversed() { return key }
        return nil
    }
}

extension Path: CustomStringConvertible {
    var description: String {
        steps.reduce(into: "$") { text, step in
            switch step {
            case .index(let index): text += "[\(index)]"
            case .key(let key) where Self.isPlain(key): text += ".\(key)"
            case .key(let key): text += "[\(quoted(key))]"
            }
        }
    }

    private static func isPlain(_ key: String) -> Bool {
        guard (1...64).contains(key.utf8.count) else { return false }
        return key.utf8.allSatisfy { character in
            switch character {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }
}

/// Text from a file as a message shows it: in double quotes, on one line, at most 48 characters of it.
func quoted(_ text: String) -> String {
    var writer = JSONWriter()
    writer.string(text.unicodeScalars.count > 48 ? String(text.unicodeScalars.prefix(48)) + "…" : text)
    return writer.text
}

/// The text with what would disturb a terminal, or make a second line of it, as `\u{…}`: the words of a message may hold a
/// path or a name that a stranger chose.
private func oneLine(_ text: String) -> String {
    func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: false
        default: true
        }
    }
    guard !text.unicodeScalars.allSatisfy(isHarmless) else { return text }
    return text.unicodeScalars.reduce(into: "") { line, scalar in
        line += isHarmless(scalar) ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
    }
}
