// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import HCI

/// Turns advertising reports into sightings of beacons: which frames name one, and which device the others belong to.
///
/// - A frame with an identity is a sighting of that beacon, whatever address it came from: a rolling address makes no
///   second beacon.
/// - A frame without one (telemetry, sensor values) belongs to the beacon that the same address named before; sensor
///   values of an address that named none are a beacon of the format `device`.
/// - An address that the configuration names, or that resolves with one of its keys, is a beacon of its own.
///
/// Beacons repeat themselves, so an advertisement that is equal to the one before it from the same address costs a look
/// into a table and a comparison. Nothing is allocated after `init`.
public struct SightingDecoder: ~Copyable {
    public let frames: FrameDecoder
    private let deviceFormat: FormatID?
    private let identify: (DeviceAddress) -> BeaconIdentity?
    private var devices: DeviceTable

    /// - Parameters:
    ///   - identify: the beacon that an address itself is: one that the configuration names, or whose key it resolves
    ///     with. Asked once for each address that is not in the table.
    ///   - capacity: addresses that are remembered; past it the ones heard longest ago make room.
    public init(
        _ frames: FrameDecoder, capacity: Int = 4096,
        identify: @escaping (DeviceAddress) -> BeaconIdentity? = { _ in nil }
    ) {
        self.frames = frames
        self.identify = identify
        deviceFormat = frames.catalog.id(named: FormatDefinition.device.format.name)
        devices = DeviceTable(capacity: capacity)
    }

    /// Calls `body` with the sightings in one report: each beacon once.
    public mutating func decode(
        _ report: borrowing AdvertisingReport, _ data: Span<UInt8>, at time: MonotonicTime, from adapter: Name,
        _ body: (borrowing Sighting) -> Void
    ) {
        let address = report.address
        guard !address.isAnonymous else {
            var found = Findings()
            find(in: data, from: address, &found)
            return emit(found, nil, report, at: time, from: adapter, body)
        }
        let place = devices.place(of: address, at: time) { identify(address) }
        let kind = report.isScanResponse ? 1 : 0
        if !devices[place].isRepeated(data, kind) {
            var found = Findings()
            find(in: data, from: address, &found)
            if found.first == nil, found.payload != nil {
                let known = devices[place].named ?? devices[place].itself
                found.first = known ?? (found.standsForDevice ? identity(of: address) : nil)
            }
            if let named = found.first { devices[place].named = named }
            devices[place].remember(data, found, kind)
        }
        emit(devices[place].findings[kind], devices[place].itself, report, at: time, from: adapter, body)
    }

    private func find(in data: Span<UInt8>, from address: DeviceAddress, _ found: inout Findings) {
        frames.forEachFrame(in: data, from: address) { frame, payload in
            if let identity = frame.identity {
                if found.first == nil {
                    found.first = identity
                    found.firstPower = frame.measuredPower
                } else if found.second == nil, found.first != identity {
                    found.second = identity
                    found.secondPower = frame.measuredPower
                }
            } else if let payload = FramePayload(format: frame.format, payload) {
                found.payload = payload
                found.standsForDevice = found.standsForDevice || frame.standsForDevice
            }
        }
    }

    private func identity(of address: DeviceAddress) -> BeaconIdentity? {
        deviceFormat.map { BeaconIdentity(address: address, format: $0) }
    }

    private func emit(
        _ found: Findings, _ itself: BeaconIdentity?, _ report: borrowing AdvertisingReport, at time: MonotonicTime,
        from adapter: Name, _ body: (borrowing Sighting) -> Void
    ) {
        func sighting(_ identity: BeaconIdentity, _ power: Int8?) -> Sighting {
            Sighting(
                time: time, identity: identity, address: report.address, rssi: report.rssi, measuredPower: power,
                adapter: adapter, payload: found.payload)
        }
        if let first = found.first { body(sighting(first, found.firstPower)) }
        if let second = found.second { body(sighting(second, found.secondPower)) }
        if let itself, itself != found.first { body(sighting(itself, nil)) }
    }
}

/// What one advertisement holds: at most two beacons, which is what fits into one, and a frame that says more.
struct Findings: Sendable {
    var first: BeaconIdentity?
    var firstPower: Int8?
    var second: BeaconIdentity?
    var secondPower: Int8?
    var payload: FramePayload?
    /// The payload names a device by its address when nothing else does.
    var standsForDevice = false
}
