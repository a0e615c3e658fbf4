// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Where something stands in a file.
public struct Place: Sendable {
    /// From 1.
    public let line: Int
    /// In bytes, from 0; the order of messages.
    public let offset: Int
}

/// A value of a JSON document with its place.
///
/// jansson forgets lines and keeps only the last of two equal keys, so the tree is an index of a text that jansson
/// has accepted: it finds the tokens and their places, and jansson reads what they say.
public struct Node: Sendable {
    public indirect enum Content: Sendable {
        case null
        case boolean(Bool)
        case integer(Int64)
        case number(Double)
        case text(String)
        case list([Node])
        case object([Member])
    }

    public struct Member: Sendable {
        public let key: String
        public let place: Place
        public let value: Node
    }

    public let content: Content
    public let place: Place

    /// The value of a member, when this is an object that has it; the first of equal keys.
    public subscript(key: String) -> Node? {
        guard case .object(let members) = content else { return nil }
        return members.first { $0.key == key }?.value
    }
}

/// A JSON text, read.
public struct Document: Sendable {
    /// Configuration is at most a few levels deep; more is a mistake, and a bound for the stack.
    static let maximumDepth = 64

    public let root: Node

    /// - Throws: what is wrong with the text, and where.
    public init(_ text: [UInt8]) throws(JSONFault) {
        if text.starts(with: [0xEF, 0xBB, 0xBF]) {
            throw JSONFault(line: 1, column: 1, text: "begins with a byte order mark; save the file without it")
        }
        if let fault = JSONText.fault(in: text) {
            let isBlank = text.allSatisfy { Index.isSpace($0) }
            throw isBlank
                ? JSONFault(line: 1, column: 1, text: "the file is empty; {} is the smallest configuration") : fault
        }
        var index = Index(text: text)
        root = try index.node(depth: 0)
    }
}

/// Walks over a text that is known to be JSON. On any other text it throws or gives a wrong tree, but never traps.
private struct Index {
    let text: [UInt8]
    private var position = 0
    private var line = 1
    private var lineStart = 0

    init(text: [UInt8]) {
        self.text = text
    }

    static func isSpace(_ character: UInt8) -> Bool {
        character == 0x20 || character == 0x0A || character == 0x0D || character == 0x09
    }

    mutating func node(depth: Int) throws(JSONFault) -> Node {
        skipSpace()
        guard depth <= Document.maximumDepth else { throw fault("nested deeper than \(Document.maximumDepth) levels") }
        let place = place
        let content: Node.Content
        switch peek {
        case UInt8(ascii: "{"): content = .object(try members(depth: depth))
        case UInt8(ascii: "["): content = .list(try elements(depth: depth))
        case UInt8(ascii: "\""): content = .text(try string())
        default: content = try word()
        }
        return Node(content: content, place: place)
    }

    private mutating func members(depth: Int) throws(JSONFault) -> [Node.Member] {
        var members: [Node.Member] = []
        while try advances(to: UInt8(ascii: "}")) {
            let place = place
            let key = try string()
            skipSpace()
            try skip(UInt8(ascii: ":"))
            members.append(Node.Member(key: key, place: place, value: try node(depth: depth + 1)))
        }
        return members
    }

    private mutating func elements(depth: Int) throws(JSONFault) -> [Node] {
        var elements: [Node] = []
        while try advances(to: UInt8(ascii: "]")) {
            elements.append(try node(depth: depth + 1))
        }
        return elements
    }

    /// Steps over the opening bracket or a comma; false behind the closing bracket.
    private mutating func advances(to closing: UInt8) throws(JSONFault) -> Bool {
        skipSpace()
        if peek != closing {
            guard position < text.count else { throw unexpected }
            position += 1
            skipSpace()
        }
        guard peek == closing else { return true }
        position += 1
        return false
    }

    private mutating func string() throws(JSONFault) -> String {
        let start = position
        try skip(UInt8(ascii: "\""))
        var hasEscape = false
        while let character = peek, character != UInt8(ascii: "\"") {
            if character == UInt8(ascii: "\\") {
                hasEscape = true
                position += 1
            }
            position += 1
        }
        try skip(UInt8(ascii: "\""))
        guard hasEscape else { return String(decoding: text[(start + 1)..<(position - 1)], as: UTF8.self) }
        guard case .text(let string) = JSONText.scalar(text[start..<position]) else { throw unexpected }
        return string
    }

    /// A number, `true`, `false` or `null`.
    private mutating func word() throws(JSONFault) -> Node.Content {
        let start = position
        while let character = peek, !Self.isSpace(character), !Self.isPunctuation(character) { position += 1 }
        let token = text[start..<position]
        switch token.first {
        case UInt8(ascii: "t"): return .boolean(true)
        case UInt8(ascii: "f"): return .boolean(false)
        case UInt8(ascii: "n"): return .null
        default: break
        }
        switch JSONText.scalar(token) {
        case .integer(let value): return .integer(value)
        case .number(let value): return .number(value)
        case .text, nil: throw unexpected
        }
    }

    private static func isPunctuation(_ character: UInt8) -> Bool {
        character == UInt8(ascii: ",") || character == UInt8(ascii: "]") || character == UInt8(ascii: "}")
    }

    private var peek: UInt8? { position < text.count ? text[position] : nil }

    private var place: Place { Place(line: line, offset: position) }

    private var unexpected: JSONFault { fault("expected JSON") }

    private func fault(_ words: String) -> JSONFault {
        let column =
            String(decoding: text[lineStart..<min(position, text.count)], as: UTF8.self).unicodeScalars.count + 1
        return JSONFault(line: line, column: column, text: words)
    }

    private mutating func skip(_ character: UInt8) throws(JSONFault) {
        guard peek == character else { throw unexpected }
        position += 1
    }

    private mutating func skipSpace() {
        while let character = peek, Self.isSpace(character) {
            position += 1
            if character == UInt8(ascii: "\n") {
                line += 1
                lineStart = position
            }
        }
    }
}
