// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import Testing

@Suite struct BtsnoopTests {
    private func header(_ identification: String = "btsnoop\0", version: UInt32 = 1, link: UInt32 = 1002) -> [UInt8] {
        Array(identification.utf8) + octets(version) + octets(link)
    }

    private func octets(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    @Test func headers() throws {
        #expect(try Btsnoop.dataLink(of: header().span) == .uart)
        #expect(try Btsnoop.dataLink(of: header(link: 2001).span) == .linuxMonitor)
        #expect(throws: Btsnoop.HeaderError.notBtsnoop) { try Btsnoop.dataLink(of: header("pcapng!\0").span) }
        #expect(throws: Btsnoop.HeaderError.version(2)) { try Btsnoop.dataLink(of: header(version: 2).span) }
        #expect(throws: Btsnoop.HeaderError.dataLink(7)) { try Btsnoop.dataLink(of: header(link: 7).span) }
        #expect(throws: Btsnoop.HeaderError.tooShort) { try Btsnoop.dataLink(of: header().span.extracting(0..<15)) }
    }

    @Test func recordTimesAreSinceTheBeginningOf1970() {
        // 0x00E03AB44A676000 is 2000-01-01T00:00:00Z, the example that several descriptions of the format give.
        let record = octets(5) + octets(4) + octets(3) + octets(0) + octets(0x00E0_3AB4) + octets(0x4A67_6000)
        let parsed = Btsnoop.Record(record.span)
        #expect(parsed.originalLength == 5)
        #expect(parsed.includedLength == 4)
        #expect(parsed.time == MonotonicTime(nanoseconds: 946_684_800_000_000_000))
    }

    @Test func anyTimeStampIsTaken() {
        for high in [0, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] as [UInt32] {
            _ = Btsnoop.Record((octets(0) + octets(0) + octets(0) + octets(0) + octets(high) + octets(high)).span)
        }
    }

    @Test func packetTypesOfTheMonitor() {
        func type(_ flags: UInt32, _ link: Btsnoop.DataLink) -> PacketType? {
            Btsnoop.Record((octets(0) + octets(0) + octets(flags) + octets(0) + octets(0) + octets(0)).span).packetType(
                link)
        }
        #expect(type(0x0001_0002, .linuxMonitor) == .command)
        #expect(type(0x0001_0003, .linuxMonitor) == .event)
        #expect(type(0, .linuxMonitor) == nil)
        #expect(type(3, .unencapsulated) == .event)
        #expect(type(2, .unencapsulated) == .command)
        #expect(type(1, .unencapsulated) == .aclData)
        #expect(type(3, .uart) == nil)
    }
}
