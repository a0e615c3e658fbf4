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
            let (found, second) = find(in: data, from: address)
            return emit(found, second, nil, report, at: time, from: adapter, body)
        }
        let device = devices.place(of: address, at: time) { identify(address) }
        let itself = devices[device: device].itself
        let kind = report.isScanResponse ? 1 : 0
        if let place = devices.place(of: data, from: device, kind) {
            return emit(devices[advertisement: place], nil, itself, report, at: time, from: adapter, body)
        }
        var (found, second) = find(in: data, from: address)
        if found.beacon == nil, found.payload != nil {
            let known = devices[device: device].named ?? itself ?? (found.standsForDevice ? identity(of: address) : nil)
            found.beacon = known.map { FoundBeacon(identity: $0, power: nil) }
        }
        if let beacon = found.beacon { devices[device: device].named = beacon.identity }
        if second == nil { devices.remember(data, found, from: device, kind) } else { devices.forget(device, kind) }
        emit(found, second, itself, report, at: time, from: adapter, body)
    }

    /// What an advertisement holds, and a second beacon in it, which is rare.
    private func find(in data: Span<UInt8>, from address: DeviceAddress) -> (Findings, FoundBeacon?) {
        var found = Findings()
        var second: FoundBeacon?
        frames.forEachFrame(in: data, from: address) { frame, payload in
            if let identity = frame.identity {
                let beacon = FoundBeacon(identity: identity, power: frame.measuredPower)
                if found.beacon == nil {
                    found.beacon = beacon
                } else if second == nil, found.beacon?.identity != identity {
                    second = beacon
                }
            } else if let payload = FramePayload(format: frame.format, payload) {
                found.payload = payload
                found.standsForDevice = found.standsForDevice || frame.standsForDevice
            }
        }
        return (found, second)
    }

    private func identity(of address: DeviceAddress) -> BeaconIdentity? {
        deviceFormat.map { BeaconIdentity(address: address, format: $0) }
    }

    private func emit(
        _ found: Findings, _ second: FoundBeacon?, _ itself: BeaconIdentity?, _ report: borrowing AdvertisingReport,
        at time: MonotonicTime, from adapter: Name, _ body: (borrowing Sighting) -> Void
    ) {
        func sighting(_ identity: BeaconIdentity, _ power: Int8?) -> Sighting {
            Sighting(
                time: time, identity: identity, address: report.address, rssi: report.rssi, measuredPower: power,
                adapter: adapter, payload: found.payload)
        }
        if let beacon = found.beacon { body(sighting(beacon.identity, beacon.power)) }
        if let second { body(sighting(second.identity, second.power)) }
        if let itself, itself != found.beacon?.identity { body(sighting(itself, nil)) }
    }
}

/// A beacon that a frame names, and the strength at 1 m that the frame claims, dBm.
struct FoundBeacon: Sendable {
    var identity: BeaconIdentity
    var power: Int8?
}

/// What is remembered of an advertisement: a beacon, and a frame that says more.
struct Findings: Sendable {
    var beacon: FoundBeacon?
    var payload: FramePayload?
    /// The payload names a device by its address when nothing else does.
    var standsForDevice = false
}
