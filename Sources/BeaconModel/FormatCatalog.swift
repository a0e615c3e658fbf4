// SPDX-License-Identifier: Apache-2.0

/// What everybody downstream knows of a beacon format: its name and how its identities are spelled.
///
/// From this one description come the fields of an event, the levels of a topic, and the keys by which a person names
/// a beacon in the configuration.
public struct BeaconFormat: Sendable {
    /// `ibeacon`: `lower-kebab-case`, stable for ever; it stands in events, topics and the store.
    public let name: String
    /// The fields of the identity, most significant first; none for frames that name no beacon.
    public let fields: [IdentityField]
    /// Writes what a frame says beyond its identity, as members of the current object. The octets are those of a frame
    /// of this format, as its decoder accepted them.
    public let describe: @Sendable (_ frame: Span<UInt8>, _ writer: inout JSONWriter) -> Void

    public init(
        name: String, fields: [IdentityField],
        describe: @escaping @Sendable (_ frame: Span<UInt8>, _ writer: inout JSONWriter) -> Void = { _, _ in }
    ) {
        self.name = name
        self.fields = fields
        self.describe = describe
    }
}

/// One part of a beacon's identity, as people write it.
public struct IdentityField: Sendable {
    public enum Spelling: Sendable {
        /// 16 octets as `fda50693-a4e2-4fb1-afcf-c6eb07647825`.
        case uuid
        /// Two octets, big-endian, as a decimal number.
        case number
        /// This many octets as lower-case hexadecimal digits.
        case hexadecimal(octets: Int)
        /// All remaining octets, by functions of the format. `spell` appends UTF-8, and `parse` returns nil for what it
        /// cannot encode.
        case custom(
            spell: @Sendable (_ octets: Span<UInt8>, _ text: inout [UInt8]) -> Void,
            parse: @Sendable (_ text: String) -> [UInt8]?)
    }

    /// `lower_snake_case`, as in events and in the configuration.
    public let key: String
    public let spelling: Spelling
    /// One sentence for the configuration reference.
    public let summary: String
    /// A value as people write it, where the spelling does not say it.
    public let example: String?

    public init(key: String, spelling: Spelling, summary: String, example: String? = nil) {
        self.key = key
        self.spelling = spelling
        self.summary = summary
        self.example = example
    }

    /// Octets that the field takes; nil means all that remain.
    public var octets: Int? {
        switch spelling {
        case .uuid: 16
        case .number: 2
        case .hexadecimal(let octets): octets
        case .custom: nil
        }
    }

    /// Appends the octets as people write them, in UTF-8.
    fileprivate func spell(_ octets: Span<UInt8>, to text: inout [UInt8]) {
        switch spelling {
        case .uuid: UUIDText.append(octets, to: &text)
        case .number: Decimal.append(UInt64(octets[0]) << 8 | UInt64(octets[1]), to: &text)
        case .hexadecimal: Hexadecimal.append(octets, to: &text)
        case .custom(let spell, _): spell(octets, &text)
        }
    }

    fileprivate func write(_ octets: Span<UInt8>, into writer: inout JSONWriter) {
        writer.key(key)
        switch spelling {
        case .uuid: writer.uuid(octets)
        case .number: writer.integer(UInt16(octets[0]) << 8 | UInt16(octets[1]))
        case .hexadecimal: writer.hexadecimal(octets)
        case .custom(let spell, _): writer.string { spell(octets, &$0) }
        }
    }
}

/// All formats that this process knows, by number. A ``FormatID`` is an index into it.
public struct FormatCatalog: Sendable {
    public let formats: [BeaconFormat]

    /// - Precondition: at most 255 formats, names unique.
    public init(_ formats: [BeaconFormat]) {
        precondition(formats.count < 256, "a FormatID is one octet")
        self.formats = formats
    }

    public subscript(id: FormatID) -> BeaconFormat? {
        Int(id.rawValue) < formats.count ? formats[Int(id.rawValue)] : nil
    }

    public func id(named name: String) -> FormatID? {
        formats.firstIndex { $0.name == name }.map { FormatID(rawValue: UInt8($0)) }
    }

    /// Calls `body` with each field of the identity and its value as people write it, in the format's order: the levels
    /// of a topic, the words of a log line, not escaped.
    public func forEachField(of identity: BeaconIdentity, _ body: (IdentityField, String) -> Void) {
        forEachField(inOctetsOf: identity) { field, octets in
            var text: [UInt8] = []
            field.spell(octets, to: &text)
            body(field, String(decoding: text, as: UTF8.self))
        }
    }

    /// The name of the format and the fields with slashes between them, as people are shown it: `ibeacon UUID/1/2`.
    public func text(of identity: BeaconIdentity) -> String {
        var fields: [String] = []
        forEachField(of: identity) { fields.append($1) }
        return "\(self[identity.format]?.name ?? "") \(fields.joined(separator: "/"))"
    }

    /// Whether a text is what ``text(of:)`` spells, with the name of the format or without it, in either case.
    public func isText(_ text: String, of identity: BeaconIdentity) -> Bool {
        let whole = self.text(of: identity).lowercased()
        let wanted = text.lowercased()
        return whole == wanted || whole.split(separator: " ", maxSplits: 1).last.map(String.init) == wanted
    }

    /// Reads what ``text(of:)`` spells, in either case.
    ///
    /// - Parameter format: the format where the text names none.
    /// - Returns: nil when a field is missing or no value of its format.
    public func identity(_ text: String, format: String = "ibeacon") -> BeaconIdentity? {
        let words = text.split(separator: " ", maxSplits: 1)
        if words.count == 2, let id = id(named: words[0].lowercased()) { return identity(words[1], id) }
        return id(named: format).flatMap { identity(text[...], $0) }
    }

    private func identity(_ text: Substring, _ id: FormatID) -> BeaconIdentity? {
        guard let fields = self[id]?.fields, !fields.isEmpty else { return nil }
        // The last field of a format may have slashes of its own, as a URL has.
        let values = text.split(separator: "/", maxSplits: fields.count - 1, omittingEmptySubsequences: false)
        guard values.count == fields.count else { return nil }
        var octets: [UInt8] = []
        for (field, value) in zip(fields, values) {
            guard let value = Self.octets(field, text: String(value)) else { return nil }
            octets += value
        }
        guard octets.count <= BeaconIdentity.capacity else { return nil }
        return BeaconIdentity(format: id, octets: octets.span)
    }

    /// Writes `format` and the fields of the identity as members of the current object.
    public func write(_ identity: BeaconIdentity, into writer: inout JSONWriter) {
        writer.key("format")
        let place = Int(identity.format.rawValue)
        writer.string(place < formats.count ? formats[place].name : "")
        forEachField(inOctetsOf: identity) { field, octets in field.write(octets, into: &writer) }
    }

    private func forEachField(inOctetsOf identity: BeaconIdentity, _ body: (IdentityField, Span<UInt8>) -> Void) {
        guard Int(identity.format.rawValue) < formats.count else { return }
        let octets = identity.octets
        var offset = 0
        let fields = formats[Int(identity.format.rawValue)].fields
        // A span lends its elements; an array would copy each, with the references in it.
        let lent = fields.span
        for index in lent.indices {
            let count = lent[index].octets ?? Int(identity.count) - offset
            guard count >= 0, offset + count <= Int(identity.count) else { return }
            body(lent[index], octets.span.extracting(offset..<offset + count))
            offset += count
        }
    }

    /// The octets of a field that a person wrote; nil when it is no value of that field.
    public static func octets(_ field: IdentityField, text: String) -> [UInt8]? {
        switch field.spelling {
        case .uuid: UUIDText.octets(text)
        case .number: UInt16(text).map { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
        case .hexadecimal(let count):
            Hexadecimal.octets(text).flatMap { $0.count == count ? $0 : nil }
        case .custom(_, let parse): parse(text)
        }
    }
}
