// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Foundation
import TestSupport
import Testing

@Suite struct KindFormatTests {
    private func kinds(_ hexadecimal: String) throws -> String {
        let data = try #require(Hexadecimal.octets(hexadecimal))
        var writer = JSONWriter()
        writer.beginArray()
        AdvertisementKind.forEach(in: data.span) { kind, payload in kind.write(payload, into: &writer) }
        writer.endArray()
        return writer.text
    }

    private func continuity(_ types: String...) -> String {
        let list = types.map { "\"\($0)\"" }.joined(separator: ",")
        return "[{\"kind\":\"apple-continuity\",\"types\":[\(list)]}]"
    }

    @Test func messagesOfApple() throws {
        #expect(try kinds("0aff4c0010050a1c77f95b") == continuity("nearby-info"))
        // Two messages, one behind the other.
        #expect(try kinds("0fff4c000f0200001006501eb13f6376") == continuity("nearby-action", "nearby-info"))
        // HomeKit has three bits of something else in its length.
        #expect(try kinds("16ff4c00063100e4c49beefb3e05000d0001026311206504084e616e") == continuity("homekit"))
        #expect(try kinds("06ff4c00130100") == continuity("0x13"))
    }

    @Test func findMyIsAKindOfItsOwn() throws {
        let message = "1219" + String(repeating: "00", count: 25)
        #expect(try kinds("1eff4c00" + message) == "[{\"kind\":\"find-my\"}]")
        #expect(
            try kinds("0bff4c0012020000" + "10020000")
                == "[{\"kind\":\"apple-continuity\",\"types\":[\"nearby-info\"]},{\"kind\":\"find-my\"}]")
    }

    @Test(arguments: [
        // An iBeacon is a beacon; a message that does not fit is none; a company without data is nobody.
        "1aff4c000215f7826da64fa24e988024bc5b71e0893e00010002c5", "05ff4c001005", "03ff4c00", "02ff4c",
        // Microsoft: other ids, too short.
        "06ff0600020080", "05ff06000300", "06ff0600012000",
        // A service beside Tile's, and a list of it that is cut off.
        "0303eefe", "0302edfe".dropLast(2).description, "020106",
    ])
    func whatIsNothingOfThese(hexadecimal: String) throws {
        #expect(try kinds(hexadecimal) == "[]")
    }

    @Test func microsoftAndTile() throws {
        #expect(try kinds("06ff0600030080") == "[{\"kind\":\"swift-pair\"}]")
        #expect(
            try kinds("1eff060001092002ac6d90ec0132b3204cd39c7ced3e48436ba15dc6314778")
                == "[{\"kind\":\"microsoft-cdp\"}]")
        // Once, though the list and the data both say so.
        #expect(try kinds("0303edfe0416edfe02") == "[{\"kind\":\"tile\"}]")
        #expect(try kinds("05020d18ecfe") == "[{\"kind\":\"tile\"}]")
    }

    // MARK: Device

    private func device(_ hexadecimal: String) throws -> String {
        let data = try #require(Hexadecimal.octets(hexadecimal))
        var writer = JSONWriter()
        DeviceInformation.write(data.span, into: &writer)
        return writer.text
    }

    /// The name is a stranger's: what is no UTF-8 is replaced, what would move a cursor is escaped.
    @Test func aNameCannotHurtATerminal() throws {
        #expect(try device("0709611b5b324aff") == "{\"name\":\"a\\u001b[2J\u{FFFD}\"}")
    }

    @Test func theFirstOfSeveralCounts() throws {
        #expect(
            try device("04ff4c000104ff4c0002040841626303096465" + "020ac5" + "020a01")
                == "{\"name\":\"de\",\"tx_power_level\":-59,\"manufacturer_data\":{\"004c\":\"01\"}}")
    }

    @Test func uuidsInTheirOwnLength() throws {
        #expect(
            try device("0303aafe" + "0504785634120416d2fc40" + "12210f0e0d0c0b0a09080706050403020100ff")
                == "{\"service_uuids\":[\"feaa\",\"12345678\"],\"service_data\":{\"fcd2\":\"40\","
                + "\"00010203-0405-0607-0809-0a0b0c0d0e0f\":\"ff\"}}")
    }
}
