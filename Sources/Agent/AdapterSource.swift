// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import LinuxIO
import Presence
import Scanner

/// A local adapter as a source of packets.
final class AdapterSource: PacketSource {
    private let scanner: AdapterScanner
    private let activity: RadioActivity
    private let adapter: Name
    /// When a failed adapter is tried again.
    private var retry = MonotonicTime.distantFuture

    /// Between two tries to get a failed controller going again.
    private static let retryInterval = TimeInterval.seconds(10)

    init(_ scanner: AdapterScanner, _ pattern: ScanPattern, adapter: Name) {
        self.scanner = scanner
        self.adapter = adapter
        activity = .scanning(window: pattern.window, interval: pattern.interval)
    }

    var descriptor: Int32? { scanner.descriptor }
    var nextDeadline: MonotonicTime { min(scanner.deadline, retry) }
    var hasEnded: Bool { false }

    func start(at now: MonotonicTime, _ receiver: any PacketReceiver) {
        receiver.activity(.blind, at: now, of: adapter)
        receiver.state(.starting, at: now, of: adapter)
        scanner.start(at: now) { changed($0, now, receiver) }
    }

    func advance(to now: MonotonicTime, _ receiver: any PacketReceiver) {
        scanner.receive(at: now, packet: { receiver.packet($0, at: now, from: adapter) }) { changed($0, now, receiver) }
        scanner.timerFired(at: now) { changed($0, now, receiver) }
        if retry <= now {
            retry = .distantFuture
            scanner.start(at: now) { changed($0, now, receiver) }
        }
    }

    func stop() { scanner.stop() }

    private func changed(_ change: AdapterScanner.Change, _ now: MonotonicTime, _ receiver: any PacketReceiver) {
        switch change {
        case .scanning:
            receiver.activity(activity, at: now, of: adapter)
            receiver.state(.scanning, at: now, of: adapter)
        case .failed(let reason):
            retry = now + Self.retryInterval
            receiver.failure(reason, of: adapter)
            receiver.activity(.blind, at: now, of: adapter)
            receiver.state(.blind, at: now, of: adapter)
        }
    }
}
