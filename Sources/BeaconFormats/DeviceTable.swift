// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What is remembered of each address: its last advertisements and what they were found to hold.
///
/// A table in groups of four, as in a processor's cache: an address has its group, and in a full group the one heard
/// longest ago makes room. Forgetting costs a decoding and, for a telemetry frame, the beacon that it belongs to until
/// that is heard again.
///
/// The room for all of it is asked for at once, so that nothing is allocated later; the kernel gives its pages when they
/// are first written. An address takes 104 octets, its advertisement 112, and its scan response another 112.
struct DeviceTable {
    struct Device {
        fileprivate var key: UInt64 = 0
        fileprivate var heard = MonotonicTime.zero
        /// Places of the last advertisement (0) and of the last scan response (1); negative when there was none.
        fileprivate var advertisements: [2 of Int32] = .init(repeating: -1)
        /// The beacon that the address itself is.
        fileprivate(set) var itself: BeaconIdentity?
        /// The beacon that a frame of this address named last.
        var named: BeaconIdentity?
    }

    /// Data that is as short as that of a legacy advertisement.
    private struct ShortData {
        /// Negative when nothing is remembered.
        private var count: Int8 = -1
        private var octets = [31 of UInt8](repeating: 0)

        init() {}

        init(_ data: Span<UInt8>) {
            guard data.count <= octets.count else { return }
            count = Int8(data.count)
            for index in data.indices { octets[index] = data[index] }
        }

        func isEqual(to data: Span<UInt8>) -> Bool {
            data.count == Int(count) && octets.span.extracting(..<data.count).isEqual(to: data)
        }
    }

    private struct Advertisement {
        var data = ShortData()
        var found = Findings()
    }

    private static let groupSize = 4
    private let groupBits: Int
    /// Places of the devices, group by group; negative where there is none yet.
    private var groups: [Int32]
    private var devices: [Device] = []
    private var advertisements: [Advertisement] = []

    /// - Parameter capacity: addresses; rounded up to a power of two.
    init(capacity: Int) {
        var bits = 0
        while Self.groupSize << bits < max(1, min(capacity, 1 << 20)) { bits += 1 }
        groupBits = bits
        groups = Array(repeating: -1, count: Self.groupSize << bits)
        devices.reserveCapacity(groups.count)
        advertisements.reserveCapacity(2 * groups.count)
    }

    subscript(device place: Int) -> Device {
        get { devices[place] }
        _modify { yield &devices[place] }
    }

    /// What the advertisement at a place was found to hold.
    subscript(advertisement place: Int) -> Findings { advertisements[place].found }

    /// Where the address is remembered, a new place when it was not.
    mutating func place(of address: DeviceAddress, at time: MonotonicTime, identify: () -> BeaconIdentity?) -> Int {
        let key = address.value | UInt64(address.kind.rawValue) << 48
        let hash = key &* 0x9E37_79B9_7F4A_7C15
        let group = groupBits == 0 ? 0 : Int(hash >> UInt64(64 - groupBits)) * Self.groupSize
        var oldest = Int(groups[group])
        for index in group..<group + Self.groupSize {
            let place = Int(groups[index])
            if place < 0 {
                oldest = devices.count
                groups[index] = Int32(oldest)
                devices.append(Device())
                break
            }
            if devices[place].key == key {
                devices[place].heard = time
                return place
            }
            if devices[place].heard < devices[oldest].heard { oldest = place }
        }
        devices[oldest].key = key
        devices[oldest].heard = time
        devices[oldest].itself = identify()
        devices[oldest].named = nil
        for kind in 0..<2 { forget(oldest, kind) }
        return oldest
    }

    /// The place of the last advertisement (0) or scan response (1) of a device, when it had the same data.
    func place(of data: Span<UInt8>, from device: Int, _ kind: Int) -> Int? {
        let place = Int(devices[device].advertisements[kind])
        return place >= 0 && advertisements[place].data.isEqual(to: data) ? place : nil
    }

    /// Remembers what the last advertisement (0) or scan response (1) of a device was found to hold; nothing when its data
    /// is longer than that of a legacy advertisement.
    mutating func remember(_ data: Span<UInt8>, _ found: Findings, from device: Int, _ kind: Int) {
        var place = Int(devices[device].advertisements[kind])
        if place < 0 {
            place = advertisements.count
            devices[device].advertisements[kind] = Int32(place)
            advertisements.append(Advertisement())
        }
        advertisements[place] = Advertisement(data: ShortData(data), found: found)
    }

    mutating func forget(_ device: Int, _ kind: Int) {
        let place = Int(devices[device].advertisements[kind])
        if place >= 0 { advertisements[place].data = ShortData() }
    }
}
