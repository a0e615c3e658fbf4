// SPDX-License-Identifier: Apache-2.0

/// One advertisement of a beacon, heard by one adapter: what presence works on.
public struct Sighting: Sendable {
    public var time: MonotonicTime
    public var identity: BeaconIdentity
    public var address: DeviceAddress
    /// dBm; nil when the controller did not measure it.
    public var rssi: Int8?
    /// The strength at 1 m that the frame claims, dBm; nil when it claims none.
    public var measuredPower: Int8?
    /// Which radio heard it.
    public var adapter: Name
    /// A frame that says more than who sent it.
    public var payload: FramePayload?

    public init(
        time: MonotonicTime, identity: BeaconIdentity, address: DeviceAddress, rssi: Int8?, measuredPower: Int8?,
        adapter: Name, payload: FramePayload? = nil
    ) {
        self.time = time
        self.identity = identity
        self.address = address
        self.rssi = rssi
        self.measuredPower = measuredPower
        self.adapter = adapter
        self.payload = payload
    }
}

/// What a radio does from now on. Presence is told, so that a radio that does not listen is no evidence of absence.
public enum RadioActivity: Equatable, Sendable {
    /// Scans, for `window` out of every `interval`.
    case scanning(window: TimeInterval, interval: TimeInterval)
    /// Off on purpose: a pause of a burst schedule, or nobody wants it.
    case paused
    /// Should listen and cannot.
    case blind
}
