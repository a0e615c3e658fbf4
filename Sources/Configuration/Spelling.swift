// SPDX-License-Identifier: Apache-2.0

import BeaconModel

extension Value {
    /// Writes the value as a person would write it in the file.
    func write(into writer: inout JSONWriter) {
        switch self {
        case .boolean(let value): writer.boolean(value)
        case .integer(let value): writer.integer(value)
        case .number(let value): writer.decimal(value, decimals: 6)
        case .text(let value): writer.string(value)
        case .duration(let value): writer.string(DurationText.text(value))
        case .size(let value): writer.string(SizeText.text(value))
        case .list(let values):
            writer.beginArray()
            for value in values { value.write(into: &writer) }
            writer.endArray()
        case .section(let values):
            writer.beginObject()
            for (key, value) in values.given.sorted(by: { $0.key < $1.key }) {
                writer.key(key)
                value.write(into: &writer)
            }
            writer.endObject()
        }
    }

    var json: String {
        var writer = JSONWriter()
        write(into: &writer)
        return writer.text
    }
}

extension Node {
    /// Writes the value again, without white space.
    func write(into writer: inout JSONWriter) {
        switch content {
        case .null: writer.null()
        case .boolean(let value): writer.boolean(value)
        case .integer(let value): writer.integer(value)
        case .number(let value): writer.decimal(value, decimals: 6)
        case .text(let value): writer.string(value)
        case .list(let elements):
            writer.beginArray()
            for element in elements { element.write(into: &writer) }
            writer.endArray()
        case .object(let members):
            writer.beginObject()
            for member in members {
                writer.key(member.key)
                member.value.write(into: &writer)
            }
            writer.endObject()
        }
    }
}

extension AnyKey {
    /// The example as a document; nil without one.
    ///
    /// - Precondition: an example is JSON; that is a mistake in the program.
    var exampleNode: Node? {
        guard let example else { return nil }
        let document = try? Document(Array(example.utf8))
        precondition(document != nil, "the example of the key \(name) is no JSON: \(example)")
        return document?.root
    }
}
