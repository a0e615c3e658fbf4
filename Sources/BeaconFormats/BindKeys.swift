// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Synchronization

/// The bind keys of devices that encrypt what they say (BTHome v2, bthome.io, "Encryption"), with the counter of each
/// device, by which a recorded advertisement that somebody sends again is noticed.
///
/// The counters live as long as this does; there are as many as keys.
public final class BindKeys: Sendable {
    /// AES-128 in counter mode with CBC-MAC; nil when the tag does not fit.
    public typealias Decrypt =
        @Sendable (
            _ ciphertext: [UInt8], _ tag: [UInt8], _ key: [16 of UInt8], _ nonce: [UInt8]
        ) -> [UInt8]?

    /// Payloads of devices with a key that were no evidence of what they claimed.
    public struct Counts: Equatable, Sendable {
        /// The tag does not fit: a wrong key, or somebody else. Reported as encrypted, without values.
        public var undecipherable: UInt64
        /// The counter went back. Dropped.
        public var replayed: UInt64
        /// Sent in the clear, though there is a key. Dropped.
        public var unencrypted: UInt64

        public init(undecipherable: UInt64 = 0, replayed: UInt64 = 0, unencrypted: UInt64 = 0) {
            self.undecipherable = undecipherable
            self.replayed = replayed
            self.unencrypted = unencrypted
        }
    }

    private struct State {
        /// The newest counter of each device; nil until there was one.
        var counters: [UInt32?]
        var counts = Counts()
    }

    /// Sorted by address.
    private let keys: [(address: UInt64, key: [16 of UInt8])]
    private let decrypt: Decrypt
    private let state: Mutex<State>

    /// - Parameters:
    ///   - keys: by the 48 bits of the device address; of several for one address the last counts.
    ///   - decrypt: the cipher, since this module has none.
    public init(_ keys: [(address: DeviceAddress, key: [16 of UInt8])], decrypt: @escaping Decrypt) {
        var latest: [UInt64: [16 of UInt8]] = [:]
        for (address, key) in keys { latest[address.value] = key }
        self.keys = latest.map { (address: $0.key, key: $0.value) }.sorted { $0.address < $1.address }
        self.decrypt = decrypt
        state = Mutex(State(counters: Array(repeating: nil, count: latest.count)))
    }

    public var counts: Counts { state.withLock { $0.counts } }

    /// A counter below this that goes back is a device that began anew, with a new battery for example, and not a replay:
    /// few devices keep it in memory that outlasts that, and without this rule such a device would be silent for ever.
    /// The number is that of Home Assistant's decoder.
    private static let restartLimit: UInt32 = 100

    /// Opens a BTHome payload: service UUID, device information, the address where the information says so, ciphertext,
    /// counter (4), tag (4).
    func open(_ payload: Span<UInt8>, from sender: DeviceAddress) -> FormatDefinition.Opening {
        let start = BTHome.offset(payload)
        let senderIndex = sender.isAnonymous ? nil : index(of: sender.value)
        let address = start == 9 ? payload.littleEndian(3..<9) : sender.value
        let index = start == 9 ? index(of: address) : senderIndex
        guard payload[2] & BTHome.encrypted != 0 else {
            // The sender counts too: an address in the payload must not lead past the key of the one who sent it.
            guard index != nil || senderIndex != nil else { return .asSent }
            state.withLock { $0.counts.unencrypted += 1 }
            return .refused
        }
        guard let index else { return .asSent }
        let end = payload.count - 8
        guard end >= start else {
            state.withLock { $0.counts.undecipherable += 1 }
            return .asSent
        }
        var nonce = (0..<6).map { UInt8(truncatingIfNeeded: address >> UInt64(40 - $0 * 8)) }
        for index in 0..<3 { nonce.append(payload[index]) }
        for index in end..<end + 4 { nonce.append(payload[index]) }
        let ciphertext = (start..<end).map { payload[$0] }
        let tag = (end + 4..<end + 8).map { payload[$0] }
        let counter = UInt32(payload.littleEndian(end..<end + 4))
        guard let objects = decrypt(ciphertext, tag, keys[index].key, nonce) else {
            state.withLock { $0.counts.undecipherable += 1 }
            return .asSent
        }
        let isFresh = state.withLock { state in
            // Equal is the same advertisement heard again: each is sent several times.
            if let last = state.counters[index], counter < last, counter >= Self.restartLimit {
                state.counts.replayed += 1
                return false
            }
            state.counters[index] = counter
            return true
        }
        return isFresh ? .opened(BTHome.opened(deviceInformation: payload[2], objects: objects)) : .refused
    }

    /// By bisection: there may be hundreds of keys and the look-up is done for each BTHome payload.
    private func index(of address: UInt64) -> Int? {
        var range = 0..<keys.count
        while let first = range.first {
            let middle = first + range.count / 2
            if keys[middle].address == address { return middle }
            range = keys[middle].address < address ? middle + 1..<range.upperBound : first..<middle
        }
        return nil
    }
}
