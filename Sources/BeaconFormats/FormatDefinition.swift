// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// A beacon format: where its frames stand in an advertisement, how they are read, and how they are spelled.
///
/// A new format is one file that makes one of these and one line in ``FormatDefinition/all``.
public struct FormatDefinition: Sendable {
    /// Which AD structure carries the frames.
    public enum Carrier: Sendable, Equatable {
        /// Manufacturer specific data of this company (Assigned Numbers, 7).
        case manufacturer(companyID: UInt16)
        /// Manufacturer specific data of any company whose octets 2 and 3 are these.
        case anyManufacturer(code: UInt16)
        /// Manufacturer specific data of any company, for what is told apart elsewhere.
        case everyManufacturer
        /// Service data of this 16-bit service UUID.
        case service(uuid: UInt16)
        /// None: the identity comes from the device, not from a frame.
        case unframed
    }

    /// What a bind key makes of a payload.
    enum Opening {
        /// There is nothing to open, or it cannot be opened: the payload stands as it was sent.
        case asSent
        /// It proves to be made by somebody else or to be a repetition; it is no frame.
        case refused
        /// What `decode` and `describe` shall read instead.
        case opened([UInt8])
    }

    /// Name and identity, as everybody downstream knows them.
    public let format: BeaconFormat
    public let carrier: Carrier
    /// Reads the payload of an AD structure, from the company id or service UUID on; nil when it holds no frame of this
    /// format.
    let decode: @Sendable (_ payload: Span<UInt8>, _ format: FormatID) -> Frame?
    /// For formats that may be encrypted: tries the keys on a payload that `decode` accepted.
    let open: (@Sendable (_ payload: Span<UInt8>, _ address: DeviceAddress, _ keys: BindKeys) -> Opening)?

    /// - Parameters:
    ///   - fields: the identity; none when frames name no beacon.
    ///   - describe: writes what a frame says beyond its identity. Only called with a payload that `decode` accepted.
    init(
        name: String, fields: [IdentityField] = [], in carrier: Carrier,
        decode: @escaping @Sendable (_ payload: Span<UInt8>, _ format: FormatID) -> Frame?,
        open: (@Sendable (_ payload: Span<UInt8>, _ address: DeviceAddress, _ keys: BindKeys) -> Opening)? = nil,
        describe: @escaping @Sendable (_ payload: Span<UInt8>, _ writer: inout JSONWriter) -> Void
    ) {
        format = BeaconFormat(name: name, fields: fields, describe: describe)
        self.carrier = carrier
        self.decode = decode
        self.open = open
    }
}

extension FormatDefinition {
    /// Every format of this version. Formats of one carrier are tried in this order.
    public static let all: [FormatDefinition] = [
        iBeacon, altBeacon, eddystoneUID, eddystoneURL, eddystoneTLM, eddystoneEncryptedTLM, eddystoneEID,
        exposureNotification, ruuviFormat3, ruuviFormat5, ruuviFormat6, ruuviFormatE1, btHome,
        device, irk,
    ]
}

/// One decoded frame.
public struct Frame: Sendable {
    public var format: FormatID
    /// Which beacon it is; nil for a frame that says something about a device without naming it, such as telemetry.
    public var identity: BeaconIdentity?
    /// The strength at 1 m that the frame claims, dBm.
    public var measuredPower: Int8?
    /// It names no beacon but stands for the device that sends it, as sensor values do: the address is then the identity.
    public var standsForDevice = false

    /// Whether the strength that the frame claims cannot be true, so that a distance must not be reckoned with it.
    public var claimsImplausiblePower: Bool {
        measuredPower.map { !MeasuredPower.plausible.contains($0) } ?? false
    }
}
