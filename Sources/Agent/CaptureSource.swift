// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import LinuxIO
import Scanner

/// A capture that is played at the pace at which it was recorded, on the capture's own clock.
final class CaptureSource: PacketSource {
    private let adapter: Name
    var adapters: [Name] { [adapter] }
    private var reader: CaptureReader
    private var packet: [UInt8] = []
    /// When the waiting packet was recorded; nil at the end.
    private var due: MonotonicTime?

    /// Reads the first packet, so that the agent can set its clock by it.
    init(path: String, adapter: Name) throws(CaptureReader.CaptureError) {
        self.adapter = adapter
        reader = try CaptureReader(path: path)
        packet.reserveCapacity(Btsnoop.maximumPacketLength)
        try read()
    }

    /// The beginning of the capture on its own clock.
    var beginning: MonotonicTime { due ?? .zero }
    var nextDeadline: MonotonicTime { due ?? .distantFuture }
    var hasEnded: Bool { due == nil }

    func start(at now: MonotonicTime, _ receiver: any PacketReceiver) {
        receiver.state(.scanning, at: now, of: adapter)
    }

    func advance(to now: MonotonicTime, _ receiver: any PacketReceiver) {
        while let time = due, time <= now {
            receiver.packet(packet.span, at: time, from: adapter)
            do { try read() } catch {
                due = nil
                receiver.failure(error.description, of: adapter)
                return receiver.state(.failed, at: time, of: adapter)
            }
            if due == nil { receiver.state(.ended, at: time, of: adapter) }
        }
    }

    private func read() throws(CaptureReader.CaptureError) {
        var time: MonotonicTime?
        _ = try reader.next { _, recorded, octets in
            time = recorded
            packet.removeAll(keepingCapacity: true)
            for index in octets.indices { packet.append(octets[index]) }
        }
        // A clock that was set back while it recorded would make the player wait for ever; time never runs backwards.
        due = time.map { max($0, due ?? $0) }
    }
}
