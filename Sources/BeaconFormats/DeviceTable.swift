// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What is remembered of each address: its last advertisements and what they were found to hold.
///
/// A table of fixed size in groups of four, as in a processor's cache: an address has its group, and in a full group the
/// one heard longest ago makes room. Forgetting costs a decoding and, for a telemetry frame, the beacon that it belongs
/// to until that is heard again.
struct DeviceTable {
    struct Device {
        fileprivate var key: UInt64 = 0
        fileprivate var heard = MonotonicTime.zero
        /// The beacon that the address itself is.
        fileprivate(set) var itself: BeaconIdentity?
        /// The beacon that a frame of this address named last.
        var named: BeaconIdentity?
        /// Of the last advertisement and of the last scan response.
        private(set) var findings: [2 of Findings] = .init(repeating: Findings())
        private var lengths: [2 of Int8] = .init(repeating: -1)
        private var octets: [2 of [31 of UInt8]] = .init(repeating: .init(repeating: 0))

        /// Whether the data is that of the last advertisement (0) or scan response (1).
        func isRepeated(_ data: Span<UInt8>, _ kind: Int) -> Bool {
            guard data.count == Int(lengths[kind]) else { return false }
            for index in data.indices where data[index] != octets[kind][index] { return false }
            return true
        }

        /// Remembers the findings, and the data when it is as short as that of a legacy advertisement.
        mutating func remember(_ data: Span<UInt8>, _ found: Findings, _ kind: Int) {
            findings[kind] = found
            lengths[kind] = data.count <= 31 ? Int8(data.count) : -1
            guard data.count <= 31 else { return }
            for index in data.indices { octets[kind][index] = data[index] }
        }
    }

    private static let groupSize = 4
    private var devices: [Device]
    private let groupBits: Int

    /// - Parameter capacity: addresses; rounded up to a power of two.
    init(capacity: Int) {
        var bits = 0
        while Self.groupSize << bits < max(1, min(capacity, 1 << 20)) { bits += 1 }
        groupBits = bits
        devices = Array(repeating: Device(), count: Self.groupSize << bits)
    }

    subscript(place: Int) -> Device {
        get { devices[place] }
        _modify { yield &devices[place] }
    }

    /// Where the address is remembered, a new place when it was not.
    mutating func place(of address: DeviceAddress, at time: MonotonicTime, identify: () -> BeaconIdentity?) -> Int {
        // Bit 56 marks a place as taken.
        let key = address.value | UInt64(address.kind.rawValue) << 48 | 1 << 56
        let hash = key &* 0x9E37_79B9_7F4A_7C15
        let group = groupBits == 0 ? 0 : Int(hash >> UInt64(64 - groupBits)) * Self.groupSize
        var oldest = group
        for place in group..<group + Self.groupSize {
            if devices[place].key == key {
                devices[place].heard = time
                return place
            }
            if devices[place].key == 0 {
                oldest = place
                break
            }
            if devices[place].heard < devices[oldest].heard { oldest = place }
        }
        devices[oldest] = Device()
        devices[oldest].key = key
        devices[oldest].heard = time
        devices[oldest].itself = identify()
        return oldest
    }
}
