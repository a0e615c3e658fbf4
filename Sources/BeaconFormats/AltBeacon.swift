// SPDX-License-Identifier: Apache-2.0

import BeaconModel

extension FormatDefinition {
    /// AltBeacon 1.0 (Radius Networks): any company, code 0xBEAC, a beacon id of 20 octets (16, 2 and 2), reference
    /// strength at 1 m, one octet for the manufacturer.
    ///
    /// The specification fixes the length of the AD structure at 0x1B, so a frame without the last octet is none. The
    /// company is not part of the identity: the id alone names the beacon.
    static let altBeacon = FormatDefinition(
        name: "altbeacon",
        fields: [
            IdentityField(key: "id1", spelling: .uuid, summary: "First 16 octets of the beacon id, as a UUID."),
            IdentityField(key: "id2", spelling: .number, summary: "Octets 17 and 18 of the beacon id."),
            IdentityField(key: "id3", spelling: .number, summary: "Octets 19 and 20 of the beacon id."),
        ],
        in: .anyManufacturer(code: 0xBEAC),
        decode: { payload, format in
            guard payload.count == 26 else { return nil }
            return Frame(
                format: format, identity: BeaconIdentity(format: format, octets: payload.extracting(4..<24)),
                measuredPower: Int8(bitPattern: payload[24]))
        },
        describe: { payload, writer in
            writer.key("company_id")
            writer.integer(UInt16(payload[0]) | UInt16(payload[1]) << 8)
            writer.key("beacon_id")
            writer.hexadecimal(payload.extracting(4..<24))
            writer.key("tx_power")
            writer.integer(Int8(bitPattern: payload[24]))
            writer.key("mfg_reserved")
            writer.integer(payload[25])
        })
}
