// SPDX-License-Identifier: Apache-2.0

import BeaconModel

extension FormatDefinition {
    /// A format that a layout string describes. The identity is all identifiers in their order, little-endian ones
    /// turned round; their keys are `id1`, `id2` and so on.
    ///
    /// A frame must be long enough for everything but the values (`d`) and an identifier of variable length.
    ///
    /// - Parameter companyID: of manufacturer data; nil for the one that the layout fixes, else for every company.
    public init(name: String, layout: LayoutString, companyID: UInt16? = nil) {
        let carrier: Carrier =
            if let uuid = layout.serviceUUID {
                .service(uuid: uuid)
            } else if let company = companyID ?? layout.companyID {
                .manufacturer(companyID: company)
            } else if let code = layout.code {
                .anyManufacturer(code: code)
            } else {
                .everyManufacturer
            }
        let hasCompany = if case .manufacturer = carrier { true } else { !layout.isManufacturerData }
        self.init(
            name: name, fields: layout.identityFields, in: carrier,
            decode: { payload, format in layout.frame(payload, format) },
            describe: { payload, writer in layout.describe(payload, showsCompany: !hasCompany, &writer) })
    }
}

extension LayoutString {
    fileprivate var identityFields: [IdentityField] {
        identifiers.enumerated().map { index, field in
            let range = field.range
            let spelling: IdentityField.Spelling =
                if field.isVariable {
                    .custom(
                        spell: { Hexadecimal.append($0, to: &$1) },
                        parse: { text in
                            Hexadecimal.octets(text).flatMap { (1...range.count).contains($0.count) ? $0 : nil }
                        })
                } else {
                    switch range.count {
                    case 16: .uuid
                    case 2: .number
                    default: .hexadecimal(octets: range.count)
                    }
                }
            return IdentityField(
                key: "id\(index + 1)", spelling: spelling,
                summary: "Octets \(range.lowerBound) to \(range.upperBound) of the frame.")
        }
    }

    fileprivate func frame(_ payload: Span<UInt8>, _ format: FormatID) -> Frame? {
        for match in matches {
            guard payload.count >= match.first + match.octets.count else { return nil }
            for index in match.octets.indices where payload[match.first + index] != match.octets[index] { return nil }
        }
        var measuredPower: Int8?
        switch power {
        case .octet(let offset, let correction):
            guard offset < payload.count else { return nil }
            measuredPower = Int8(clamping: Int(Int8(bitPattern: payload[offset])) + correction)
        case .constant(let value): measuredPower = value
        case nil: break
        }
        guard !identifiers.isEmpty else { return Frame(format: format, identity: nil, measuredPower: measuredPower) }
        var octets = [24 of UInt8](repeating: 0)
        var count = 0
        for field in identifiers {
            let first = field.range.lowerBound
            let last = field.isVariable ? min(field.range.upperBound, payload.count - 1) : field.range.upperBound
            guard first <= last, last < payload.count else { return nil }
            for offset in first...last {
                octets[count] = payload[field.isLittleEndian ? last - (offset - first) : offset]
                count += 1
            }
        }
        let identity = BeaconIdentity(format: format, octets: octets.span.extracting(..<count))
        return Frame(format: format, identity: identity, measuredPower: measuredPower)
    }

    /// Values of up to four octets are numbers without a sign, longer ones hexadecimal digits, and those beyond the end
    /// of the frame null.
    fileprivate func describe(_ payload: Span<UInt8>, showsCompany: Bool, _ writer: inout JSONWriter) {
        if showsCompany, payload.count >= 2 {
            writer.key("company_id")
            writer.integer(UInt16(payload[0]) | UInt16(payload[1]) << 8)
        }
        if case .octet(let offset, _) = power, offset < payload.count {
            writer.key("tx_power")
            writer.integer(Int8(bitPattern: payload[offset]))
        }
        for (index, field) in data.enumerated() {
            writer.key { key in
                key.string { text in
                    text.append(contentsOf: "data".utf8)
                    Decimal.append(UInt64(index + 1), to: &text)
                }
            }
            guard field.range.upperBound < payload.count else {
                writer.null()
                continue
            }
            let range = Range(field.range)
            if range.count <= 4 {
                writer.integer(field.isLittleEndian ? payload.littleEndian(range) : payload.bigEndian(range))
            } else {
                writer.hexadecimal(payload.extracting(range), isReversed: field.isLittleEndian)
            }
        }
    }
}
