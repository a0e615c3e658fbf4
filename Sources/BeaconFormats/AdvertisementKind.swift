// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import HCI

/// What an advertisement is that is no beacon: recognised so that a person can filter it, and no further read than its
/// layout is public. It has no identity and stands for no device; the addresses behind it change every few minutes.
public enum AdvertisementKind: String, CaseIterable, Sendable {
    /// Apple devices among each other: company 0x004C, then types and lengths.
    case appleContinuity = "apple-continuity"
    /// Apple's offline finding, as AirTags and lost devices send it: type 0x12 among those.
    case findMy = "find-my"
    /// A peripheral that asks Windows to be paired: company 0x0006, beacon id 3.
    case swiftPair = "swift-pair"
    /// Windows devices among each other (MS-CDP, 2.2.2.2.3): company 0x0006, scenario 1.
    case microsoftCDP = "microsoft-cdp"
    /// A tag of Tile, Inc.: services 0xFEED and 0xFEEC.
    case tile

    /// Calls `body` with each kind in the advertising data, once each, and the payload of the AD structure that shows it.
    public static func forEach(in data: Span<UInt8>, _ body: (AdvertisementKind, Span<UInt8>) -> Void) {
        // One bit for each place in `all`.
        var seen: UInt8 = 0
        AdvertisingData.forEachStructure(in: data) { type, payload in
            for index in all.indices where seen & 1 << index == 0 && all[index].matches(type, payload) {
                seen |= 1 << index
                body(all[index], payload)
            }
        }
    }

    private static let all = allCases

    /// Writes the kind as an object: `kind`, and for Apple's the `types` that it holds.
    public func write(_ payload: Span<UInt8>, into writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("kind")
        writer.string(rawValue)
        if self == .appleContinuity {
            writer.key("types")
            writer.beginArray()
            AppleMessage.forEach(in: payload) { message in
                if message.isContinuity { writer.string(message.name) }
            }
            writer.endArray()
        }
        writer.endObject()
    }

    private func matches(_ type: ADType, _ payload: Span<UInt8>) -> Bool {
        switch self {
        case .appleContinuity: AppleMessage.contains(in: type, payload) { $0.isContinuity }
        case .findMy: AppleMessage.contains(in: type, payload) { $0.type == AppleMessage.findMy }
        // Beacon id, scenario, reserved.
        case .swiftPair: Self.isMicrosoft(type, payload) && payload.count >= 5 && payload[2] == 3
        // Scenario, device, flags, reserved, salt of 4, hash of 16.
        case .microsoftCDP: Self.isMicrosoft(type, payload) && payload.count >= 26 && payload[2] == 1
        case .tile: Self.isTile(type, payload)
        }
    }

    private static func isMicrosoft(_ type: ADType, _ payload: Span<UInt8>) -> Bool {
        type == .manufacturerSpecificData && payload.count >= 3 && payload.leadingKey == 0x0006
    }

    private static func isTile(_ type: ADType, _ payload: Span<UInt8>) -> Bool {
        func isUUID(_ uuid: UInt64) -> Bool { uuid == 0xFEED || uuid == 0xFEEC }
        switch type {
        case .serviceData16: return payload.count >= 2 && isUUID(UInt64(payload.leadingKey))
        case .incompleteServices16, .completeServices16:
            for index in 0..<payload.count / 2 where isUUID(payload.littleEndian(index * 2..<index * 2 + 2)) {
                return true
            }
            return false
        default: return false
        }
    }
}

/// One message of Apple's manufacturer data: type, length, value, one behind the other. Apple does not publish them; the
/// names are those of the published analyses (Martin et al., PETS 2019; Celosia and Cunche, PETS 2020).
struct AppleMessage {
    static let findMy: UInt8 = 0x12
    private static let proximityBeacon: UInt8 = 0x02
    private static let homeKit: UInt8 = 0x06

    let type: UInt8

    /// An iBeacon is a beacon, and Find My a kind of its own.
    var isContinuity: Bool { type != Self.proximityBeacon && type != Self.findMy }

    var name: String {
        switch type {
        case 0x03: "airprint"
        case 0x05: "airdrop"
        case Self.homeKit: "homekit"
        case 0x07: "proximity-pairing"
        case 0x08: "hey-siri"
        case 0x09: "airplay-target"
        case 0x0A: "airplay-source"
        case 0x0B: "magic-switch"
        case 0x0C: "handoff"
        case 0x0D: "tethering-target"
        case 0x0E: "tethering-source"
        case 0x0F: "nearby-action"
        case 0x10: "nearby-info"
        default: (type < 0x10 ? "0x0" : "0x") + String(type, radix: 16)
        }
    }

    /// Calls `body` with each message that fits into the payload of an AD structure of Apple's.
    static func forEach(in payload: Span<UInt8>, _ body: (AppleMessage) -> Void) {
        var offset = 2
        while offset + 2 <= payload.count {
            let type = payload[offset]
            // HomeKit puts a subtype into the upper three bits of the length.
            let length = Int(type == homeKit ? payload[offset + 1] & 0x1F : payload[offset + 1])
            offset += 2 + length
            guard offset <= payload.count else { return }
            body(AppleMessage(type: type))
        }
    }

    static func contains(
        in type: ADType, _ payload: Span<UInt8>, where predicate: (AppleMessage) -> Bool
    ) -> Bool {
        guard type == .manufacturerSpecificData, payload.count >= 4, payload.leadingKey == 0x004C else { return false }
        var isFound = false
        forEach(in: payload) { if predicate($0) { isFound = true } }
        return isFound
    }
}
