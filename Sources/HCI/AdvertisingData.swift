// SPDX-License-Identifier: Apache-2.0

/// AD type (Assigned Numbers, 2.3).
public struct ADType: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let flags = ADType(rawValue: 0x01)
    public static let incompleteServices16 = ADType(rawValue: 0x02)
    public static let completeServices16 = ADType(rawValue: 0x03)
    public static let incompleteServices32 = ADType(rawValue: 0x04)
    public static let completeServices32 = ADType(rawValue: 0x05)
    public static let incompleteServices128 = ADType(rawValue: 0x06)
    public static let completeServices128 = ADType(rawValue: 0x07)
    public static let shortenedName = ADType(rawValue: 0x08)
    public static let completeName = ADType(rawValue: 0x09)
    public static let txPowerLevel = ADType(rawValue: 0x0A)
    public static let serviceData16 = ADType(rawValue: 0x16)
    public static let appearance = ADType(rawValue: 0x19)
    public static let serviceData32 = ADType(rawValue: 0x20)
    public static let serviceData128 = ADType(rawValue: 0x21)
    public static let manufacturerSpecificData = ADType(rawValue: 0xFF)
}

/// The AD structures of an advertisement (Core 5.4, Vol 3, Part C, 11): length, type and payload, one behind the other.
public enum AdvertisingData {
    /// How the walk over the structures ended.
    public enum Ending: Sendable {
        /// With the last octet.
        case complete
        /// At a length of zero with nothing but zeros behind it: padding.
        case zeroTerminated
        /// At a length of zero with data behind it, which is left alone: a zero length ends the data.
        case zeroLengthThenData
        /// A structure runs past the end; it is not used, those in front of it are.
        case overrun

        /// As `beacond decode` spells it.
        public var word: String {
            switch self {
            case .complete: "ok"
            case .zeroTerminated: "zero-terminated"
            case .zeroLengthThenData: "zero-length-then-data"
            case .overrun: "overrun"
            }
        }
    }

    /// Calls `body` with each whole structure, in order.
    @discardableResult
    public static func forEachStructure(in data: Span<UInt8>, _ body: (ADType, Span<UInt8>) -> Void) -> Ending {
        var offset = 0
        while offset < data.count {
            let length = Int(data[offset])
            if length == 0 {
                for index in offset..<data.count where data[index] != 0 { return .zeroLengthThenData }
                return .zeroTerminated
            }
            let end = offset + 1 + length
            guard end <= data.count else { return .overrun }
            body(ADType(rawValue: data[offset + 1]), data.extracting(offset + 2..<end))
            offset = end
        }
        return .complete
    }
}
