// SPDX-License-Identifier: Apache-2.0

/// What was heard of a beacon since the last ranging.
struct RangingTally: Sendable {
    private(set) var count: UInt32 = 0
    private(set) var minimum: Int8?
    private(set) var maximum: Int8?

    mutating func add(_ rssi: Int8?) {
        count = count == .max ? count : count + 1
        guard let rssi else { return }
        minimum = min(minimum ?? rssi, rssi)
        maximum = max(maximum ?? rssi, rssi)
    }
}
