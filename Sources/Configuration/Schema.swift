// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// The JSON Schema (draft 2020-12) of a section, for editors and for tools that check the files of a fleet.
///
/// It accepts whatever the reader accepts. The reader refuses more, which a schema cannot express: duplicate keys,
/// lengths in bytes, the range of a value with a unit, and checks across keys.
public enum Schema {
    /// The document, laid out, with a newline at the end.
    public static func json(for section: Section, title: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("$schema", "https://json-schema.org/draft/2020-12/schema")
            writer.member("title", title)
            writeObject(section.keys, into: &writer)
        }
        return JSONLayout.indent(writer.bytes)
    }

    /// Writes the members that describe an object of these keys and comments.
    ///
    /// - Parameter anything: a key whose value is described elsewhere.
    private static func writeObject(_ keys: [AnyKey], anything: String? = nil, into writer: inout JSONWriter) {
        writer.member("type", "object")
        writer.object("properties") { writer in
            for key in keys {
                writer.key(key.name)
                write(key, into: &writer)
            }
            if let anything {
                writer.key(anything)
                writer.boolean(true)
            }
        }
        writer.object("patternProperties") { $0.object("^//") { $0.member("type", "string") } }
        writeRequired(keys, into: &writer)
        writer.key("additionalProperties")
        writer.boolean(false)
    }

    private static func writeRequired(_ keys: [AnyKey], into writer: inout JSONWriter) {
        let names = keys.filter(\.mustBeGiven).map(\.name)
        if !names.isEmpty { writer.list("required", names) }
    }

    private static func write(_ key: AnyKey, into writer: inout JSONWriter) {
        writer.object { writer in
            switch key.shape {
            case .duration, .size, .text, .integerOrText:
                writer.member("description", "\(key.summary) Expected: \(key.shape.expectation).")
            default: writer.member("description", key.summary)
            }
            write(key.shape, into: &writer)
            if let fallback = key.fallback {
                writer.key("default")
                fallback.write(into: &writer)
            }
            if let example = key.exampleNode {
                writer.key("examples")
                writer.beginArray()
                example.write(into: &writer)
                writer.endArray()
            }
        }
    }

    /// Writes the members that say which values are right.
    private static func write(_ shape: Shape, into writer: inout JSONWriter) {
        switch shape {
        case .boolean:
            writer.member("type", "boolean")
        case .integer(let range):
            writer.member("type", "integer")
            writer.member("minimum", range.lowerBound)
            writer.member("maximum", range.upperBound)
        case .number(let range):
            writer.member("type", "number")
            writer.key("minimum")
            writer.decimal(range.lowerBound, decimals: 6)
            writer.key("maximum")
            writer.decimal(range.upperBound, decimals: 6)
        case .text(let rule):
            writer.member("type", "string")
            if !rule.mayBeEmpty { writer.member("minLength", 1) }
            writer.member("maxLength", Int64(rule.maximumBytes))
            if let pattern = rule.pattern { writer.member("pattern", pattern) }
        case .integerOrText(let range, let rule):
            writer.key("anyOf")
            writer.beginArray()
            writer.object { write(.integer(range), into: &$0) }
            writer.object { write(.text(rule), into: &$0) }
            writer.endArray()
        case .choice(let words):
            writer.list("enum", words)
        case .duration:
            writer.member("type", "string")
            writer.member("pattern", DurationText.pattern)
        case .size:
            writer.member("type", "string")
            writer.member("pattern", SizeText.pattern)
        case .list(let shape, let count):
            writer.member("type", "array")
            writer.member("minItems", Int64(count.lowerBound))
            writer.member("maxItems", Int64(count.upperBound))
            writer.object("items") { write(shape, into: &$0) }
        case .section(let section):
            writeObject(section.keys, into: &writer)
        case .plugin(let common, let kinds):
            writeObject(
                common.pluginSection(kinds: kinds.map(\.name), of: nil).keys, anything: PluginKey.config,
                into: &writer)
            guard !kinds.isEmpty else { return }
            writer.key("allOf")
            writer.beginArray()
            for kind in kinds { writeChoice(of: kind, common, into: &writer) }
            writer.endArray()
        }
    }

    /// Writes that `config` has the keys of a kind when `kind` names it.
    private static func writeChoice(of kind: Shape.PluginKind, _ common: Section, into writer: inout JSONWriter) {
        let config = common.pluginSection(kinds: [], of: kind).keys.filter { $0.name == PluginKey.config }
        writer.object { writer in
            writer.object("if") { writer in
                writer.object("properties") { $0.object(PluginKey.kind) { $0.member("const", kind.name) } }
                writer.list("required", [PluginKey.kind])
            }
            writer.object("then") { writer in
                writer.object("properties") { writer in
                    for key in config {
                        writer.key(key.name)
                        write(key, into: &writer)
                    }
                }
                writeRequired(config, into: &writer)
            }
        }
    }
}

extension JSONWriter {
    mutating func object(_ key: String? = nil, _ body: (inout JSONWriter) -> Void) {
        if let key { self.key(key) }
        beginObject()
        body(&self)
        endObject()
    }

    mutating func member(_ key: String, _ value: String) {
        self.key(key)
        string(value)
    }

    mutating func member(_ key: String, _ value: Int64) {
        self.key(key)
        integer(value)
    }

    mutating func list(_ key: String, _ texts: [String]) {
        self.key(key)
        beginArray()
        for text in texts { string(text) }
        endArray()
    }
}
