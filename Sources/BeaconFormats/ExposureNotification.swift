// SPDX-License-Identifier: Apache-2.0

import BeaconModel

extension FormatDefinition {
    /// Exposure Notification (Apple and Google, Bluetooth Specification 1.2): service 0xFD6F, rolling proximity
    /// identifier of 16 octets, 4 octets of associated encrypted metadata; the length is fixed.
    ///
    /// The identifier changes every 10 to 20 minutes together with the address, by design: it is no identity.
    static let exposureNotification = FormatDefinition(
        name: "exposure-notification",
        in: .service(uuid: 0xFD6F),
        decode: { payload, format in
            guard payload.count == 22 else { return nil }
            return Frame(format: format, identity: nil, measuredPower: nil)
        },
        describe: { payload, writer in
            writer.key("rpi")
            writer.hexadecimal(payload.extracting(2..<18))
            writer.key("aem")
            writer.hexadecimal(payload.extracting(18..<22))
        })
}
