// SPDX-License-Identifier: Apache-2.0

import CJansson

/// Where and why a text is no JSON.
public struct JSONFault: Error {
    /// From 1.
    public let line: Int
    /// In characters, from 1.
    public let column: Int
    public let text: String
}

/// What jansson is asked: whether a text is JSON, and what a scalar in it says. This file is the only one that knows
/// the library.
enum JSONText {
    enum Scalar {
        case integer(Int64)
        case number(Double)
        case text(String)
    }

    /// nil when the text is JSON of any kind, in UTF-8, without NUL in its strings.
    static func fault(in text: [UInt8]) -> JSONFault? {
        var error = json_error_t()
        guard let document = unsafe load(text[...], &error) else {
            return JSONFault(
                line: max(1, Int(error.line)), column: max(1, Int(error.column)),
                text: words(message(error)))
        }
        unsafe json_decref(document)
        return nil
    }

    /// The value of a number or a string; nil when it is neither.
    static func scalar(_ token: ArraySlice<UInt8>) -> Scalar? {
        var error = json_error_t()
        guard let value = unsafe load(token, &error) else { return nil }
        defer { unsafe json_decref(value) }
        switch unsafe value.pointee.type {
        case JSON_INTEGER: return .integer(unsafe json_integer_value(value))
        case JSON_REAL: return .number(unsafe json_real_value(value))
        case JSON_STRING:
            guard let start = unsafe json_string_value(value) else { return nil }
            let octets = unsafe UnsafeRawBufferPointer(start: start, count: json_string_length(value))
            return .text(unsafe String(decoding: octets, as: UTF8.self))
        default: return nil
        }
    }

    private static func load(_ text: ArraySlice<UInt8>, _ error: inout json_error_t) -> UnsafeMutablePointer<json_t>? {
        unsafe text.withUnsafeBytes { buffer in
            unsafe json_loadb(
                buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count, Int(JSON_DECODE_ANY), &error)
        }
    }

    private static func message(_ error: json_error_t) -> String {
        unsafe withUnsafeBytes(of: error.text) { buffer in
            unsafe String(decoding: buffer.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    /// The library's message in words for somebody who edits a file.
    private static func words(_ message: String) -> String {
        let cause = causes.first { message.utf8.starts(with: $0.beginning.utf8) }?.words ?? message
        guard let near = message.range(of: " near ") else { return cause }
        if message[near.upperBound...] == "end of file" { return "\(cause); the file ends too early" }
        let token = String(message[near.upperBound...].dropFirst().dropLast())
        // Anything else may be a piece of a password; the position says enough.
        guard let hint = hints.first(where: { $0.token == token })?.words else { return cause }
        return "\(cause), found \(quoted(token))\(hint)"
    }

    private static let causes: [(beginning: String, words: String)] = [
        ("string or '}' expected", "expected a key in double quotes or \"}\""),
        ("':' expected", "expected \":\" after the key"),
        ("'}' expected", "expected \",\" or \"}\" behind the value"),
        ("']' expected", "expected \",\" or \"]\" behind the value"),
        ("unexpected token", "expected a value"),
        ("invalid token", "expected JSON"),
        ("end of file expected", "expected nothing behind the end of the document"),
        ("premature end of input", "a text has no closing quote"),
        ("unexpected newline", "a line ends inside a text; write \\n for a newline, or add the closing quote"),
        ("control character", "a control character inside a text; write it as \\u and four digits"),
        ("invalid escape", "unknown escape inside a text; a backslash is written as \\\\"),
        ("invalid Unicode", "half of a surrogate pair inside a text"),
        ("unable to decode byte", "not UTF-8; save the file in that encoding"),
        ("\\u0000 is not allowed", "\\u0000 is not allowed in a text"),
        ("NUL byte in object key", "\\u0000 is not allowed in a key"),
        ("too big", "a whole number too large for any key"),
        ("real number overflow", "a number too large for any key"),
        ("maximum parsing depth", "nested too deep"),
    ]

    /// What people write that is no JSON.
    private static let hints: [(token: String, words: String)] = [
        ("/", "; a comment is a key that begins with \"//\" and has a text as its value"),
        ("#", "; a comment is a key that begins with \"//\" and has a text as its value"),
        ("'", "; text stands in double quotes"),
        ("}", "; is there a comma too many in front of it?"),
        ("]", "; is there a comma too many in front of it?"),
        ("True", "; JSON writes true"),
        ("False", "; JSON writes false"),
        ("None", "; leave the key out instead"),
        ("NaN", "; JSON has no such number"),
        ("{", ""), (",", ""), (":", ""), ("=", "; JSON writes \":\""),
    ]
}

extension String {
    /// The first place of a piece of text.
    fileprivate func range(of piece: String) -> Range<String.Index>? {
        let length = piece.utf8.count
        var start = utf8.startIndex
        while let end = utf8.index(start, offsetBy: length, limitedBy: utf8.endIndex) {
            if utf8[start..<end].elementsEqual(piece.utf8) { return start..<end }
            start = utf8.index(after: start)
        }
        return nil
    }
}
