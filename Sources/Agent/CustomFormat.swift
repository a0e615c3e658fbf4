// SPDX-License-Identifier: Apache-2.0

public import BeaconFormats
import BeaconModel
import Configuration

/// A beacon format that the configuration adds.
public struct CustomFormat: Equatable, Sendable {
    public let name: String
    public let layout: LayoutString
    /// Of manufacturer data; nil for every company.
    public let companyID: UInt16?

    public var definition: FormatDefinition {
        FormatDefinition(name: name, layout: layout, companyID: companyID)
    }
}

/// The formats that a document adds, found before the document is read as a whole, because its beacons name them.
///
/// Mistakes are left out here; the declared keys complain about them.
struct CustomFormats: Sendable {
    /// So many that with the built-in ones they stay within a ``FormatID``.
    static let maximumCount = 64

    private(set) var formats: [CustomFormat] = []
    /// Names that stand in the document without a layout that can be read.
    private(set) var incomplete: Set<String> = []

    init() {}

    init(_ document: Node, builtin: FormatCatalog) {
        typealias Keys = AgentConfigurationKeys.Format
        guard case .list(let entries) = document[AgentConfigurationKeys.formatsKey]?.content else { return }
        for entry in entries.prefix(Self.maximumCount) {
            guard case .text(let name) = entry[Keys.name.declaration.name]?.content, builtin.id(named: name) == nil,
                !formats.contains(where: { $0.name == name })
            else { continue }
            var company: UInt16?
            if case .integer(let id) = entry[Keys.companyID.declaration.name]?.content {
                company = UInt16(exactly: id)
            }
            if case .text(let text) = entry[Keys.layout.declaration.name]?.content,
                let layout = try? LayoutString(text)
            {
                formats.append(CustomFormat(name: name, layout: layout, companyID: company))
            } else {
                incomplete.insert(name)
            }
        }
    }

    /// The built-in formats and these.
    func catalog(with builtin: FormatCatalog) -> FormatCatalog {
        formats.isEmpty ? builtin : FormatCatalog(builtin.formats + formats.map(\.definition.format))
    }
}
