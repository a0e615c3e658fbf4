// SPDX-License-Identifier: Apache-2.0

/// CRC-32C (Castagnoli, RFC 3720 B.4), which finds what SQLite passes on: octets that a disk or a memory changed.
struct Checksum {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 0 ? value >> 1 : value >> 1 ^ 0x82F6_3B78 }
    }

    private var register = UInt32.max

    var value: UInt32 { ~register }

    mutating func add(_ octets: some Sequence<UInt8>) {
        for octet in octets {
            register = register >> 8 ^ Self.table[Int(UInt8(truncatingIfNeeded: register) ^ octet)]
        }
    }

    /// Adds the eight octets of a number, least significant first.
    mutating func add(_ number: UInt64) {
        add((0..<8).lazy.map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) })
    }
}
