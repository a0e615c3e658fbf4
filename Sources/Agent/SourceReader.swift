// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// Reads one source as the loop finds that it can be read; in a busy air it looks at intervals instead, and takes what
/// came together.
///
/// To be woken costs several times what a packet does. Where packets come one after the other, the loop does not wait for
/// the descriptor for as long as packets may wait; where they come now and then, each is read at once, because a
/// look for one packet saves nothing.
final class SourceReader {
    let source: any PacketSource
    /// How long packets may wait to be read together; zero: not at all.
    var latency: TimeInterval

    private let loop: EventLoop
    private var place: (token: UInt64, descriptor: Int32)?
    private var lastWake = MonotonicTime(nanoseconds: .min / 2)
    /// On the clock of the machine: when it looks, while the loop does not wait for the descriptor; else `distantFuture`.
    private(set) var nextLook = MonotonicTime.distantFuture

    init(_ source: any PacketSource, _ loop: EventLoop, latency: TimeInterval) {
        self.source = source
        self.loop = loop
        self.latency = latency
    }

    /// Has the loop wait for the descriptor, if there is one. `read` calls ``woken(at:_:)``.
    func start(_ read: @escaping () -> Void) throws(SystemError) {
        guard let descriptor = source.descriptor else { return }
        place = (try loop.add(descriptor, read), descriptor)
    }

    /// The descriptor can be read, and `read` does that.
    func woken(at now: MonotonicTime, _ read: () -> Void) {
        read()
        let isSoon = now - lastWake < TimeInterval(nanoseconds: latency.nanoseconds / Int64(Self.fewest))
        lastWake = now
        guard isSoon, nextLook == .distantFuture, source.packetsOfTurn > 0, let place else { return }
        loop.wait(for: .nothing, place.token, descriptor: place.descriptor)
        nextLook = now + latency
    }

    /// The source was read because some time is over. It goes on like this while it pays.
    func looked(at now: MonotonicTime) {
        guard nextLook < .distantFuture else { return }
        if source.packetsOfTurn >= Self.fewest {
            if nextLook <= now { nextLook = now + latency }
        } else if nextLook <= now, let place {
            nextLook = .distantFuture
            loop.wait(for: .reading, place.token, descriptor: place.descriptor)
        }
    }

    /// Packets for which a look pays: it costs two or three times what it costs to be woken.
    private static let fewest = 4
}
