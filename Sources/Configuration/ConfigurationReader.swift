// SPDX-License-Identifier: Apache-2.0

/// Reads a JSON text as the values of a declared section.
public enum ConfigurationReader {
    /// The largest file in bytes: ten thousand beacons with all their keys fit four times.
    public static let maximumBytes = 4 << 20

    /// - Parameters:
    ///   - text: JSON in UTF-8, strict but for keys that begin with `//`, which are comments.
    ///   - file: how messages name the file.
    /// - Throws: everything that is wrong, in file order. A mistake of syntax is alone: nothing is known behind it.
    public static func read(
        _ text: [UInt8], file: String, section: Section
    ) throws(ConfigurationError) -> Values {
        try read(text, file: file) { _ in section }
    }

    /// Reads a text in which one part says what may stand in another.
    ///
    /// - Parameter section: makes the declaration, after a look at the document, which may hold anything.
    public static func read(
        _ text: [UInt8], file: String, section: (Node) -> Section
    ) throws(ConfigurationError) -> Values {
        guard text.count <= maximumBytes else {
            let problem = Problem(file: file, line: 0, text: "larger than \(SizeText.text(Int64(maximumBytes)))")
            throw ConfigurationError(problems: [problem])
        }
        let document: Document
        do {
            document = try Document(text)
        } catch {
            let problem = Problem(file: file, line: error.line, column: error.column, text: error.text)
            throw ConfigurationError(problems: [problem])
        }
        var reader = NodeReader(file: file)
        let values = reader.section(section(document.root), document.root, Path())
        guard let values, reader.problems.isEmpty else { throw ConfigurationError(problems: reader.problems) }
        return values
    }
}

/// Reads nodes as shapes and notes what is wrong.
private struct NodeReader {
    let file: String
    private var found: [(offset: Int, problem: Problem)] = []

    init(file: String) {
        self.file = file
    }

    /// In file order; at one place, in the order in which they were found.
    var problems: [Problem] {
        found.enumerated().sorted { ($0.element.offset, $0.offset) < ($1.element.offset, $1.offset) }
            .map(\.element.problem)
    }

    private mutating func note(_ place: Place, _ path: Path, _ text: String) {
        found.append((place.offset, Problem(file: file, line: place.line, path: path.description, text: text)))
    }

    // MARK: Objects

    mutating func section(_ section: Section, _ node: Node, _ path: Path) -> Values? {
        guard case .object(let members) = node.content else {
            note(node.place, path, "expected an object, found \(node.content.words(showsNumbers: true))")
            return nil
        }
        return values(section, members, node, path)
    }

    /// - Parameter inner: the section under `config` of a plugin, nil when its kind is not known.
    private mutating func plugin(_ common: Section, _ kinds: [Shape.PluginKind], _ node: Node, _ path: Path) -> Values?
    {
        guard case .object(let members) = node.content else {
            note(node.place, path, "expected an object, found \(node.content.words(showsNumbers: true))")
            return nil
        }
        var kind: Shape.PluginKind?
        if case .text(let name) = members.last(where: { $0.key == PluginKey.kind })?.value.content {
            kind = kinds.first { $0.name == name }
        }
        let section = common.pluginSection(kinds: kinds.map(\.name), of: kind)
        // Without a kind nothing can be said about what stands under `config`.
        let understood = kind == nil ? members.filter { $0.key != PluginKey.config } : members
        return values(section, understood, node, path, inner: kind?.section)
    }

    private mutating func values(
        _ section: Section, _ members: [Node.Member], _ node: Node, _ path: Path, inner: Section? = nil
    ) -> Values? {
        var given: [String: Value] = [:]
        var wrong: Set<String> = []
        var first: [String: Place] = [:]
        let before = found.count
        for member in members {
            if member.key.utf8.starts(with: "//".utf8) {
                comment(member, path)
                continue
            }
            if let place = first[member.key] {
                note(
                    member.place, path.appending(.key(member.key)), "duplicate key; the first is on line \(place.line)")
                wrong.insert(member.key)
            } else {
                first[member.key] = member.place
            }
            guard let key = section.keys.first(where: { $0.name == member.key }) else {
                if let meant = unknown(member, section, path, inner) { wrong.insert(meant) }
                continue
            }
            let count = found.count
            given[key.name] = value(key.shape, member.value, path.appending(.key(key.name)))
            if found.count > count { wrong.insert(key.name) }
        }
        for key in section.keys where key.mustBeGiven && first[key.name] == nil && !wrong.contains(key.name) {
            missing(key, node, path)
            wrong.insert(key.name)
        }
        let values = Values(given: given, line: node.place.line)
        for check in section.checks where wrong.isDisjoint(with: check.needs) {
            var complaints = Complaints()
            check.body(values, &complaints)
            for complaint in complaints.items { note(complaint, node, path) }
        }
        return found.count == before ? values : nil
    }

    private mutating func comment(_ member: Node.Member, _ path: Path) {
        if case .text = member.value.content { return }
        note(
            member.value.place, path.appending(.key(member.key)),
            "expected text behind a comment key, found \(member.value.content.words(showsNumbers: false))")
    }

    /// Returns the key that was probably meant.
    private mutating func unknown(
        _ member: Node.Member, _ section: Section, _ path: Path, _ inner: Section?
    ) -> String? {
        let names = section.keys.map(\.name)
        let hint =
            if names.isEmpty {
                "this object takes no keys"
            } else if inner?.keys.contains(where: { $0.name == member.key }) == true {
                "it belongs inside \"\(PluginKey.config)\""
            } else {
                Suggestion.hint(for: member.key, in: names, all: "valid keys")
            }
        note(member.place, path.appending(.key(member.key)), "unknown key; \(hint)")
        return Suggestion.nearest(to: member.key, in: names)
    }

    private mutating func missing(_ key: AnyKey, _ node: Node, _ path: Path) {
        var text = "\"\(key.name)\" is missing"
        if let example = key.example {
            text += ", for example \"\(key.name)\": \(example)"
        } else if case .section(let section) = key.shape {
            text += "; it needs \(section.keys.filter(\.mustBeGiven).map { "\"\($0.name)\"" }.joined(separator: ", "))"
        } else {
            text += "; expected \(key.shape.expectation)"
        }
        note(node.place, path, text)
    }

    /// Notes a complaint at the value that it names, or at the nearest one around it that was written.
    private mutating func note(_ complaint: (path: [PathStep], text: String), _ node: Node, _ path: Path) {
        var place = node.place
        var path = path
        var node: Node? = node
        for step in complaint.path {
            path = path.appending(step)
            switch (step, node?.content) {
            case (.key(let key), .object(let members)):
                let member = members.last { $0.key == key }
                node = member?.value
                if let member { place = member.value.place }
            case (.index(let index), .list(let elements)) where elements.indices.contains(index):
                node = elements[index]
                place = elements[index].place
            default: node = nil
            }
        }
        note(place, path, complaint.text)
    }

    // MARK: Values

    /// nil when it is wrong, which was noted.
    private mutating func value(_ shape: Shape, _ node: Node, _ path: Path) -> Value? {
        switch (shape, node.content) {
        case (.boolean, .boolean(let value)):
            return .boolean(value)
        case (.integer(let range), .integer(let value)) where range.contains(value):
            return .integer(value)
        // JSON does not tell 1.0 from 1, and the schema neither.
        case (.integer(let range), .number(let number)), (.integerOrText(let range, _), .number(let number)):
            if let value = Int64(exactly: number), range.contains(value) { return .integer(value) }
        case (.number(let range), .number(let value)) where range.contains(value):
            return .number(value)
        case (.number(let range), .integer(let value)) where range.contains(Double(value)):
            return .number(Double(value))
        case (.text(let rule), .text(let text)):
            return self.text(rule, text, node, path)
        case (.integerOrText(let range, _), .integer(let value)) where range.contains(value):
            return .integer(value)
        case (.integerOrText(_, let rule), .text(let text)):
            return self.text(rule, text, node, path)
        case (.choice(let words), .text(let word)):
            if words.contains(word) { return .text(word) }
            note(node.place, path, Suggestion.complaint(about: word, kind: path.lastKey ?? "word", in: words))
            return nil
        case (.duration(let range), .text(let text)):
            let interval = DurationText.interval(text)
            if let interval, range.contains(interval) { return .duration(interval) }
            return spelled(shape, text, isRead: interval != nil, node, path)
        case (.size(let range), .text(let text)):
            let bytes = SizeText.bytes(text)
            if let bytes, range.contains(bytes) { return .size(bytes) }
            return spelled(shape, text, isRead: bytes != nil, node, path)
        case (.list(let shape, let count), .list(let elements)) where count.contains(elements.count):
            var values: [Value] = []
            for (index, element) in elements.enumerated() {
                if let value = value(shape, element, path.appending(.index(index))) { values.append(value) }
            }
            return .list(values)
        case (.list, .list(let elements)):
            note(node.place, path, "expected \(shape.expectation), found \(elements.count)")
            return nil
        case (.section(let section), _):
            return self.section(section, node, path).map { .section($0) }
        case (.plugin(let common, let kinds), _):
            return plugin(common, kinds, node, path).map { .section($0) }
        default: break
        }
        var isText = false
        if case .text = shape { isText = true }
        let spelling = shape.spelling.map { " \($0)" } ?? ""
        let found = node.content.words(showsNumbers: !isText)
        note(node.place, path, "expected \(shape.expectation)\(spelling), found \(found)")
        return nil
    }

    private mutating func text(_ rule: Shape.TextRule, _ text: String, _ node: Node, _ path: Path) -> Value? {
        if text.isEmpty {
            if rule.mayBeEmpty { return .text(text) }
            note(node.place, path, "expected \(rule.expected), found an empty text")
        } else if text.utf8.count > rule.maximumBytes {
            note(node.place, path, "expected at most \(rule.maximumBytes) bytes, found \(text.utf8.count)")
        } else if !rule.check(text) {
            note(node.place, path, "expected \(rule.expected)")
        } else {
            return .text(text)
        }
        return nil
    }

    private mutating func spelled(_ shape: Shape, _ text: String, isRead: Bool, _ node: Node, _ path: Path) -> Value? {
        let spelling = isRead ? "" : shape.spelling.map { " \($0)" } ?? ""
        note(node.place, path, "expected \(shape.expectation)\(spelling), found \(quoted(text))")
        return nil
    }
}
