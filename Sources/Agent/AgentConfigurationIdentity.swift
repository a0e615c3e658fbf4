// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// How the configuration names a beacon or a set of them: `format`, and one key for each identity field of each format.
///
/// The fields of a format are given from the front: a `uuid`, a `uuid` and a `major`, or all three.
struct IdentityKeys: Sendable {
    private enum FieldKey: Sendable {
        case number(Key<Int64?>)
        case text(Key<String?>)

        var declaration: AnyKey {
            switch self {
            case .number(let key): key.declaration
            case .text(let key): key.declaration
            }
        }

        /// The value as the format's parser takes it; nil when it was not given.
        func text(_ values: Values) -> String? {
            switch self {
            case .number(let key): values[key].map { "\($0)" }
            case .text(let key): values[key]
            }
        }
    }

    let format: Key<String>
    private let formats: FormatCatalog
    /// One for each name, in the order of the catalog.
    private let fields: [FieldKey]

    init(_ formats: FormatCatalog) {
        self.formats = formats
        format = .choice(
            "format", default: "ibeacon", of: formats.formats.map(\.name), "The format of its frames.")
        var fields: [FieldKey] = []
        for format in formats.formats {
            // Two formats may share a key, which then is spelled in one way.
            for field in format.fields where !fields.contains(where: { $0.declaration.name == field.key }) {
                fields.append(Self.key(field, format.name))
            }
        }
        self.fields = fields
    }

    private static func key(_ field: IdentityField, _ format: String) -> FieldKey {
        switch field.spelling {
        case .number: .number(.optionalInteger(field.key, in: 0...65_535, field.summary))
        case .uuid:
            .text(
                .optionalText(
                    field.key,
                    .init(
                        maximumBytes: 36,
                        pattern: "^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Fa-f]{32})$",
                        expected: "a UUID such as \"fda50693-a4e2-4fb1-afcf-c6eb07647825\"",
                        check: { UUIDText.octets($0) != nil }), field.summary))
        case .hexadecimal(let octets):
            .text(
                .optionalText(
                    field.key,
                    .init(
                        maximumBytes: octets * 2, pattern: "^[0-9A-Fa-f]{\(octets * 2)}$",
                        expected: "\(octets * 2) hexadecimal digits",
                        check: { Hexadecimal.octets($0)?.count == octets }), field.summary))
        case .custom(_, let parse):
            .text(
                .optionalText(
                    field.key,
                    .init(
                        maximumBytes: 255, expected: "a value of \"\(field.key)\" that \(format) can carry",
                        check: { parse($0).map { $0.count <= BeaconIdentity.capacity } ?? false }), field.summary))
        }
    }

    /// `format` and the fields.
    var declarations: [AnyKey] { [format.declaration] + fields.map(\.declaration) }

    /// Whether any field was given.
    func isGiven(_ values: Values) -> Bool { fields.contains { $0.text(values) != nil } }

    /// Complains about fields that the format does not have and about gaps.
    ///
    /// - Parameter isComplete: whether every field of the format must be given.
    func check(_ values: Values, isComplete: Bool, _ complaints: inout Complaints) {
        guard let format = chosenFormat(values)?.format else { return }
        let names = format.fields.map(\.key)
        let list = names.map { "\"\($0)\"" }.joined(separator: ", ")
        var given: Set<String> = []
        for field in fields where field.text(values) != nil {
            let name = field.declaration.name
            given.insert(name)
            if !names.contains(name) {
                let owner = formats.formats.first { $0.fields.contains { $0.key == name } }?.name ?? ""
                complaints.add(name, "a field of format \"\(owner)\", but the format here is \"\(format.name)\"")
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
                let text = key.text(values), let value = FormatCatalog.octets(field, text: text)
            else { return (octets, index) }
            octets += value
        }
        return (octets, format.fields.count)
    }

    private static func identity(_ format: FormatID, _ octets: [UInt8]) -> BeaconIdentity {
        BeaconIdentity(format: format, octets: octets.span)
    }
}
