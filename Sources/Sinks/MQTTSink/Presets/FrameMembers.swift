// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What a frame says, by the keys of the native events: the one place where each format spells its values.
///
/// It keeps its memory between frames.
struct FrameMembers {
    private struct Member {
        var key: Range<Int>
        var value: Range<Int>
    }

    private var writer = JSONWriter()
    private var members: [Member] = []

    init() {
        members.reserveCapacity(32)
    }

    /// Takes the frame of an event, or none.
    mutating func read(_ event: borrowing Event, _ formats: FormatCatalog) {
        members.removeAll(keepingCapacity: true)
        guard let payload = event.payload else { return }
        writer.reset()
        writer.beginObject()
        payload.write(formats, into: &writer)
        writer.endObject()
        findMembers()
    }

    /// A value that is a number; nil when there is none, or it is not available.
    func number(_ key: StaticString) -> Double? {
        for member in members where isKey(member, key) {
            if let number = number(in: member.value) { return number }
        }
        return nil
    }

    /// An element of a value that is a list of numbers.
    func number(_ key: StaticString, at index: Int) -> Double? {
        for member in members where isKey(member, key) && writer.bytes[member.value.lowerBound] == UInt8(ascii: "[") {
            var start = member.value.lowerBound + 1
            var count = 0
            for place in member.value.dropFirst()
            where writer.bytes[place] == UInt8(ascii: ",") || writer.bytes[place] == UInt8(ascii: "]") {
                if count == index { return number(in: start..<place) }
                count += 1
                start = place + 1
            }
            return nil
        }
        return nil
    }

    /// A value that is true or false.
    func flag(_ key: StaticString) -> Bool? {
        for member in members where isKey(member, key) {
            switch writer.bytes[member.value.lowerBound] {
            case UInt8(ascii: "t"): return true
            case UInt8(ascii: "f"): return false
            default: continue
            }
        }
        return nil
    }

    /// The octets of a text that needed no escape, such as the name of the format under `frame`; nil for another value.
    func text(_ key: StaticString) -> ArraySlice<UInt8>? {
        for member in members where isKey(member, key) && writer.bytes[member.value.lowerBound] == UInt8(ascii: "\"") {
            return writer.bytes[member.value.dropFirst().dropLast()]
        }
        return nil
    }

    func isText(_ key: StaticString, _ value: StaticString) -> Bool {
        guard let text = text(key) else { return false }
        return value.withUTF8Buffer { unsafe text.elementsEqual($0) }
    }

    // MARK: Parts

    private func isKey(_ member: Member, _ key: StaticString) -> Bool {
        key.withUTF8Buffer { unsafe writer.bytes[member.key].elementsEqual($0) }
    }

    /// A number as ``JSONWriter`` writes it, without an exponent.
    private func number(in range: Range<Int>) -> Double? {
        var mantissa: Int64 = 0
        var unit = 1.0
        var isFraction = false
        var isNegative = false
        for place in range {
            switch writer.bytes[place] {
            case UInt8(ascii: "-") where place == range.lowerBound: isNegative = true
            case UInt8(ascii: ".") where !isFraction: isFraction = true
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                mantissa = mantissa &* 10 &+ Int64(writer.bytes[place] - UInt8(ascii: "0"))
                if isFraction { unit *= 10 }
            default: return nil
            }
        }
        return range.isEmpty ? nil : Double(isNegative ? -mantissa : mantissa) / unit
    }

    /// Finds the members of the object and of those in it, whose keys do not tell where they stand.
    private mutating func findMembers() {
        var place = 0
        while let key = nextString(from: &place) {
            // The colon.
            place += 1
            guard writer.bytes[place] != UInt8(ascii: "{") else { continue }
            let start = place
            skipValue(&place)
            members.append(Member(key: key, value: start..<place))
        }
    }

    /// The next string, without its quotes; ends behind it.
    private func nextString(from place: inout Int) -> Range<Int>? {
        while place < writer.bytes.count, writer.bytes[place] != UInt8(ascii: "\"") { place += 1 }
        guard place < writer.bytes.count else { return nil }
        let start = place + 1
        place = start
        while writer.bytes[place] != UInt8(ascii: "\"") {
            place += writer.bytes[place] == UInt8(ascii: "\\") ? 2 : 1
        }
        defer { place += 1 }
        return start..<place
    }

    private func skipValue(_ place: inout Int) {
        var depth = 0
        while true {
            switch writer.bytes[place] {
            case UInt8(ascii: "\""):
                _ = nextString(from: &place)
                continue
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "}"):
                guard depth > 0 else { return }
                depth -= 1
            case UInt8(ascii: ","):
                guard depth > 0 else { return }
            default: break
            }
            place += 1
        }
    }
}
