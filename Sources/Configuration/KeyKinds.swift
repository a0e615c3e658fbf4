// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

// The kinds of key. The extraction closures return the declared default for a value of another shape; the reader
// never hands them one.

extension Key where Content == Bool {
    public static func boolean(_ name: String, default fallback: Bool, _ summary: String) -> Self {
        Self(AnyKey(name, .boolean, fallback: .boolean(fallback), summary)) {
            if case .boolean(let value) = $0 { value } else { fallback }
        }
    }
}

extension Key where Content == Int64 {
    public static func integer(
        _ name: String, default fallback: Int64, in range: ClosedRange<Int64>, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .integer(range), fallback: .integer(fallback), summary)) {
            if case .integer(let value) = $0 { value } else { fallback }
        }
    }

    public static func size(
        _ name: String, default fallback: Int64, in range: ClosedRange<Int64>, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .size(range), fallback: .size(fallback), summary)) {
            if case .size(let value) = $0 { value } else { fallback }
        }
    }
}

extension Key where Content == Int64? {
    public static func optionalInteger(
        _ name: String, in range: ClosedRange<Int64>, example: String? = nil, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .integer(range), summary, example: example)) {
            if case .integer(let value) = $0 { value } else { nil }
        }
    }
}

extension Key where Content == Double {
    public static func number(
        _ name: String, default fallback: Double, in range: ClosedRange<Double>, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .number(range), fallback: .number(fallback), summary)) {
            if case .number(let value) = $0 { value } else { fallback }
        }
    }
}

extension Key where Content == Double? {
    public static func optionalNumber(_ name: String, in range: ClosedRange<Double>, _ summary: String) -> Self {
        Self(AnyKey(name, .number(range), summary)) {
            if case .number(let value) = $0 { value } else { nil }
        }
    }
}

extension Key where Content == TimeInterval {
    public static func duration(
        _ name: String, default fallback: TimeInterval, in range: ClosedRange<TimeInterval>, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .duration(range), fallback: .duration(fallback), summary)) {
            if case .duration(let value) = $0 { value } else { fallback }
        }
    }
}

extension Key where Content == TimeInterval? {
    public static func optionalDuration(
        _ name: String, in range: ClosedRange<TimeInterval>, example: String? = nil, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .duration(range), summary, example: example)) {
            if case .duration(let value) = $0 { value } else { nil }
        }
    }
}

extension Key where Content == String {
    public static func text(
        _ name: String, default fallback: String, _ rule: Shape.TextRule, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .text(rule), fallback: .text(fallback), summary)) {
            if case .text(let value) = $0 { value } else { fallback }
        }
    }

    public static func text(_ name: String, default fallback: String, _ summary: String) -> Self {
        text(name, default: fallback, Shape.TextRule(), summary)
    }

    /// A text that must be given.
    public static func requiredText(
        _ name: String, _ rule: Shape.TextRule = .init(), example: String, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .text(rule), isRequired: true, summary, example: example)) {
            if case .text(let value) = $0 { value } else { "" }
        }
    }

    public static func choice(
        _ name: String, default fallback: String, of words: [String], _ summary: String
    ) -> Self {
        Self(AnyKey(name, .choice(words), fallback: .text(fallback), summary)) {
            if case .text(let value) = $0 { value } else { fallback }
        }
    }
}

extension Key where Content == String? {
    public static func optionalText(
        _ name: String, _ rule: Shape.TextRule, example: String? = nil, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .text(rule), summary, example: example)) {
            if case .text(let value) = $0 { value } else { nil }
        }
    }

    public static func optionalText(_ name: String, example: String? = nil, _ summary: String) -> Self {
        optionalText(name, Shape.TextRule(), example: example, summary)
    }
}

extension Key where Content == IntegerOrText? {
    /// A whole number or a text, for a value that only another key can explain.
    public static func optionalIntegerOrText(
        _ name: String, in range: ClosedRange<Int64>, _ rule: Shape.TextRule, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .integerOrText(range, rule), summary)) {
            switch $0 {
            case .integer(let value): .integer(value)
            case .text(let value): .text(value)
            default: nil
            }
        }
    }
}

/// A value that may be written in two ways.
public enum IntegerOrText: Sendable, Equatable {
    case integer(Int64)
    case text(String)
}

extension Key where Content == [String] {
    /// A list of texts, empty unless given or declared otherwise.
    public static func texts(
        _ name: String, _ rule: Shape.TextRule = .init(), count: ClosedRange<Int>, default fallback: [String] = [],
        example: String? = nil, _ summary: String
    ) -> Self {
        Self(
            AnyKey(
                name, .list(of: .text(rule), count: count),
                fallback: fallback.isEmpty ? nil : .list(fallback.map { .text($0) }), summary, example: example)
        ) {
            guard case .list(let values) = $0 else { return [] }
            return values.compactMap { if case .text(let text) = $0 { text } else { nil } }
        }
    }
}

extension Key where Content == Values {
    /// A section inside the section; all its defaults when it is not given.
    public static func section(_ name: String, _ section: Section, example: String? = nil, _ summary: String) -> Self {
        Self(AnyKey(name, .section(section), summary, example: example)) {
            if case .section(let values) = $0 { values } else { Values() }
        }
    }
}

extension Key where Content == [Values] {
    /// A list of objects, empty unless given.
    public static func sections(
        _ name: String, of section: Section, count: ClosedRange<Int>, example: String? = nil, _ summary: String
    ) -> Self {
        Self(AnyKey(name, .list(of: .section(section), count: count), summary, example: example)) { values($0) }
    }

    /// A list of plugins, each with `kind`, the common keys, and a section of its own under `config`.
    public static func plugins(
        _ name: String, common: Section, kinds: [Shape.PluginKind], count: ClosedRange<Int>,
        _ summary: String
    ) -> Self {
        Self(AnyKey(name, .list(of: .plugin(common: common, kinds: kinds), count: count), summary)) { values($0) }
    }

    private static func values(_ value: Value?) -> [Values] {
        guard case .list(let values) = value else { return [] }
        return values.compactMap { if case .section(let section) = $0 { section } else { nil } }
    }
}

extension Values {
    /// The word under `kind` of a plugin.
    public var pluginKind: String {
        if case .text(let kind) = given["kind"] { kind } else { "" }
    }

    /// The section under `config` of a plugin.
    public var pluginConfiguration: Values {
        if case .section(let values) = given["config"] { values } else { Values() }
    }
}

extension AnyKey {
    init(
        _ name: String, _ shape: Shape, fallback: Value? = nil, isRequired: Bool = false, _ summary: String,
        example: String? = nil
    ) {
        self.init(
            name: name, shape: shape, fallback: fallback, isRequired: isRequired, summary: summary, example: example)
    }
}
