// SPDX-License-Identifier: Apache-2.0

/// The encoding of an Eddystone-URL: a scheme octet, then text in which small values stand for common endings.
enum CompressedURL {
    /// Scheme octet and at most 17 octets of text.
    static let maximumLength = 18

    private static let schemes = ["http://www.", "https://www.", "http://", "https://"]
    private static let endings = [
        ".com/", ".org/", ".edu/", ".net/", ".info/", ".biz/", ".gov/",
        ".com", ".org", ".edu", ".net", ".info", ".biz", ".gov",
    ]

    /// Whether it is a URL by the specification: a known scheme, endings of the table and printable ASCII, nothing else.
    static func isValid(_ encoded: Span<UInt8>) -> Bool {
        guard (1...maximumLength).contains(encoded.count), Int(encoded[0]) < schemes.count else { return false }
        for index in 1..<encoded.count {
            let octet = encoded[index]
            guard Int(octet) < endings.count || (0x21...0x7E).contains(octet) else { return false }
        }
        return true
    }

    /// Appends the URL in full; nothing for what is no URL.
    static func expand(_ encoded: Span<UInt8>, to text: inout [UInt8]) {
        guard isValid(encoded) else { return }
        text.append(contentsOf: schemes[Int(encoded[0])].utf8)
        for index in 1..<encoded.count {
            let octet = encoded[index]
            if Int(octet) < endings.count {
                text.append(contentsOf: endings[Int(octet)].utf8)
            } else {
                text.append(octet)
            }
        }
    }

    /// The shortest encoding, which is what tags are set up with; nil for what does not fit or cannot be encoded.
    static func compress(_ url: String) -> [UInt8]? {
        // Nothing else can be encoded, and in ASCII a character is an octet.
        guard url.utf8.allSatisfy({ $0 < 0x80 }), let scheme = schemes.firstIndex(where: { url.hasPrefix($0) }) else {
            return nil
        }
        var encoded = [UInt8(scheme)]
        var rest = Substring(url.dropFirst(schemes[scheme].count))
        while let character = rest.utf8.first {
            if let ending = endings.firstIndex(where: { rest.hasPrefix($0) }) {
                encoded.append(UInt8(ending))
                rest = rest.dropFirst(endings[ending].count)
            } else {
                encoded.append(character)
                rest = Substring(rest.utf8.dropFirst())
            }
        }
        return isValid(encoded.span) ? encoded : nil
    }
}
