// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Foundation
import HCI
import TestSupport
import Testing

/// A line of `Tests/Fixtures/vectors.jsonl`.
struct Vector: CustomTestStringConvertible, Sendable {
    enum Judgement: String { case fixed, policy }

    let id: String
    let kind: String
    let packets: [[UInt8]]
    let judgement: Judgement
    /// The expected answer as JSON with sorted keys.
    let ad: String?
    let adStatus: String?
    let frames: [String]
    let reports: [[String: JSONScalar]]?

    var testDescription: String { id }

    static let all: [Vector] = {
        do { return try Fixtures.lines("vectors.jsonl").map(Vector.init) } catch { return [] }
    }()

    init(line: String) throws {
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        let expect = try #require(object["expect"] as? [String: Any])
        id = try #require(object["id"] as? String)
        kind = try #require(object["kind"] as? String)
        judgement = try #require((object["judgement"] as? String).flatMap(Judgement.init))
        let texts = object["hex"] as? [String] ?? (object["hex"] as? String).map { [$0] } ?? []
        packets = try texts.map { try #require(Hexadecimal.octets($0)) }
        ad = try expect["ad"].map(canonical)
        adStatus = expect["ad_status"] as? String
        frames = try (expect["frames"] as? [[String: Any]] ?? []).filter {
            Self.knownFormats.contains($0["format"] as? String ?? "")
        }.map(canonical)
        reports = (expect["reports"] as? [[String: Any]]).map { $0.map { $0.compactMapValues(JSONScalar.init) } }
    }

    private static let knownFormats = Set(FrameDecoder().catalog.formats.map(\.name))
}

/// A JSON value that can be compared.
enum JSONScalar: Equatable, Sendable {
    case null
    case number(Double)
    case text(String)

    init?(_ value: Any) {
        switch value {
        case is NSNull: self = .null
        // A Boolean is a number here: 1 or 0.
        case let number as NSNumber: self = .number(number.doubleValue)
        case let text as String: self = .text(text)
        default: return nil
        }
    }
}

/// JSON with sorted keys, so that equal values are equal texts.
func canonical(_ value: Any) throws -> String {
    String(decoding: try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys]), as: UTF8.self)
}

/// The frames that the decoder finds, each as JSON with sorted keys.
func decodedFrames(_ data: [UInt8]) throws -> [String] {
    let decoder = FrameDecoder()
    var writer = JSONWriter()
    writer.beginArray()
    decoder.forEachFrame(in: data.span) { frame, payload in decoder.write(frame, payload, into: &writer) }
    writer.endArray()
    let frames = try #require(try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [[String: Any]])
    return try frames.map(canonical)
}

@Suite struct VectorTests {
    @Test func allLinesAreRead() {
        #expect(Vector.all.count == 240)
    }

    @Test(arguments: Vector.all.filter { $0.kind == "adv-data" })
    func advertisingData(_ vector: Vector) throws {
        let data = try #require(vector.packets.first)
        var structures: [[Any]] = []
        let ending = AdvertisingData.forEachStructure(in: data.span) { type, payload in
            structures.append([Int(type.rawValue), Hexadecimal.text(payload.indices.map { payload[$0] })])
        }
        if let ad = vector.ad { #expect(try canonical(structures) == ad) }
        if let status = vector.adStatus { #expect(ending.word == status) }
        #expect(try decodedFrames(data) == vector.frames)
    }

    @Test(arguments: Vector.all.filter { $0.kind != "adv-data" })
    func packets(_ vector: Vector) throws {
        var parser = AdvertisingReportParser()
        var reports: [(report: AdvertisingReport, data: [UInt8])] = []
        for packet in vector.packets {
            parser.parse(packet.span, at: .zero) { report, data in
                reports.append((report, data.indices.map { data[$0] }))
            }
        }
        #expect(try reports.flatMap { try decodedFrames($0.data) } == vector.frames)
        guard let expected = vector.reports else { return }
        try #require(reports.count == expected.count)
        for ((report, data), expected) in zip(reports, expected) {
            for (key, value) in expected { #expect(scalar(key, report, data) == value, "\(key)") }
        }
    }

    private func scalar(_ key: String, _ report: AdvertisingReport, _ data: [UInt8]) -> JSONScalar? {
        func number(_ value: (some BinaryInteger)?) -> JSONScalar { value.map { .number(Double($0)) } ?? .null }
        switch key {
        case "event_type": return number(report.eventType.rawValue)
        case "address_type": return number(report.address.kind.rawValue)
        case "address":
            var writer = JSONWriter()
            writer.address(report.address)
            return writer.text == "null" ? .null : .text(String(writer.text.dropFirst().dropLast()))
        case "rssi": return number(report.rssi)
        case "data": return .text(Hexadecimal.text(data))
        case "legacy": return number(report.eventType.isLegacyPDU ? 1 : 0)
        case "tx_power": return number(report.txPower)
        case "sid": return number(report.advertisingSID)
        case "primary_phy": return number(report.primaryPHY.rawValue)
        case "secondary_phy": return number(report.secondaryPHY.rawValue)
        case "data_status": return .text(report.eventType.dataStatus == .complete ? "complete" : "other")
        default: return nil
        }
    }
}
