// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// What may stand as the value of a key. From it come the check, the JSON Schema and the words of an error.
public indirect enum Shape: Sendable {
    case boolean
    case integer(ClosedRange<Int64>)
    case number(ClosedRange<Double>)
    /// UTF-8 text of at most this many bytes, at least one unless `mayBeEmpty`. `pattern` is an ECMA regular
    /// expression for the schema; `check` decides, and says in one clause what was expected when it refuses.
    case text(TextRule)
    /// One of these words.
    case choice([String])
    /// A length of time with its unit: `"90s"`, `"1500ms"`, `"5m"`, `"2h"`, `"7d"`.
    case duration(ClosedRange<TimeInterval>)
    /// A count of bytes with its unit: `"512B"`, `"64KiB"`, `"10MiB"`, `"1GiB"`.
    case size(ClosedRange<Int64>)
    case list(of: Shape, count: ClosedRange<Int>)
    case section(Section)
    /// An object whose key `kind` chooses the section of its key `config`; the other keys are `common`.
    case plugin(common: Section, kinds: [(name: String, section: Section)])

    public struct TextRule: Sendable {
        public var maximumBytes: Int
        public var mayBeEmpty: Bool
        public var pattern: String?
        public var expected: String
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
public indirect enum Value: Sendable {
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
public struct Section: Sendable {
    public let keys: [AnyKey]
    /// Checks that need several keys; run when every key by itself is right.
    public let check: @Sendable (Values, inout Complaints) -> Void

    public init(_ keys: [AnyKey], check: @escaping @Sendable (Values, inout Complaints) -> Void = { _, _ in }) {
        self.keys = keys
        self.check = check
    }
}

/// What a check across keys found.
public struct Complaints: Sendable {
    /// The key that the complaint is about (nil: the whole object) and the complaint as one clause.
    public private(set) var items: [(key: String?, text: String)] = []

    public init() {}

    public mutating func add(_ key: String?, _ text: String) {
        items.append((key, text))
    }
}

/// The values of a section, each key either given or at its default.
public struct Values: Sendable {
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

    /// Whether the person wrote the key.
    public func isGiven<Content>(_ key: Key<Content>) -> Bool {
        given[key.declaration.name] != nil
    }
}
