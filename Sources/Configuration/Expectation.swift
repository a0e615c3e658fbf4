// SPDX-License-Identifier: Apache-2.0

import BeaconModel

extension Shape {
    /// What is expected, as errors, the schema, the sample and the reference say it: `a whole number from 1 to 100`.
    var expectation: String {
        switch self {
        case .boolean: "true or false"
        case .integer(let range): "a whole number\(Self.words(range) { "\($0)" })"
        case .number(let range): "a number\(Self.words(range, Self.text))"
        case .text(let rule):
            rule.expected == "text" ? "text of at most \(rule.maximumBytes) bytes" : rule.expected
        case .integerOrText(_, let rule): rule.expected
        case .choice([]): "a word"
        case .choice(let words): "one of \(words.map { "\"\($0)\"" }.joined(separator: ", "))"
        case .duration(let range): "a length of time\(Self.words(range, DurationText.text))"
        case .size(let range): "a count of bytes\(Self.words(range, SizeText.text))"
        case .list(_, let count): "a list of \(Self.count(count))"
        case .section, .plugin: "an object"
        }
    }

    /// How a value is spelled, for those that stand in quotes and are no free text.
    var spelling: String? {
        switch self {
        case .duration: "such as \"90s\" or \"1500ms\""
        case .size: "such as \"512B\" or \"10MiB\""
        default: nil
        }
    }

    /// ` from 1 to 100`; bounds that nobody will meet are left out.
    private static func words<Bound>(_ range: ClosedRange<Bound>, _ text: (Bound) -> String) -> String {
        let isOpen =
            switch range.upperBound {
            case let bound as Int64: bound == .max
            case let bound as Double: bound == .greatestFiniteMagnitude || bound == .infinity
            case let bound as TimeInterval: bound.nanoseconds == .max
            default: false
            }
        return isOpen
            ? " of at least \(text(range.lowerBound))" : " from \(text(range.lowerBound)) to \(text(range.upperBound))"
    }

    private static func count(_ range: ClosedRange<Int>) -> String {
        switch (range.lowerBound, range.upperBound) {
        case (0, let most): "at most \(most) entries"
        case (let least, .max): "at least \(least) entries"
        case (let least, let most): "\(least) to \(most) entries"
        }
    }

    private static func text(_ number: Double) -> String {
        var writer = JSONWriter()
        writer.decimal(number, decimals: 6)
        return writer.text
    }
}

extension Node.Content {
    /// What was found.
    ///
    /// - Parameter showsNumbers: whether the value of a number is told. Where text is expected it is not, and text
    ///   itself never is: it may be a password.
    func words(showsNumbers: Bool) -> String {
        switch self {
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .integer(let value): showsNumbers ? "\(value)" : "a number"
        case .number(let value): showsNumbers ? "\(value)" : "a number"
        case .text: "text"
        case .list: "a list"
        case .object: "an object"
        }
    }
}
