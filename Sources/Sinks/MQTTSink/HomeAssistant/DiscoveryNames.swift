// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// A device that is announced.
enum DiscoveryObject: Hashable {
    case gateway
    case beacon(BeaconIdentity)
    case region(Name)
}

/// How names become identifiers.
enum DiscoveryNames {
    /// Letters, digits and `-` as they are, every other octet as `_` and two upper-case hexadecimal digits: what may
    /// stand in a topic of discovery, and different for what is different.
    static func escape(_ text: String) -> String {
        var escaped = ""
        for octet in text.utf8 {
            if isUnreserved(octet), octet != UInt8(ascii: "_") {
                escaped.unicodeScalars.append(Unicode.Scalar(octet))
            } else {
                escaped += octet < 16 ? "_0" : "_"
                escaped += String(octet, radix: 16, uppercase: true)
            }
        }
        return escaped
    }

    /// What Home Assistant would make of it in the id of an entity: lower-case letters and digits, `_` for the rest, none
    /// at the ends. Letters beyond Latin-1 have no place in it.
    static func slug(_ text: String) -> String {
        var slug = ""
        var hasGap = false
        for scalar in text.unicodeScalars {
            let letter: Unicode.Scalar =
                switch scalar.value {
                case 0xC0...0xFF: latin[Int(scalar.value) - 0xC0]
                default: scalar
                }
            switch letter {
            case "a"..."z", "0"..."9", "A"..."Z":
                if hasGap, !slug.isEmpty { slug += "_" }
                hasGap = false
                slug += String(letter).lowercased()
            default: hasGap = true
            }
        }
        return slug
    }

    /// U+00C0 to U+00FF without their marks.
    private static let latin = Array("AAAAAAACEEEEIIIIDNOOOOOxOUUUUYTsaaaaaaaceeeeiiiidnooooo ouuuuyty".unicodeScalars)
}
