// SPDX-License-Identifier: Apache-2.0

/// The octets of a frame that says more than who sent it: sensor values, a battery, counters. They are kept as they came
/// and spelled by the ``BeaconFormat`` when somebody reads them, so that the hot path only copies.
public struct FramePayload: Sendable {
    /// Longest payload in octets. An AD structure of a legacy advertisement has at most 29; what is longer comes in an
    /// extended advertisement and is not kept.
    public static let capacity = 38

    public let format: FormatID
    private let count: UInt8
    private let octets: [38 of UInt8]

    /// nil for a payload that is longer than ``capacity``.
    public init?(format: FormatID, _ payload: Span<UInt8>) {
        guard payload.count <= Self.capacity else { return nil }
        self.format = format
        count = UInt8(payload.count)
        var octets = [38 of UInt8](repeating: 0)
        for index in payload.indices { octets[index] = payload[index] }
        self.octets = octets
    }

    /// The format and the length: payloads of one shape mostly say the same things. Never `UInt16.max`.
    public var shape: UInt16 { UInt16(format.rawValue) << 8 | UInt16(count) }

    /// Writes `frame` and what the frame says as members of the current object.
    public func write(_ catalog: FormatCatalog, into writer: inout JSONWriter) {
        guard let format = catalog[format] else { return }
        writer.key("frame")
        writer.string(format.name)
        format.describe(octets.span.extracting(0..<Int(count)), &writer)
    }
}
