// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import TestSupport
import Testing

@Suite struct AdvertisingReportParserTests {
    /// What a report says, in a form that can be compared and encoded.
    struct Expectation: Equatable {
        var type: UInt16
        var address: UInt64
        var addressKind: UInt8
        var rssi: Int8?
        var data: [UInt8]
        var txPower: Int8?
        var sid: UInt8?

        init(
            type: UInt16 = 0, address: UInt64 = 0xC0_11_22_33_44_55, addressKind: UInt8 = 1, rssi: Int8? = -60,
            data: [UInt8] = [2, 1, 6], txPower: Int8? = nil, sid: UInt8? = nil
        ) {
            self.type = type
            self.address = address
            self.addressKind = addressKind
            self.rssi = rssi
            self.data = data
            self.txPower = txPower
            self.sid = sid
        }

        init(_ report: AdvertisingReport, _ data: Span<UInt8>) {
            self.init(
                type: report.eventType.rawValue, address: report.address.value,
                addressKind: report.address.kind.rawValue, rssi: report.rssi, data: data.indices.map { data[$0] },
                txPower: report.txPower, sid: report.advertisingSID)
        }

        var addressOctets: [UInt8] { (0..<6).map { UInt8(truncatingIfNeeded: address >> UInt64($0 * 8)) } }
        var rssiOctet: UInt8 { rssi.map { UInt8(bitPattern: $0) } ?? 0x7F }

        var legacyOctets: [UInt8] {
            [UInt8(type), addressKind] + addressOctets + [UInt8(data.count)] + data + [rssiOctet]
        }

        var extendedOctets: [UInt8] {
            [UInt8(truncatingIfNeeded: type), UInt8(type >> 8), addressKind] + addressOctets
                + [1, 0, sid ?? 0xFF, txPower.map { UInt8(bitPattern: $0) } ?? 0x7F, rssiOctet, 0, 0, 0]
                + [UInt8](repeating: 0, count: 6) + [UInt8(data.count)] + data
        }
    }

    static func event(_ subevent: UInt8, count: UInt8, _ reports: [UInt8]) -> [UInt8] {
        [0x04, 0x3E, UInt8(reports.count + 2), subevent, count] + reports
    }

    private func parse(_ packets: [[UInt8]], spacing: TimeInterval = .zero) -> ([Expectation], MalformedCounts) {
        var parser = AdvertisingReportParser()
        var found: [Expectation] = []
        var time = MonotonicTime.zero
        for packet in packets {
            parser.parse(packet.span, at: time) { report, data in found.append(Expectation(report, data)) }
            time = time + spacing
        }
        return (found, parser.malformed)
    }

    @Test(arguments: [11, 12, 13] as [UInt64])
    func randomReportsComeBack(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let isExtended = Bool.random(using: &random)
            let reports = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                Expectation(
                    type: isExtended
                        ? 0x10 | UInt16.random(in: 0...15, using: &random) : .random(in: 0...4, using: &random),
                    address: UInt64.random(in: 0...0xFFFF_FFFF_FFFF, using: &random),
                    addressKind: .random(in: 0...3, using: &random),
                    rssi: Bool.random(using: &random) ? .random(in: -127...20, using: &random) : nil,
                    data: (0..<Int.random(in: 0...31, using: &random)).map { _ in .random(in: 0...255, using: &random)
                    },
                    txPower: isExtended ? .random(in: -127...20, using: &random) : nil,
                    sid: isExtended ? .random(in: 0...15, using: &random) : nil)
            }
            let octets = reports.flatMap { isExtended ? $0.extendedOctets : $0.legacyOctets }
            let (found, malformed) = parse([Self.event(isExtended ? 0x0D : 0x02, count: UInt8(reports.count), octets)])
            #expect(found == reports, "seed \(seed)")
            #expect(malformed.total == 0, "seed \(seed)")
        }
    }

    @Test func aBadReportCostsOnlyItself() {
        let good = Expectation()
        let oversized = Expectation(data: [UInt8](repeating: 1, count: 32))
        let (found, malformed) = parse([
            Self.event(0x02, count: 3, good.legacyOctets + oversized.legacyOctets + good.legacyOctets)
        ])
        #expect(found == [good, good])
        #expect(malformed[.oversizedData] == 1)
        #expect(malformed.total == 1)
    }

    @Test func whatIsMissingIsCountedByReason() {
        let report = Expectation().legacyOctets
        func reason(_ packet: [UInt8]) -> [MalformedReason] {
            let (_, malformed) = parse([packet])
            return MalformedReason.allCases.filter { malformed[$0] > 0 }
        }
        #expect(reason([]) == [.truncatedPacket])
        #expect(reason([0x04, 0x3E]) == [.truncatedPacket])
        #expect(reason([0x04, 0x3E, 0x00]) == [.truncatedPacket])
        #expect(reason([0x04, 0x3E, 0x01, 0x02]) == [.truncatedReport])
        #expect(reason([0x04, 0x3E, 0x20, 0x02, 0x01]) == [.truncatedPacket])
        #expect(reason(Self.event(0x02, count: 2, report)) == [.truncatedReport])
        #expect(reason(Self.event(0x02, count: 1, report + [0])) == [.octetsBehindReports])
        #expect(reason(Self.event(0x02, count: 1, report) + [0]) == [.trailingOctets])
        #expect(reason(Self.event(0x0D, count: 1, [0x13])) == [.truncatedReport])
        #expect(reason(Self.event(0x7F, count: 1, [0x13])) == [])
        #expect(reason([0x02, 0x00]) == [])
    }

    @Test func anAnonymousAdvertiserHasNoAddress() {
        let (found, _) = parse([
            Self.event(0x0D, count: 1, Expectation(address: 0x1234, addressKind: 0xFF, sid: 3).extendedOctets)
        ])
        #expect(found.first?.addressKind == 0xFF)
        #expect(found.first?.address == 0)
    }

    // MARK: Fragments

    private func fragment(_ data: [UInt8], _ status: UInt16, address: UInt64 = 1, sid: UInt8 = 2) -> [UInt8] {
        Self.event(
            0x0D, count: 1,
            Expectation(type: status << 5, address: address, data: data, txPower: 0, sid: sid).extendedOctets)
    }

    @Test func fragmentsOfSeveralSetsAreJoinedApart() {
        let (found, malformed) = parse([
            fragment([1], 1, sid: 1), fragment([2], 1, sid: 2), fragment([3], 1, address: 9, sid: 1),
            fragment([4], 1, sid: 1), fragment([5], 0, sid: 2), fragment([6], 0, sid: 1),
            fragment([7], 0, address: 9, sid: 1),
        ])
        #expect(found.map(\.data) == [[2, 5], [1, 4, 6], [3, 7]])
        #expect(found.allSatisfy { $0.type == 0 })
        #expect(malformed.total == 0)
    }

    @Test func truncatedDataIsDroppedAndNothingIsGluedToIt() {
        let (found, malformed) = parse([fragment([1], 1), fragment([2], 2), fragment([3], 0)])
        #expect(found.map(\.data) == [[3]])
        #expect(malformed[.truncatedData] == 1)
    }

    @Test func fragmentsFarApartDoNotBelongTogether() {
        let (found, _) = parse([fragment([1], 1), fragment([2], 0)], spacing: .seconds(2))
        #expect(found.map(\.data) == [[2]])
    }

    @Test func moreSetsThanBuffersCostTheOldest() {
        let beginnings = (0..<20).map { fragment([UInt8($0)], 1, address: $0) }
        let ends = (0..<20).map { fragment([UInt8($0)], 0, address: $0) }
        let (found, malformed) = parse(beginnings + ends, spacing: .milliseconds(1))
        #expect(found.filter { $0.data.count == 2 }.map(\.data) == (12..<20).map { [UInt8($0), UInt8($0)] })
        #expect(malformed[.unfinishedData] == 12)
    }

    @Test func dataLongerThanAnAdvertisementIsGivenUp() {
        let long = [UInt8](repeating: 7, count: 229)
        let (found, malformed) = parse((0..<8).map { _ in fragment(long, 1) } + [fragment([1], 0)])
        #expect(found.map(\.data) == [[1]])
        #expect(malformed[.unfinishedData] == 1)
    }
}
