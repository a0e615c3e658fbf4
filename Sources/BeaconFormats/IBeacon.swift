// SPDX-License-Identifier: Apache-2.0

import BeaconModel

extension FormatDefinition {
    /// iBeacon (Apple, Proximity Beacon Specification): company 0x004C, type 0x02, length 0x15, proximity UUID, major,
    /// minor (big-endian), measured power at 1 m.
    ///
    /// Some tags put octets of their own behind the measured power (a battery level); they are kept as `extra`.
    static let iBeacon = FormatDefinition(
        name: "ibeacon",
        fields: [
            IdentityField(key: "uuid", spelling: .uuid, summary: "Proximity UUID."),
            IdentityField(key: "major", spelling: .number, summary: "Major value, 0 to 65535."),
            IdentityField(key: "minor", spelling: .number, summary: "Minor value, 0 to 65535."),
        ],
        in: .manufacturer(companyID: 0x004C),
        decode: { payload, format in
            guard payload.count >= length, payload[2] == 0x02, payload[3] == 0x15 else { return nil }
            return Frame(
                format: format, identity: BeaconIdentity(format: format, octets: payload.extracting(4..<24)),
                measuredPower: Int8(bitPattern: payload[24]))
        },
        describe: { payload, writer in
            writer.key("tx_power")
            writer.integer(Int8(bitPattern: payload[24]))
            if payload.count > length {
                writer.key("extra")
                writer.hexadecimal(payload.extracting(length...))
            }
        })

    /// Company id 2, type 1, length 1, UUID 16, major 2, minor 2, measured power 1.
    private static let length = 25
}
