// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Several payloads, one behind the other in memory that is kept when they are removed.
struct PayloadList {
    private var octets: [UInt8] = []
    private var ends: [Int] = []

    var count: Int { ends.count }

    mutating func removeAll() {
        octets.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
    }

    mutating func append(_ payload: Span<UInt8>) {
        octets.append(addingCapacity: payload.count) { output in
            for index in payload.indices { output.append(payload[index]) }
        }
        ends.append(octets.count)
    }

    /// Appends what hexadecimal digits stand for; false when they are none or odd in number.
    mutating func append(hexadecimal digits: Span<UInt8>) -> Bool {
        guard Hexadecimal.read(digits, into: &octets) else { return false }
        ends.append(octets.count)
        return true
    }

    func forEach(_ body: (Span<UInt8>) -> Void) {
        var start = 0
        for end in ends {
            body(octets.span.extracting(start..<end))
            start = end
        }
    }
}
