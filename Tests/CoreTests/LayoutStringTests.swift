// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Foundation
import HCI
import TestSupport
import Testing

@Suite struct LayoutStringTests {
    // MARK: Formats that are known otherwise

    /// The layouts that the AltBeacon library's documentation gives, each against the decoder that is built in.
    @Test(arguments: [
        ("ibeacon", "m:0-3=4c000215,i:4-19,i:20-21,i:22-23,p:24-24"),
        ("eddystone-uid", "s:0-1=feaa,m:2-2=00,p:3-3:-41,i:4-13,i:14-19"),
    ])
    func sameAsBuiltIn(name: String, layout: String) throws {
        let builtin = try #require(FormatDefinition.all.first { $0.format.name == name })
        let custom = FormatDefinition(name: name, layout: try LayoutString(layout))
        var found = 0
        for vector in Vector.all where vector.kind == "adv-data" {
            for packet in vector.packets {
                for length in 0...packet.count {
                    let data = Array(packet[..<length])
                    let expected = frames(data, builtin)
                    #expect(frames(data, custom) == expected, "\(vector.id), \(length) octets")
                    found += expected.count
                }
            }
        }
        #expect(found > 10)
    }

    /// Here the layout asks for less than the format's specification does.
    @Test(arguments: [
        ("altbeacon", "m:2-3=beac,i:4-19,i:20-21,i:22-23,p:24-24,d:25-25"),
        ("eddystone-url", "s:0-1=feaa,m:2-2=10,p:3-3:-41,i:4-21v"),
        ("eddystone-tlm", "x,s:0-1=feaa,m:2-2=20,d:3-3,d:4-5,d:6-7,d:8-11,d:12-15"),
    ])
    func atLeastWhatIsBuiltIn(name: String, layout: String) throws {
        let builtin = try #require(FormatDefinition.all.first { $0.format.name == name })
        let custom = FormatDefinition(name: name, layout: try LayoutString(layout))
        var found = 0
        for vector in Vector.all where vector.kind == "adv-data" {
            for packet in vector.packets {
                let expected = frames(packet, builtin)
                let given = frames(packet, custom)
                #expect(given.filter(expected.contains) == expected, "\(vector.id)")
                found += expected.count
            }
        }
        #expect(found > 1)
    }

    // MARK: Terms

    @Test func anyCompany() throws {
        let layout = "m:2-3=0215,i:4-5,i:6-7,p:8-8,d:9-9"
        #expect(
            try decoded("0aff123402150102fffec5", layout)
                == [#"{"company_id":13330,"data1":null,"format":"f","id1":258,"id2":65534,"tx_power":-59}"#])
        #expect(try decoded("0bff4c0002150102fffec507", layout).count == 1)
        #expect(try decoded("0bff123402160102fffec507", layout).isEmpty)
        #expect(try decoded("09ff123402150102fffe", layout).isEmpty)
        #expect(try decoded("0b16123402150102fffec507", layout).isEmpty)
    }

    @Test func oneCompany() throws {
        let layout = "m:2-3=0215,i:4-5,i:6-7,p:8-8"
        let expected = [#"{"format":"f","id1":258,"id2":65534,"tx_power":-59}"#]
        #expect(try decoded("0aff123402150102fffec5", layout, companyID: 0x3412) == expected)
        #expect(try decoded("0aff4c0002150102fffec5", layout, companyID: 0x3412).isEmpty)
        #expect(try decoded("0aff123402150102fffec5", "m:0-3=12340215,i:4-5,i:6-7,p:8-8") == expected)
        #expect(try LayoutString("m:0-1=4c00,i:4-5").companyID == 0x004C)
        #expect(try LayoutString("m:1-1=00,m:0-0=4c,i:4-5").companyID == 0x004C)
        #expect(try LayoutString("m:0-0=4c,i:4-5").companyID == nil)
        #expect(try LayoutString("s:0-1=feaa,i:4-5").companyID == nil)
    }

    /// A code that does not stand in octets 2 and 3, a short one, and several.
    @Test(arguments: ["m:2-2=aa,i:4-5", "m:6-7=ccdd,i:4-5", "m:2-2=aa,m:6-7=ccdd,i:4-5", "m:1-2=34aa,i:4-5"])
    func otherPlacesOfTheCode(layout: String) throws {
        #expect(
            try decoded("09ff1234aabb0001ccdd", layout) == [#"{"company_id":13330,"format":"f","id1":1}"#])
        #expect(try decoded("09ff1234abbb0001ccde", layout).isEmpty)
        #expect(try decoded("05ff1234aabb", layout).isEmpty)
    }

    @Test func serviceData() throws {
        #expect(
            try decoded("0716aafe10ee0001", "s:0-1=feaa,m:2-2=10,p:3-3:-41,i:4-5")
                == [#"{"format":"f","id1":1,"tx_power":-18}"#])
        #expect(try decoded("07166ffd10ee0001", "s:0-1=fd6f,i:4-5") == [#"{"format":"f","id1":1}"#])
        #expect(try decoded("07ffaafe10ee0001", "s:0-1=feaa,m:2-2=10,i:4-5").isEmpty)
    }

    /// Big-endian unless told otherwise, and from both sides of the sign.
    @Test(arguments: [
        ("i:4-5", #""id1":513"#), ("i:4-5b", #""id1":513"#), ("i:4-5l", #""id1":258"#),
        ("i:4-6", #""id1":"020180""#), ("i:4-6l", #""id1":"800102""#),
        ("i:4-4,i:5-5", #""id1":"02","id2":"01""#),
        ("i:4-5,d:4-7", #""data1":33652991,"format":"f","id1":513"#),
        ("i:4-5,d:4-7l", #""data1":4286578946,"format":"f","id1":513"#),
        ("i:4-5,d:3-7", #""data1":"bb020180ff","format":"f","id1":513"#),
        ("i:4-5,d:3-7l", #""data1":"ff800102bb","format":"f","id1":513"#),
        ("i:4-5,d:6-6,d:7-7", #""data1":128,"data2":255,"format":"f","id1":513"#),
    ])
    func byteOrder(terms: String, members: String) throws {
        let text = try #require(try decoded("09ff1234aabb020180ff", "m:2-3=aabb,\(terms)").first)
        #expect(text.contains(members), "\(text)")
    }

    @Test(
        arguments: [
            ("p:4-4", 0x80, -128), ("p:4-4", 0x7F, 127), ("p:4-4", 0xFF, -1), ("p:4-4:-41", 0xEE, -59),
            ("p:4-4:-41", 0x80, -128), ("p:4-4:100", 0x7F, 127), ("p:4-4:0", 0xC5, -59), ("p:-:-59", 0x00, -59),
            ("p:-:4", 0x00, 4),
        ] as [(String, UInt8, Int8)])
    func power(term: String, octet: UInt8, expected: Int8) throws {
        let definition = FormatDefinition(name: "f", layout: try LayoutString("m:2-3=aabb,i:5-5,\(term)"))
        #expect(frames([7, 0xFF, 0x12, 0x34, 0xAA, 0xBB, octet, 0x01], definition).map(\.measuredPower) == [expected])
    }

    @Test func withoutPowerNothingIsClaimed() throws {
        let definition = FormatDefinition(name: "f", layout: try LayoutString("m:2-3=aabb,i:4-4"))
        #expect(frames([6, 0xFF, 0x12, 0x34, 0xAA, 0xBB, 0x01], definition).map(\.measuredPower) == [nil])
    }

    @Test func variableLength() throws {
        let layout = "m:2-3=aabb,i:4-4,i:5-8v"
        #expect(try decoded("06ff1234aabb01", layout).isEmpty)
        for (frame, ending) in [("07ff1234aabb0102", "02"), ("0aff1234aabb0102030405", "02030405")] {
            #expect(
                try decoded(frame, layout)
                    == [#"{"company_id":13330,"format":"f","id1":"01","id2":"\#(ending)"}"#])
        }
        #expect(
            try decoded("0bff1234aabb010203040506", layout)
                == [#"{"company_id":13330,"format":"f","id1":"01","id2":"02030405"}"#])
        #expect(
            try decoded("09ff1234aabb01020304", "m:2-3=aabb,i:4-8vl")
                == [#"{"company_id":13330,"format":"f","id1":"04030201"}"#])
    }

    @Test func anExtraFrameNamesNoBeacon() throws {
        let definition = FormatDefinition(name: "f", layout: try LayoutString("x,m:2-3=aabb,d:4-5"))
        #expect(definition.format.fields.isEmpty)
        #expect(frames([7, 0xFF, 0x12, 0x34, 0xAA, 0xBB, 0x01, 0x02], definition).map(\.identity) == [nil])
    }

    @Test func identitiesAreReadAsTheyAreSpelled() throws {
        let layout = try LayoutString("m:2-3=aabb,i:4-19,i:20-21,i:22-24,i:25-27v")
        let format = FormatDefinition(name: "f", layout: layout).format
        let values = ["fda50693-a4e2-4fb1-afcf-c6eb07647825", "65535", "00ff80", "ab01"]
        let octets = try zip(format.fields, values).flatMap { try #require(FormatCatalog.octets($0, text: $1)) }
        #expect(octets.count == 23)
        var spelled: [String] = []
        FormatCatalog([format]).forEachField(
            of: BeaconIdentity(format: FormatID(rawValue: 0), octets: octets.span)
        ) { spelled.append("\($0.key)=\($1.description)") }
        #expect(spelled == zip(["id1", "id2", "id3", "id4"], values).map { "\($0)=\($1)" })
        for text in ["", "abc", "01020304", "xx"] { #expect(FormatCatalog.octets(format.fields[3], text: text) == nil) }
    }

    /// The built-in formats come first, and of two layouts that fit the first.
    @Test func orderOfFormats() throws {
        let layouts = ["m:2-3=0215,i:4-19", "m:0-3=4c000215,i:4-5", "m:2-3=0215,i:4-5", "m:2-2=02,i:4-5"]
        let custom = try layouts.enumerated().map { FormatDefinition(name: "f\($0)", layout: try LayoutString($1)) }
        let decoder = FrameDecoder(FormatDefinition.all + custom)
        func name(_ hexadecimal: String) throws -> String? {
            var name: String?
            let data = try #require(Hexadecimal.octets(hexadecimal))
            decoder.forEachFrame(in: data.span) { frame, _ in name = decoder.catalog[frame.format]?.name }
            return name
        }
        #expect(try name("1aff4c000215f7826da64fa24e988024bc5b71e0893e00010002c5") == "ibeacon")
        #expect(try name("1affffff0215f7826da64fa24e988024bc5b71e0893e00010002c5") == "f0")
        #expect(try name("07ff4c0002150001") == "f1")
        #expect(try name("07ffffff02150001") == "f2")
        #expect(try name("07ffffff02160001") == "f3")
        #expect(try name("06ffffff021600") == nil)
    }

    // MARK: Mistakes

    @Test(arguments: [
        ("", 1, "expected a term that begins with \"m\", \"s\", \"i\", \"p\", \"d\" or \"x\""),
        ("m:2-3=beac,", 12, "expected a term that begins with \"m\", \"s\", \"i\", \"p\", \"d\" or \"x\""),
        ("m:2-3=beac,i:4-19;p:24-24", 18, "expected \",\" or the end"),
        ("m:2-3=beac,q:4-5", 12, "expected a term that begins with \"m\", \"s\", \"i\", \"p\", \"d\" or \"x\""),
        ("m2-3=beac", 2, "expected \":\" behind the letter of a term"),
        ("m:-3=beac", 3, "expected the first offset, a number from 0 to 253"),
        ("m:254-255=beac", 3, "expected the first offset, a number from 0 to 253"),
        ("m:99999999999999999999-1=be", 3, "expected the first offset, a number from 0 to 253"),
        ("m:2-3=beac,i:4,i:5-6", 15, "expected \"-\" between the first and the last offset"),
        ("m:2-3=beac,i:4-,i:5-6", 16, "expected the last offset, a number from 4 to 253"),
        ("m:2-3=beac,i:19-4", 17, "expected the last offset, a number from 19 to 253"),
        ("m:2-3=beac,i:4-254", 16, "expected the last offset, a number from 4 to 253"),
        ("m:2-3:beac", 6, "expected \"=\" in front of the octets"),
        ("m:2-3=bea,i:4-5", 10, "expected 4 hexadecimal digits for octets 2 to 3"),
        ("m:2-2=beac,i:4-5", 9, "expected 2 hexadecimal digits for octet 2"),
        ("m:2-3=0x15,i:4-5", 8, "expected 4 hexadecimal digits for octets 2 to 3"),
        ("m:2-3=beác,i:4-5", 9, "expected 4 hexadecimal digits for octets 2 to 3"),
        ("m:2-3=beac,i:4-5d", 17, "expected \",\" or the end"),
        ("m:2-3=beac,i:4-5,d:6-7v", 23, "expected \",\" or the end"),
        ("m:2-3=beac,i:4-5v,i:6-7", 19, "an identifier behind one of variable length"),
        ("m:2-3=beac,i:4-19,i:20-28", 19, "the identifiers have 25 octets, 24 are possible"),
        ("m:2-3=beac,i:4-28v", 12, "the identifiers have 25 octets, 24 are possible"),
        (
            "m:2-3=beac,i:4-4,i:5-5,i:6-6,i:7-7,i:8-8,i:9-9,i:10-10,i:11-11,i:12-12", 64,
            "more than 8 identifiers"
        ),
        ("m:2-3=beac,i:4-5,p:6-7", 20, "the strength is one octet; expected such as \"p:24-24\""),
        ("m:2-3=beac,i:4-5,p:6-6:", 24, "expected a strength in dB, a number from -128 to 127"),
        ("m:2-3=beac,i:4-5,p:6-6:128", 24, "expected a strength in dB, a number from -128 to 127"),
        ("m:2-3=beac,i:4-5,p:-:-129", 22, "expected a strength in dB, a number from -128 to 127"),
        ("m:2-3=beac,i:4-5,p:-59", 21, "expected \":\" in front of the constant strength"),
        ("m:2-3=beac,i:4-5,p:6-6,p:7-7", 24, "a second \"p\"; one is possible"),
        ("s:0-1=feaa,s:0-1=feab,i:4-5", 12, "a second \"s\"; one is possible"),
        ("s:2-3=feaa,i:4-5", 3, "a service UUID has 16 bits and stands in front, as in \"s:0-1=feaa\""),
        (
            "s:0-15=fda50693a4e24fb1afcfc6eb07647825,i:16-17", 3,
            "a service UUID has 16 bits and stands in front, as in \"s:0-1=feaa\""
        ),
        ("x,m:2-3=beac,i:4-5", 14, "frames of an extra layout name no beacon; leave out \"i\" or \"x\""),
        ("m:2-3=beac,i:4-5,x", 18, "frames of an extra layout name no beacon; leave out \"i\" or \"x\""),
        ("i:4-5,p:6-6", 12, "nothing marks the format; add the octets to match, such as \"m:2-3=beac\""),
        (
            "m:2-3=beac,p:6-6", 17,
            "nothing names the beacon; add an identifier such as \"i:4-19\", or \"x\" for frames without one"
        ),
    ])
    func mistakes(_ layout: String, _ column: Int, _ text: String) throws {
        let error = try #require(throws: LayoutError.self) { try LayoutString(layout) }
        #expect(error.column == column)
        #expect(error.text == text)
        #expect(error.description == "column \(column): \(text)")
    }

    @Test func spacesAroundTerms() throws {
        #expect(try LayoutString(" m:2-3=BEAC , i:4-19 ") == LayoutString("m:2-3=beac,i:4-19"))
    }

    /// Whatever the text and the frame are, nothing traps.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func randomLayouts(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let pieces = [
            "m:2-3=beac", "s:0-1=feaa", "i:4-19", "i:20-21l", "i:22-30v", "p:24-24", "p:3-3:-41", "p:-:-59", "d:25-25",
            "d:0-253l", "x", "m:0-253=", "i:253-253", ",", "", "-", "9", "\u{0}", "é",
        ]
        var accepted = 0
        for _ in 0..<5000 {
            let count = Int.random(in: 1...5, using: &random)
            var text = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined(separator: ",")
            if Bool.random(using: &random) { text = "m:2-3=beac,\(text),i:4-5" }
            if Bool.random(using: &random), let index = text.indices.randomElement(using: &random) {
                text.replaceSubrange(index...index, with: pieces.randomElement(using: &random) ?? "")
            }
            let layout: LayoutString
            do throws(LayoutError) { layout = try LayoutString(text) } catch {
                #expect((1...text.unicodeScalars.count + 1).contains(error.column), "\(text): \(error)")
                continue
            }
            accepted += 1
            let decoder = FrameDecoder([FormatDefinition(name: "f", layout: layout)])
            for length in [0, 1, 2, 4, 26, 254] {
                var data: [UInt8] = [UInt8(length + 1), layout.isManufacturerData ? 0xFF : 0x16]
                data += (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
                let front: [UInt8] = layout.isManufacturerData ? [0x4C, 0x00, 0xBE, 0xAC] : [0xAA, 0xFE, 0xBE, 0xAC]
                for (index, octet) in front.prefix(length).enumerated() { data[2 + index] = octet }
                var writer = JSONWriter()
                writer.beginArray()
                decoder.forEachFrame(in: data.span) { decoder.write($0, $1, into: &writer) }
                writer.endArray()
                _ = try JSONSerialization.jsonObject(with: Data(writer.bytes))
            }
        }
        #expect(accepted > 100)
    }

    // MARK: Help

    private struct Found: Equatable {
        var identity: BeaconIdentity?
        var measuredPower: Int8?
    }

    private func frames(_ data: [UInt8], _ definition: FormatDefinition) -> [Found] {
        var frames: [Found] = []
        FrameDecoder([definition]).forEachFrame(in: data.span) { frame, _ in
            frames.append(Found(identity: frame.identity, measuredPower: frame.measuredPower))
        }
        return frames
    }

    /// The frames as JSON with sorted keys.
    private func decoded(_ hexadecimal: String, _ layout: String, companyID: UInt16? = nil) throws -> [String] {
        let data = try #require(Hexadecimal.octets(hexadecimal))
        let definition = FormatDefinition(name: "f", layout: try LayoutString(layout), companyID: companyID)
        let decoder = FrameDecoder([definition])
        var texts: [String] = []
        decoder.forEachFrame(in: data.span) { frame, payload in
            var writer = JSONWriter()
            decoder.write(frame, payload, into: &writer)
            texts.append(writer.text)
        }
        return try texts.map { text in
            let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
            return String(
                decoding: try JSONSerialization.data(withJSONObject: object, options: .sortedKeys), as: UTF8.self)
        }
    }
}
