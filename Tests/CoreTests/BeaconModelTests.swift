// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Foundation
import TestSupport
import Testing

@Suite struct BeaconModelTests {
    private let catalog = FrameDecoder().catalog

    @Test func identitiesAreComparedByAllOctets() {
        let octets = (1...24).map { UInt8($0) }
        let identity = BeaconIdentity(format: FormatID(rawValue: 1), octets: octets.span)
        #expect((0..<24).map { identity[$0] } == octets)
        #expect(identity[-1] == 0 && identity[24] == 0)
        for index in 0..<24 {
            var changed = octets
            changed[index] ^= 1
            #expect(BeaconIdentity(format: FormatID(rawValue: 1), octets: changed.span) != identity)
        }
        #expect(BeaconIdentity(format: FormatID(rawValue: 2), octets: octets.span) != identity)
        #expect(BeaconIdentity(format: FormatID(rawValue: 1), octets: octets.span.extracting(0..<23)) != identity)
    }

    @Test(arguments: 0...24)
    func patternsMatchByTheirPrefix(prefix: Int) {
        let octets = (1...24).map { UInt8($0) }
        let identity = BeaconIdentity(format: FormatID(rawValue: 1), octets: octets.span)
        let pattern = IdentityPattern(identity: identity, prefix: UInt8(prefix))
        for index in 0..<24 {
            var changed = octets
            changed[index] ^= 0x80
            let other = BeaconIdentity(format: FormatID(rawValue: 1), octets: changed.span)
            #expect(pattern.matches(other) == (index >= prefix))
        }
        #expect(!pattern.matches(BeaconIdentity(format: FormatID(rawValue: 2), octets: octets.span)))
    }

    @Test(arguments: [
        ("ibeacon", ["fda50693-a4e2-4fb1-afcf-c6eb07647825", "100", "65535"]),
        ("altbeacon", ["fda50693-a4e2-4fb1-afcf-c6eb07647825", "0", "7"]),
        ("eddystone-uid", ["00010203040506070809", "0a0b0c0d0e0f"]),
        ("eddystone-url", ["https://www.example.com/a.orgb"]),
        ("eddystone-url", ["http://goo.gl/hqBXE1"]),
    ])
    func identitiesAreReadAsTheyAreSpelled(format: String, values: [String]) throws {
        let id = try #require(catalog.id(named: format))
        let description = try #require(catalog[id])
        let octets = try zip(description.fields, values).flatMap { field, value in
            try #require(FormatCatalog.octets(field, text: value))
        }
        let identity = BeaconIdentity(format: id, octets: octets.span)
        var spelled: [String] = []
        catalog.forEachField(of: identity) { _, value in spelled.append(value.description) }
        #expect(spelled == values)
    }

    @Test(arguments: ["fda50693-a4e2-4fb1-afcf-c6eb07647825", "FDA50693A4E24FB1AFCFC6EB07647825"])
    func aUUIDHasItsDashesOrNone(text: String) throws {
        #expect(Hexadecimal.text(try #require(UUIDText.octets(text))) == "fda50693a4e24fb1afcfc6eb07647825")
    }

    @Test(arguments: [
        "", "123", "zz", "fda50693-a4e2-4fb1-afcf-c6eb0764782", "fda50693a4e24fb1afcf-c6eb07647825", "٣",
        "fda5069-3a4e2-4fb1-afcf-c6eb07647825", "fda50693-a4e2-4fb1-afcf-c6eb0764782g",
        "----fda50693a4e24fb1afcfc6eb07647825",
    ])
    func noUUID(text: String) {
        #expect(UUIDText.octets(text) == nil)
    }

    @Test func timesAreSpelledInUTC() {
        func text(_ milliseconds: Int64) -> String {
            var writer = JSONWriter()
            writer.time(WallTime(milliseconds: milliseconds))
            return writer.text
        }
        #expect(text(0) == "\"1970-01-01T00:00:00.000Z\"")
        #expect(text(-1) == "\"1969-12-31T23:59:59.999Z\"")
        #expect(text(951_827_696_789) == "\"2000-02-29T12:34:56.789Z\"")
        #expect(text(253_402_300_799_999) == "\"9999-12-31T23:59:59.999Z\"")
        #expect(text(253_402_300_800_000) == "null")
        #expect(text(.min) == "null" && text(.max) == "null")
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        var random = SeededGenerator(seed: 5)
        for _ in 0..<500 {
            let seconds = Int64.random(in: -30_000_000_000...200_000_000_000, using: &random)
            guard seconds > -62_135_596_800 else { continue }
            let expected = formatter.string(from: Date(timeIntervalSince1970: Double(seconds)))
            // Foundation uses the Julian calendar before 1582.
            if seconds > -12_219_292_800 { #expect(text(seconds * 1000) == "\"\(expected)\"") }
        }
    }

    /// A writer keeps the spelling of the second.
    @Test func aWriterSpellsOneTimeAfterTheOther() {
        var writer = JSONWriter()
        writer.beginArray()
        for milliseconds: Int64 in [-1001, -1000, -1, 0, 999, 1000, .max, 1001, 0, .min, 999] {
            writer.time(WallTime(milliseconds: milliseconds))
        }
        writer.endArray()
        let expected = [
            "1969-12-31T23:59:58.999Z", "1969-12-31T23:59:59.000Z", "1969-12-31T23:59:59.999Z",
            "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.999Z", "1970-01-01T00:00:01.000Z", nil,
            "1970-01-01T00:00:01.001Z", "1970-01-01T00:00:00.000Z", nil, "1970-01-01T00:00:00.999Z",
        ]
        #expect(writer.text == "[\(expected.map { $0.map { "\"\($0)\"" } ?? "null" }.joined(separator: ","))]")
    }

    @Test func numbersHaveAllTheirDigits() {
        func text(_ value: UInt64, _ minimumDigits: Int) -> String {
            var text: [UInt8] = []
            Decimal.append(value, minimumDigits: minimumDigits, to: &text)
            return String(decoding: text, as: UTF8.self)
        }
        var values: [UInt64] = [0, .max]
        var power: UInt64 = 1
        for _ in 0..<20 {
            values += [power - 1, power, power + 1]
            power = power.multipliedReportingOverflow(by: 10).partialValue
        }
        for value in values {
            for minimumDigits in [.min, 0, 1, 2, 7, 8, 9, 16, 17, 20, 21, .max] {
                let digits = "\(value)"
                let zeros = max(0, min(20, max(0, minimumDigits)) - digits.count)
                #expect(text(value, minimumDigits) == String(repeating: "0", count: zeros) + digits)
            }
        }
    }

    @Test func numbersAreWrittenExactly() {
        func text(_ value: Double, _ decimals: Int) -> String {
            var writer = JSONWriter()
            writer.decimal(value, decimals: decimals)
            return writer.text
        }
        #expect(text(127.99609375, 8) == "127.99609375")
        #expect(text(-0.5, 2) == "-0.5")
        #expect(text(-1, 2) == "-1")
        #expect(text(2.005, 1) == "2")
        #expect(text(0.04, 2) == "0.04")
        #expect(text(.nan, 2) == "null" && text(.infinity, 2) == "null" && text(1e300, 2) == "null")
        for value in [Int64.min, -1, 0, 9, 10, 99, 100, Int64.max] {
            var writer = JSONWriter()
            writer.integer(value)
            #expect(writer.text == "\(value)")
        }
        var writer = JSONWriter()
        writer.integer(UInt64.max)
        #expect(writer.text == "18446744073709551615")
    }

    @Test func textIsEscaped() throws {
        let text = "a\"b\\c\n\r\t\u{0}\u{1F}\u{7F}\u{9B}\u{202E}ä😀"
        var writer = JSONWriter()
        writer.string(text)
        #expect(!writer.bytes.contains { $0 < 0x20 || $0 == 0x7F })
        #expect(!writer.text.unicodeScalars.contains("\u{202E}") && !writer.text.unicodeScalars.contains("\u{9B}"))
        let back = try JSONSerialization.jsonObject(with: Data(writer.bytes), options: .fragmentsAllowed) as? String
        #expect(back == text)
    }

    /// Text is looked at several octets at a time: no place in it may be left out.
    @Test(arguments: [
        ("\"", "\\\""), ("\\", "\\\\"), ("\u{0}", "\\u0000"), ("\u{1F}", "\\u001f"), ("\u{7F}", "\\u007f"),
        ("\u{80}", "\\u0080"), ("\u{A0}", "\u{A0}"), ("\u{202E}", "\\u202e"), ("ä", "ä"), ("😀", "😀"),
        (" ", " "), ("!", "!"), ("#", "#"), ("[", "["), ("]", "]"), ("~", "~"),
    ])
    func eachPlaceIsEscaped(character: String, escaped: String) {
        for count in 0...20 {
            for place in 0...count {
                let front = String(repeating: "~", count: place)
                let back = String(repeating: " ", count: count - place)
                var writer = JSONWriter()
                writer.beginObject()
                writer.key(front + character + back)
                writer.string(back + character + front)
                writer.endObject()
                #expect(writer.text == "{\"\(front)\(escaped)\(back)\":\"\(back)\(escaped)\(front)\"}")
            }
        }
    }

    /// Octets from the air are repaired as `String` repairs them, without becoming one.
    @Test func octetsAreWrittenAsTheStringTheyMake() {
        var random = SeededGenerator(seed: 11)
        // Parts of long, overlong, cut and foreign sequences, of characters that are escaped, and plain ones.
        let octets: [UInt8] = [
            0x00, 0x0A, 0x1F, 0x22, 0x41, 0x5C, 0x7F, 0x80, 0x81, 0x8E, 0x9F, 0xA0, 0xA6, 0xAE, 0xBF, 0xC0, 0xC2, 0xC3,
            0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF,
        ]
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...8, using: &random)
            let text = (0..<count).map { _ in octets[Int.random(in: octets.indices, using: &random)] }
            var written = JSONWriter()
            written.string(utf8: text.span)
            var expected = JSONWriter()
            expected.string(String(decoding: text, as: UTF8.self))
            #expect(written.bytes == expected.bytes, "\(text)")
        }
    }

    @Test func digitsAreReadInEitherCaseAndNothingElse() {
        for high in UInt8.min...UInt8.max {
            for low in [UInt8(ascii: "0"), UInt8(ascii: "f"), UInt8(ascii: "F"), UInt8(ascii: "g"), high] {
                let characters = [high, low].map { Character(Unicode.Scalar($0)) }
                let values = characters.map { $0.isASCII ? $0.hexDigitValue : nil }
                var octets: [UInt8] = []
                let isRead = Hexadecimal.read([high, low].span, into: &octets)
                if let first = values[0], let second = values[1] {
                    #expect(isRead && octets == [UInt8(first * 16 + second)])
                } else {
                    #expect(!isRead)
                }
            }
        }
        var octets: [UInt8] = []
        #expect(!Hexadecimal.read([UInt8(ascii: "0")].span, into: &octets))
    }

    @Test func spellingsRunEitherWay() {
        let octets = (0..<16).map { UInt8($0) }
        var writer = JSONWriter()
        writer.beginArray()
        writer.hexadecimal(octets.span.extracting(..<3), separator: UInt8(ascii: ":"))
        writer.hexadecimal(octets.span.extracting(..<3), isReversed: true)
        writer.uuid(octets.span)
        writer.uuid(octets.span, isReversed: true)
        writer.string { Decimal.append(7, minimumDigits: 3, to: &$0) }
        writer.endArray()
        let expected = [
            "00:01:02", "020100", "00010203-0405-0607-0809-0a0b0c0d0e0f", "0f0e0d0c-0b0a-0908-0706-050403020100", "007",
        ]
        #expect(writer.text == "[\"" + expected.joined(separator: "\",\"") + "\"]")
    }

    @Test func timesSaturate() {
        let last = MonotonicTime(nanoseconds: .max)
        let first = MonotonicTime(nanoseconds: .min)
        #expect(last + .seconds(1) == last)
        #expect(first + .seconds(-1) == first)
        #expect((last - first).nanoseconds == .max)
        #expect((first - last).nanoseconds == .min)
        #expect(TimeInterval.seconds(.max).nanoseconds == .max)
        #expect(TimeInterval.seconds(.min).nanoseconds == .min)
    }

    @Test func addressesAreRead() {
        #expect(DeviceAddress(text: "C0:11:22:33:44:5f", kind: .publicDevice)?.value == 0xC011_2233_445F)
        for text in [
            "", "C0:11:22:33:44", "C0:11:22:33:44:5", "C0:11:22:33:44:5g", "+0:11:22:33:44:55", "C0-11-22-33-44-55",
        ] {
            #expect(DeviceAddress(text: text, kind: .publicDevice) == nil)
        }
    }

    @Test func namesAreNumbersOfTheProcess() {
        let names = NameTable()
        let keys = names.intern("keys")
        #expect(names.intern("keys") == keys)
        #expect(names.intern("") == .none)
        #expect(names[keys] == "keys")
        #expect(names[Name(rawValue: 999)] == "")
        for number in 0..<70_000 { _ = names.intern("name \(number)") }
        #expect(names.intern("one more") == .none)
        #expect(names[keys] == "keys")
    }
}
