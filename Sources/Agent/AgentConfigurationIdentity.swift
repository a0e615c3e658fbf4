// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Configuration

/// How the configuration names a beacon or a set of them: `format`, and one key for each identity field of each format.
///
/// The fields of a format are given from the front: a `uuid`, a `uuid` and a `major`, or all three.
struct IdentityKeys: Sendable {
    private enum FieldKey: Sendable {
        case number(Key<Int64?>)
        case text(Key<String?>)
        /// A numbered identifier, which each format spells in its own way.
        case identifier(Key<IntegerOrText?>)

        var declaration: AnyKey {
            switch self {
            case .number(let key): key.declaration
            case .text(let key): key.declaration
            case .identifier(let key): key.declaration
            }
        }

        func isGiven(_ values: Values) -> Bool {
            switch self {
            case .number(let key): values.isGiven(key)
            case .text(let key): values.isGiven(key)
            case .identifier(let key): values.isGiven(key)
            }
        }

        /// The octets that the value stands for in a format; nil when it was not given or does not fit.
        func octets(_ values: Values, _ field: IdentityField) -> [UInt8]? {
            switch self {
            case .number(let key): values[key].flatMap { FormatCatalog.octets(field, text: "\($0)") }
            case .text(let key): values[key].flatMap { FormatCatalog.octets(field, text: $0) }
            case .identifier(let key):
                // The digits of a number are no hexadecimal digits, and those in quotes no number.
                switch (values[key], field.spelling) {
                case (.integer(let value), .number): FormatCatalog.octets(field, text: "\(value)")
                case (.text, .number), (.integer, _), (nil, _): nil
                case (.text(let text), _): FormatCatalog.octets(field, text: text)
                }
            }
        }
    }

    let format: Key<String>
    /// The built-in formats and those of the file.
    let formats: FormatCatalog
    /// Formats of the file of which nothing more is known, for the mistakes in them.
    private let incomplete: Set<String>
    /// One for each name, in the order of the catalog.
    private let fields: [FieldKey]

    init(_ formats: FormatCatalog, _ custom: CustomFormats) {
        self.formats = custom.catalog(with: formats)
        incomplete = custom.incomplete
        let names = formats.formats.map { "\"\($0.name)\"" }.joined(separator: ", ")
        format = .text(
            "format", default: "ibeacon",
            .init(maximumBytes: 64, expected: "one of \(names), or a name of \"formats\""),
            "The format of its frames.")
        var fields: [FieldKey] = []
        let identifiers = (1...LayoutString.maximumIdentifiers).map { "id\($0)" }
        for format in formats.formats {
            // Two formats may share a key, which then is spelled in one way.
            for field in format.fields
            where !identifiers.contains(field.key) && !fields.contains(where: { $0.declaration.name == field.key }) {
                fields.append(Self.key(field, format.name))
            }
        }
        self.fields = fields + identifiers.map(Self.identifierKey)
    }

    private static func key(_ field: IdentityField, _ format: String) -> FieldKey {
        let expected = expectation(field, format)
        func text(_ maximumBytes: Int, _ pattern: String?, _ check: @escaping @Sendable (String) -> Bool) -> FieldKey {
            let rule = Shape.TextRule(maximumBytes: maximumBytes, pattern: pattern, expected: expected, check: check)
            return .text(.optionalText(field.key, rule, field.summary))
        }
        switch field.spelling {
        case .number: return .number(.optionalInteger(field.key, in: 0...65_535, field.summary))
        case .uuid:
            let pattern = "^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Fa-f]{32})$"
            return text(36, pattern) { UUIDText.octets($0) != nil }
        case .hexadecimal(let octets):
            return text(octets * 2, "^[0-9A-Fa-f]{\(octets * 2)}$") { Hexadecimal.octets($0)?.count == octets }
        case .custom(_, let parse):
            return text(255, nil) { parse($0).map { $0.count <= BeaconIdentity.capacity } ?? false }
        }
    }

    private static func identifierKey(_ name: String) -> FieldKey {
        let rule = Shape.TextRule(
            maximumBytes: BeaconIdentity.capacity * 2,
            expected: "a UUID, a whole number from 0 to 65535 or hexadecimal digits, as the format has it")
        return .identifier(
            .optionalIntegerOrText(
                name, in: 0...65_535, rule,
                "Identifier \(name.dropFirst(2)) of an altbeacon or of a format of \"formats\"."))
    }

    /// What is expected as the value of a field, as the words behind "expected".
    private static func expectation(_ field: IdentityField, _ format: String) -> String {
        switch field.spelling {
        case .number: "a whole number from 0 to 65535"
        case .uuid: "a UUID such as \"fda50693-a4e2-4fb1-afcf-c6eb07647825\""
        case .hexadecimal(let octets): "\(octets * 2) hexadecimal digits"
        case .custom:
            field.example.map { "a value such as \"\($0)\"" } ?? "a value of \"\(field.key)\" that \(format) can carry"
        }
    }

    /// `format` and the fields.
    var declarations: [AnyKey] { [format.declaration] + fields.map(\.declaration) }

    /// Whether any field was given.
    func isGiven(_ values: Values) -> Bool { fields.contains { $0.isGiven(values) } }

    /// Complains about a format that is not known.
    var formatCheck: Section.Check {
        Section.Check([format.declaration]) { values, complaints in
            let name = values[format]
            guard formats.id(named: name) == nil, !incomplete.contains(name) else { return }
            let names = formats.formats.map(\.name) + incomplete.sorted()
            complaints.add(
                format.declaration.name, Suggestion.complaint(about: name, kind: format.declaration.name, in: names))
        }
    }

    /// Complains about fields that the format does not have, values that it cannot carry, and gaps.
    ///
    /// - Parameter isComplete: whether every field of the format must be given.
    func check(_ values: Values, isComplete: Bool, _ complaints: inout Complaints) {
        guard let format = chosenFormat(values)?.format else { return }
        guard !format.fields.isEmpty else {
            complaints.add(self.format.declaration.name, "frames of format \"\(format.name)\" name no beacon")
            return
        }
        let names = format.fields.map(\.key)
        let list = names.map { "\"\($0)\"" }.joined(separator: ", ")
        var given: Set<String> = []
        for key in fields where key.isGiven(values) {
            let name = key.declaration.name
            given.insert(name)
            if let field = format.fields.first(where: { $0.key == name }) {
                if key.octets(values, field) == nil {
                    complaints.add(name, "expected \(Self.expectation(field, format.name))")
                }
            } else if let owner = formats.formats.first(where: { $0.fields.contains { $0.key == name } })?.name {
                complaints.add(name, "a field of format \"\(owner)\", but the format here is \"\(format.name)\"")
            } else {
                complaints.add(name, "format \"\(format.name)\" has no such field; it has \(list)")
            }
        }
        // Likely the format is what is wrong.
        guard given.isSubset(of: names) else { return }
        guard let firstMissing = names.firstIndex(where: { !given.contains($0) }) else { return }
        if let behind = names[firstMissing...].first(where: given.contains) {
            complaints.add(behind, "needs \"\(names[firstMissing])\" too")
        } else if isComplete {
            complaints.add(
                nil, "\"\(names[firstMissing])\" is missing; a beacon of format \"\(format.name)\" needs \(list)")
        }
    }

    /// The complete identity; nil when fields are missing.
    func identity(_ values: Values) -> BeaconIdentity? {
        guard let (format, id) = chosenFormat(values) else { return nil }
        let given = octets(values, format)
        return given.fields == format.fields.count ? Self.identity(id, given.octets) : nil
    }

    /// The identities whose leading fields are those that were given.
    func pattern(_ values: Values) -> IdentityPattern? {
        guard let (format, id) = chosenFormat(values) else { return nil }
        let octets = octets(values, format).octets
        return IdentityPattern(identity: Self.identity(id, octets), prefix: UInt8(clamping: octets.count))
    }

    private func chosenFormat(_ values: Values) -> (format: BeaconFormat, id: FormatID)? {
        guard let id = formats.id(named: values[format]), let format = formats[id] else { return nil }
        return (format, id)
    }

    /// The octets of the leading fields that were given, and how many fields those are.
    private func octets(_ values: Values, _ format: BeaconFormat) -> (octets: [UInt8], fields: Int) {
        var octets: [UInt8] = []
        for (index, field) in format.fields.enumerated() {
            guard let key = fields.first(where: { $0.declaration.name == field.key }),
                let value = key.octets(values, field)
            else { return (octets, index) }
            octets += value
        }
        return (octets, format.fields.count)
    }

    private static func identity(_ format: FormatID, _ octets: [UInt8]) -> BeaconIdentity {
        BeaconIdentity(format: format, octets: octets.span)
    }
}
