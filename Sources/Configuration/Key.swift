// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// What may stand as the value of a key. From it come the check, the JSON Schema and the words of an error.
public indirect enum Shape: Sendable {
    case boolean
    case integer(ClosedRange<Int64>)
    case number(ClosedRange<Double>)
    case text(TextRule)
    /// A whole number or a text; what is expected is said by the rule of the text.
    case integerOrText(ClosedRange<Int64>, TextRule)
    /// One of these words.
    case choice([String])
    /// A length of time with its unit: `"90s"`, `"1500ms"`, `"5m"`, `"2h"`, `"7d"`.
    case duration(ClosedRange<TimeInterval>)
    /// A count of bytes with its unit: `"512B"`, `"64KiB"`, `"10MiB"`, `"1GiB"`.
    case size(ClosedRange<Int64>)
    case list(of: Shape, count: ClosedRange<Int>)
    case section(Section)
    /// An object whose key `kind` chooses the section of its key `config`; the other keys are `common`.
    case plugin(common: Section, kinds: [PluginKind])

    /// One of the plugins that may stand in a list of plugins.
    public struct PluginKind: Sendable {
        /// The value of `kind`.
        public let name: String
        /// One sentence that ends in a period.
        public let summary: String
        /// The keys of `config`.
        public let section: Section

        public init(name: String, summary: String, section: Section) {
            self.name = name
            self.summary = summary
            self.section = section
        }
    }

    /// Which texts are right.
    public struct TextRule: Sendable {
        /// In UTF-8.
        public var maximumBytes: Int
        public var mayBeEmpty: Bool
        /// For the schema: a regular expression (ECMA-262) that matches at least what `check` accepts.
        public var pattern: String?
        /// What is expected, as the words behind "expected".
        public var expected: String
        /// Decides.
        public var check: @Sendable (String) -> Bool

        public init(
            maximumBytes: Int = 1024, mayBeEmpty: Bool = false, pattern: String? = nil, expected: String = "text",
            check: @escaping @Sendable (String) -> Bool = { _ in true }
        ) {
            self.maximumBytes = maximumBytes
            self.mayBeEmpty = mayBeEmpty
            self.pattern = pattern
            self.expected = expected
            self.check = check
        }
    }
}

/// A value as it was read, after its shape was checked.
public indirect enum Value: Sendable, Equatable {
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    case duration(TimeInterval)
    case size(Int64)
    case list([Value])
    case section(Values)
}

/// A key of a section, declared once: reading, defaults, errors, schema, sample and reference all come from here.
public struct AnyKey: Sendable {
    /// `lower_snake_case`.
    public let name: String
    public let shape: Shape
    /// The value when the key is not given; nil when there is none.
    public let fallback: Value?
    public let isRequired: Bool
    /// One sentence that ends in a period.
    public let summary: String
    /// How the sample shows a key that has no default, as JSON text.
    public let example: String?

    /// Whether the object is wrong without the key: it is required itself, or a key inside it is.
    var mustBeGiven: Bool {
        if case .section(let section) = shape { return section.keys.contains(where: \.mustBeGiven) }
        return isRequired
    }
}

/// A key that knows the type of its value.
public struct Key<Content: Sendable>: Sendable {
    public let declaration: AnyKey
    let content: @Sendable (Value?) -> Content

    init(_ declaration: AnyKey, _ content: @escaping @Sendable (Value?) -> Content) {
        self.declaration = declaration
        self.content = content
    }
}

/// A set of keys that belong together in one JSON object.
///
/// Keys that begin with `//` are comments in every object; they are not declared.
public struct Section: Sendable {
    /// What a value by itself cannot tell.
    public struct Check: Sendable {
        /// The keys that it looks at; it is left out while one of them is wrong by itself.
        let needs: [String]
        let body: @Sendable (Values, inout Complaints) -> Void

        public init(_ needs: [AnyKey], _ body: @escaping @Sendable (Values, inout Complaints) -> Void) {
            self.needs = needs.map(\.name)
            self.body = body
        }
    }

    public let keys: [AnyKey]
    public let checks: [Check]

    public init(_ keys: [AnyKey], checks: [Check]) {
        self.keys = keys
        self.checks = checks
    }

    /// - Parameter check: looks at any of the keys; run when every key by itself is right.
    public init(_ keys: [AnyKey], check: @escaping @Sendable (Values, inout Complaints) -> Void = { _, _ in }) {
        self.init(keys, checks: [Check(keys, check)])
    }
}

/// A step from a value to one inside it.
public enum PathStep: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case key(String)
    case index(Int)

    public init(stringLiteral key: String) { self = .key(key) }
    public init(integerLiteral index: Int) { self = .index(index) }
}

/// What a check across keys found.
public struct Complaints: Sendable {
    /// What the complaint is about, seen from the section, and the complaint as one clause.
    public private(set) var items: [(path: [PathStep], text: String)] = []

    public init() {}

    /// - Parameter key: nil for the whole object.
    public mutating func add(_ key: String?, _ text: String) {
        add(at: key.map { [.key($0)] } ?? [], text)
    }

    public mutating func add(at path: [PathStep], _ text: String) {
        items.append((path, text))
    }
}

/// The values of a section, each key either given or at its default.
public struct Values: Sendable, Equatable {
    let given: [String: Value]
    /// Where the object begins in its file, for messages that come later; 0 when it came from no file.
    public let line: Int

    public init(given: [String: Value] = [:], line: Int = 0) {
        self.given = given
        self.line = line
    }

    public subscript<Content>(key: Key<Content>) -> Content {
        key.content(given[key.declaration.name] ?? key.declaration.fallback)
    }

    /// Whether the same was written, wherever in the file.
    public static func == (left: Self, right: Self) -> Bool { left.given == right.given }

    /// Whether the person wrote the key.
    public func isGiven<Content>(_ key: Key<Content>) -> Bool {
        given[key.declaration.name] != nil
    }
}
