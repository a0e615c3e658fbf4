// SPDX-License-Identifier: Apache-2.0

/// What is known of a controller: what it said, and what it was found to be unable to do.
public struct ControllerFacts: Equatable, Sendable {
    /// BD_ADDR; nil before it was read, or when the controller would not tell.
    public var address: UInt64?
    /// HCI version (Assigned Numbers, 2.1): 9 is 5.0.
    public var version: UInt8?
    /// Company identifier of the manufacturer.
    public var manufacturer: UInt16?
    /// The bitmap of supported commands has LE Set Extended Scan Parameters and Enable.
    public var claimsExtendedScanning = false
    /// The LE features have the Coded PHY.
    public var claimsCodedPHY = false
    /// It claims extended scanning and cannot do it.
    public var isLegacyOnly = false
    /// It claims the Coded PHY and will not scan on it.
    public var refusesCodedPHY = false

    public init() {}

    public var usesExtendedCommands: Bool { claimsExtendedScanning && !isLegacyOnly }
    public var usesCodedPHY: Bool { usesExtendedCommands && claimsCodedPHY && !refusesCodedPHY }
}

/// What controllers were found to be unable to do, by address and for the life of the process: an adapter that comes
/// back is not tried again. One that tells no address goes by 0.
struct KnownControllers: Sendable {
    private var lacks: [UInt64: (isLegacyOnly: Bool, refusesCodedPHY: Bool)] = [:]

    mutating func remember(_ facts: ControllerFacts) {
        lacks[facts.address ?? 0] = (facts.isLegacyOnly, facts.refusesCodedPHY)
    }

    func recall(_ facts: inout ControllerFacts) {
        guard let known = lacks[facts.address ?? 0] else { return }
        facts.isLegacyOnly = known.isLegacyOnly
        facts.refusesCodedPHY = known.refusesCodedPHY
    }
}
