// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import HCI

/// Reads frames out of advertising data, by a table from company ids and service UUIDs to formats.
public struct FrameDecoder: Sendable {
    /// The formats, in the order of the table.
    public let catalog: FormatCatalog
    private let manufacturers: [Entry]
    private let codes: [Entry]
    private let everyManufacturer: [Entry]
    private let services: [Entry]

    private struct Entry: Sendable {
        var key: UInt16
        var format: FormatID
        var decode: @Sendable (_ payload: Span<UInt8>, _ format: FormatID) -> Frame?
    }

    public init(_ definitions: [FormatDefinition] = FormatDefinition.all) {
        catalog = FormatCatalog(definitions.map(\.format))
        var manufacturers: [Entry] = []
        var codes: [Entry] = []
        var everyManufacturer: [Entry] = []
        var services: [Entry] = []
        for (index, definition) in definitions.enumerated() {
            let format = FormatID(rawValue: UInt8(index))
            func entry(_ key: UInt16) -> Entry { Entry(key: key, format: format, decode: definition.decode) }
            switch definition.carrier {
            case .manufacturer(let company): manufacturers.append(entry(company))
            case .anyManufacturer(let code): codes.append(entry(code))
            case .everyManufacturer: everyManufacturer.append(entry(0))
            case .service(let uuid): services.append(entry(uuid))
            case .unframed: break
            }
        }
        self.manufacturers = manufacturers
        self.codes = codes
        self.everyManufacturer = everyManufacturer
        self.services = services
    }

    /// Calls `body` with each frame in the advertising data, and the payload of the AD structure that it stands in.
    ///
    /// - Parameter address: who sent it, where that is known.
    @discardableResult
    public func forEachFrame(
        in data: Span<UInt8>, from address: DeviceAddress = .anonymous, _ body: (Frame, Span<UInt8>) -> Void
    ) -> AdvertisingData.Ending {
        AdvertisingData.forEachStructure(in: data) { type, payload in
            switch type {
            case .manufacturerSpecificData:
                guard payload.count >= 2 else { return }
                if let frame = first(manufacturers, key: UInt16(payload[0]) | UInt16(payload[1]) << 8, payload) {
                    return body(frame, payload)
                }
                if payload.count >= 4,
                    let frame = first(codes, key: UInt16(payload[2]) << 8 | UInt16(payload[3]), payload)
                {
                    return body(frame, payload)
                }
                if let frame = first(everyManufacturer, key: 0, payload) { body(frame, payload) }
            case .serviceData16:
                guard payload.count >= 2 else { return }
                if let frame = first(services, key: UInt16(payload[0]) | UInt16(payload[1]) << 8, payload) {
                    body(frame, payload)
                }
            default: break
            }
        }
    }

    /// Writes a frame as an object: `format`, the fields of the identity, and what else it says.
    public func write(_ frame: Frame, _ payload: Span<UInt8>, into writer: inout JSONWriter) {
        writer.beginObject()
        if let identity = frame.identity {
            catalog.write(identity, into: &writer)
        } else {
            writer.key("format")
            writer.string(catalog[frame.format]?.name ?? "")
        }
        catalog[frame.format]?.describe(payload, &writer)
        writer.endObject()
    }

    @inline(__always)
    private func first(_ entries: [Entry], key: UInt16, _ payload: Span<UInt8>) -> Frame? {
        for entry in entries where entry.key == key {
            if let frame = entry.decode(payload, entry.format) { return frame }
        }
        return nil
    }
}
