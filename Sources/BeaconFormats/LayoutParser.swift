// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Reads a layout string from left to right and stops at the first mistake.
struct LayoutParser {
    private(set) var serviceUUID: UInt16?
    private(set) var matches: [LayoutString.Match] = []
    private(set) var identifiers: [LayoutString.Field] = []
    private(set) var power: LayoutString.Power?
    private(set) var data: [LayoutString.Field] = []
    private var isExtra = false

    private let text: [Unicode.Scalar]
    private var position = 0

    /// The longest AD structure holds 254 octets behind its type (Core 5.4, Vol 3, Part C, 11).
    private static let lastOffset = 253

    init(_ text: String) {
        self.text = Array(text.unicodeScalars)
    }

    mutating func parse() throws(LayoutError) {
        repeat { try term() } while skip(",")
        guard position == text.count else { throw error("expected \",\" or the end") }
        if matches.isEmpty, serviceUUID == nil {
            throw error("nothing marks the format; add the octets to match, such as \"m:2-3=beac\"")
        }
        if identifiers.isEmpty, !isExtra {
            throw error(
                "nothing names the beacon; add an identifier such as \"i:4-19\", or \"x\" for frames without one")
        }
    }

    private mutating func term() throws(LayoutError) {
        skipSpaces()
        let start = position
        let letter = peek
        position += 1
        switch letter {
        case "m": try match()
        case "s": try service(start)
        case "i": try identifier(start)
        case "p": try measuredPower(start)
        case "d": data.append(try field(flags: ["l", "b"]))
        case "x":
            if !identifiers.isEmpty {
                throw error("frames of an extra layout name no beacon; leave out \"i\" or \"x\"", start)
            }
            isExtra = true
        default: throw error("expected a term that begins with \"m\", \"s\", \"i\", \"p\", \"d\" or \"x\"", start)
        }
        skipSpaces()
    }

    // MARK: Terms

    private mutating func match() throws(LayoutError) {
        try expect(":", "behind the letter of a term")
        let range = try offsets()
        matches.append(.init(first: range.lowerBound, octets: try octets(range)))
    }

    private mutating func service(_ start: Int) throws(LayoutError) {
        if serviceUUID != nil { throw error("a second \"s\"; one is possible", start) }
        try expect(":", "behind the letter of a term")
        let place = position
        guard try offsets() == 0...1 else {
            throw error("a service UUID has 16 bits and stands in front, as in \"s:0-1=feaa\"", place)
        }
        let octets = try octets(0...1)
        serviceUUID = UInt16(octets[0]) << 8 | UInt16(octets[1])
    }

    private mutating func identifier(_ start: Int) throws(LayoutError) {
        if isExtra { throw error("frames of an extra layout name no beacon; leave out \"i\" or \"x\"", start) }
        if identifiers.last?.isVariable == true { throw error("an identifier behind one of variable length", start) }
        if identifiers.count == LayoutString.maximumIdentifiers {
            throw error("more than \(LayoutString.maximumIdentifiers) identifiers", start)
        }
        identifiers.append(try field(flags: ["l", "v", "b"]))
        let octets = identifiers.reduce(0) { $0 + $1.range.count }
        if octets > BeaconIdentity.capacity {
            throw error("the identifiers have \(octets) octets, \(BeaconIdentity.capacity) are possible", start)
        }
    }

    private mutating func measuredPower(_ start: Int) throws(LayoutError) {
        if power != nil { throw error("a second \"p\"; one is possible", start) }
        try expect(":", "behind the letter of a term")
        if skip("-") {
            try expect(":", "in front of the constant strength")
            power = .constant(try signedNumber())
            return
        }
        let place = position
        let range = try offsets()
        guard range.count == 1 else { throw error("the strength is one octet; expected such as \"p:24-24\"", place) }
        power = .octet(at: range.lowerBound, correction: skip(":") ? Int(try signedNumber()) : 0)
    }

    // MARK: Parts of a term

    private mutating func field(flags: [Unicode.Scalar]) throws(LayoutError) -> LayoutString.Field {
        try expect(":", "behind the letter of a term")
        var field = LayoutString.Field(range: try offsets(), isLittleEndian: false, isVariable: false)
        while let flag = peek, flags.contains(flag) {
            if flag == "l" { field.isLittleEndian = true }
            if flag == "v" { field.isVariable = true }
            position += 1
        }
        return field
    }

    /// `=0215` behind the offsets.
    private mutating func octets(_ range: ClosedRange<Int>) throws(LayoutError) -> [UInt8] {
        try expect("=", "in front of the octets")
        let start = position
        while let digit = peek, digit.properties.isASCIIHexDigit, position - start < range.count * 2 { position += 1 }
        let digits = String(String.UnicodeScalarView(text[start..<position]))
        guard digits.utf8.count == range.count * 2, peek?.properties.isASCIIHexDigit != true,
            let octets = Hexadecimal.octets(digits)
        else { throw error("expected \(range.count * 2) hexadecimal digits for \(Self.words(range))") }
        return octets
    }

    private mutating func offsets() throws(LayoutError) -> ClosedRange<Int> {
        let start = position
        guard let first = number(), first <= Self.lastOffset else {
            throw error("expected the first offset, a number from 0 to \(Self.lastOffset)", start)
        }
        try expect("-", "between the first and the last offset")
        let place = position
        guard let last = number(), (first...Self.lastOffset).contains(last) else {
            throw error("expected the last offset, a number from \(first) to \(Self.lastOffset)", place)
        }
        return first...last
    }

    private mutating func signedNumber() throws(LayoutError) -> Int8 {
        let start = position
        let isNegative = skip("-")
        guard let number = number(), let signed = Int8(exactly: isNegative ? -number : number) else {
            throw error("expected a strength in dB, a number from -128 to 127", start)
        }
        return signed
    }

    /// Reads at most four digits, which is one more than any number in a layout has.
    private mutating func number() -> Int? {
        var number: Int?
        let end = position + 4
        while let digit = peek, ("0"..."9").contains(digit), position < end {
            number = (number ?? 0) * 10 + Int(digit.value - 48)
            position += 1
        }
        return number
    }

    // MARK: Characters

    private static func words(_ range: ClosedRange<Int>) -> String {
        range.count == 1 ? "octet \(range.lowerBound)" : "octets \(range.lowerBound) to \(range.upperBound)"
    }

    private var peek: Unicode.Scalar? { position < text.count ? text[position] : nil }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard peek == character else { return false }
        position += 1
        return true
    }

    private mutating func skipSpaces() {
        while peek == " " { position += 1 }
    }

    private mutating func expect(_ character: Unicode.Scalar, _ place: String) throws(LayoutError) {
        guard skip(character) else { throw error("expected \"\(character)\" \(place)") }
    }

    private func error(_ text: String, _ position: Int? = nil) -> LayoutError {
        LayoutError(column: (position ?? self.position) + 1, text: text)
    }
}
