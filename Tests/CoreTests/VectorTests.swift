// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Crypto
import Foundation
import HCI
import TestSupport
import Testing

/// A line of `Tests/Fixtures/vectors.jsonl` or `vectors-more.jsonl`.
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
    /// A format that may be reported beside them.
    let otherFormat: String?
    let reports: [[String: JSONScalar]]?
    /// The key with which the expected values were decrypted, and whose it is.
    let bindKey: (address: DeviceAddress, key: [16 of UInt8])?
    /// What the upstream test says about the device.
    let device: Device?

    var testDescription: String { id }

    static let all: [Vector] = {
        do {
            return try ["vectors.jsonl", "vectors-more.jsonl"].flatMap(Fixtures.lines).map(Vector.init)
        } catch {
            return []
        }
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
        var frames = Fixtures.expectedFrames(object)
        otherFormat = Fixtures.otherFormat(object)
        bindKey = try frames.compactMap(Self.bindKey).first
        // They are what the test is given, not what it asks for.
        for index in frames.indices where frames[index]["format"] as? String == "bthome-v2" {
            frames[index]["bindkey"] = nil
            frames[index]["address"] = nil
        }
        self.frames = try frames.map(canonical)
        reports = (expect["reports"] as? [[String: Any]]).map { $0.map { $0.compactMapValues(JSONScalar.init) } }
        device = (expect["upstream"] as? [String: Any]).map(Device.init)
    }

    private static func bindKey(_ frame: [String: Any]) throws -> (address: DeviceAddress, key: [16 of UInt8])? {
        guard let key = frame["bindkey"] as? String else { return nil }
        let octets = try #require(Hexadecimal.octets(key))
        try #require(octets.count == 16)
        let address = try #require(
            DeviceAddress(text: frame["address"] as? String ?? "", kind: .publicDevice))
        return (address, [16 of UInt8] { octets[$0] })
    }

    /// A decoder that has the key of this vector, and its counter still to come.
    var decoder: FrameDecoder { FrameDecoder(bindKeys: bindKey.map { BindKeys([$0], decrypt: decryptWithLibcrypto) }) }

    func mentions(_ frame: String) -> Bool {
        otherFormat.map { frame.contains("\"format\":\"\($0)\"") } ?? false
    }

    /// Who sent it, as far as the vector says.
    var sender: DeviceAddress { bindKey?.address ?? .anonymous }
}

/// The cipher of the product, as it is handed to the formats.
let decryptWithLibcrypto: BindKeys.Decrypt = { ciphertext, tag, key, nonce in
    AES128CCM.decrypt(ciphertext, tag: tag, key: key, nonce: nonce)
}

/// Name, UUIDs and data, in the spelling of the upstream tests: full UUIDs, company ids in decimal.
struct Device: Equatable, Sendable {
    var name: String?
    var power: Int?
    var services: [String]
    var serviceData: [String: String]
    var manufacturerData: [String: String]

    init(_ upstream: [String: Any]) {
        name = upstream["local_name"] as? String
        power = upstream["tx_power"] as? Int
        services = upstream["service_uuids"] as? [String] ?? []
        serviceData = upstream["service_data"] as? [String: String] ?? [:]
        manufacturerData = upstream["manufacturer_data"] as? [String: String] ?? [:]
    }

    /// From what beacond writes.
    init(_ data: [UInt8]) throws {
        var writer = JSONWriter()
        DeviceInformation.write(data.span, into: &writer)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String: Any])
        func full(_ uuid: String) -> String {
            uuid.count == 36
                ? uuid : String(repeating: "0", count: 8 - uuid.count) + uuid + "-0000-1000-8000-00805f9b34fb"
        }
        name = object["name"] as? String
        power = object["tx_power_level"] as? Int
        services = (object["service_uuids"] as? [String] ?? []).map(full)
        serviceData = Dictionary(
            uniqueKeysWithValues: (object["service_data"] as? [String: String] ?? [:]).map { (full($0), $1) })
        manufacturerData = Dictionary(
            uniqueKeysWithValues: (object["manufacturer_data"] as? [String: String] ?? [:]).map {
                (String(UInt16($0, radix: 16) ?? 0), $1)
            })
    }
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
func decodedFrames(
    _ data: [UInt8], _ decoder: FrameDecoder = FrameDecoder(), from address: DeviceAddress = .anonymous
) throws -> [String] {
    var writer = JSONWriter()
    writer.beginArray()
    decoder.forEachFrame(in: data.span, from: address) { frame, payload in
        decoder.write(frame, payload, into: &writer)
    }
    writer.endArray()
    let frames = try #require(try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [[String: Any]])
    return try frames.map(canonical)
}

@Suite struct VectorTests {
    @Test func allLinesAreRead() {
        #expect(Vector.all.count == 240 + 133)
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
        let frames = try decodedFrames(data, vector.decoder, from: vector.sender)
        #expect(frames.filter { !vector.mentions($0) } == vector.frames)
        // Where the layouts leave it open, upstream may have read on behind the end.
        if let device = vector.device, vector.judgement == .fixed { #expect(try Device(data) == device) }
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
