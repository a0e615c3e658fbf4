// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import HCI

/// Reads frames out of advertising data, by a table from company ids and service UUIDs to formats.
public struct FrameDecoder: Sendable {
    /// The formats, in the order of the table.
    public let catalog: FormatCatalog
    private let bindKeys: BindKeys?
    private var manufacturers = Table()
    private var codes = Table()
    private var everyManufacturer = Table()
    private var services = Table()

    /// - Parameter bindKeys: the keys of devices that encrypt what they say.
    public init(_ definitions: [FormatDefinition] = FormatDefinition.all, bindKeys: BindKeys? = nil) {
        catalog = FormatCatalog(definitions.map(\.format))
        self.bindKeys = bindKeys
        for (index, definition) in definitions.enumerated() {
            let format = FormatID(rawValue: UInt8(index))
            switch definition.carrier {
            case .manufacturer(let company): manufacturers.insert(company, definition, format)
            case .anyManufacturer(let code): codes.insert(code, definition, format)
            case .everyManufacturer: everyManufacturer.insert(0, definition, format)
            case .service(let uuid): services.insert(uuid, definition, format)
            case .unframed: break
            }
        }
    }

    /// Calls `body` with each frame in the advertising data, and the payload that the frame stands in: that of the AD
    /// structure, or what it says in the clear when a bind key opened it.
    ///
    /// - Parameter address: who sent it, where that is known.
    @discardableResult
    public func forEachFrame(
        in data: Span<UInt8>, from address: DeviceAddress = .anonymous, _ body: (Frame, Span<UInt8>) -> Void
    ) -> AdvertisingData.Ending {
        AdvertisingData.forEachStructure(in: data) { type, payload in
            guard payload.count >= 2 else { return }
            switch type {
            case .manufacturerSpecificData:
                if deliver(manufacturers, key: payload.leadingKey, payload, address, body) { return }
                if payload.count >= 4 {
                    let code = UInt16(payload[2]) << 8 | UInt16(payload[3])
                    if deliver(codes, key: code, payload, address, body) { return }
                }
                _ = deliver(everyManufacturer, key: 0, payload, address, body)
            case .serviceData16:
                _ = deliver(services, key: payload.leadingKey, payload, address, body)
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

    /// Hands out the frame of the first format that accepts the payload; false when none does.
    @inline(__always)
    private func deliver(
        _ table: Table, key: UInt16, _ payload: Span<UInt8>, _ address: DeviceAddress,
        _ body: (Frame, Span<UInt8>) -> Void
    ) -> Bool {
        var index = table.firstIndex(of: key)
        while index < table.keys.count, table.keys[index] == key {
            if let frame = table.entries[index].decode(payload, table.entries[index].format) {
                if let bindKeys, let open = table.entries[index].open {
                    switch open(payload, address, bindKeys) {
                    case .asSent: body(frame, payload)
                    case .opened(let octets): body(frame, octets.span)
                    case .refused: break
                    }
                } else {
                    body(frame, payload)
                }
                return true
            }
            index += 1
        }
        return false
    }

    /// Formats by key, sorted; those of one key in the order in which they were inserted. The keys lie side by side: a
    /// look-up among a dozen touches one line of the cache.
    private struct Table: Sendable {
        struct Entry: Sendable {
            let format: FormatID
            let decode: @Sendable (_ payload: Span<UInt8>, _ format: FormatID) -> Frame?
            let open: (@Sendable (Span<UInt8>, DeviceAddress, BindKeys) -> FormatDefinition.Opening)?
        }

        private(set) var keys: [UInt16] = []
        private(set) var entries: [Entry] = []

        mutating func insert(_ key: UInt16, _ definition: FormatDefinition, _ format: FormatID) {
            let index = keys.firstIndex { $0 > key } ?? keys.count
            keys.insert(key, at: index)
            entries.insert(Entry(format: format, decode: definition.decode, open: definition.open), at: index)
        }

        @inline(__always)
        func firstIndex(of key: UInt16) -> Int {
            var index = 0
            while index < keys.count, keys[index] < key { index += 1 }
            return index
        }
    }
}
