// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import LinuxIO
import Scanner

/// A controller as a source of packets.
final class AdapterSource: PacketSource {
    private let scanner: AdapterScanner
    private let adapter: Name
    private var told: Event.AdapterState?
    /// It was told to listen, by the last that was told of its activity.
    private var isListening = false

    /// How old the last sign of life may be: less than any silence that is taken for an absence, and enough for the
    /// pauses of a busy air.
    private static let tolerance = TimeInterval.milliseconds(200)

    init(_ scanner: AdapterScanner, adapter: Name) {
        self.scanner = scanner
        self.adapter = adapter
    }

    var adapters: [Name] { [adapter] }
    var descriptor: Int32? { scanner.descriptor }
    var packetsOfTurn: Int { scanner.packetsOfTurn }
    var nextDeadline: MonotonicTime { scanner.deadline }
    var hasEnded: Bool { false }
    var scannerCounts: (adapter: Name, counts: AdapterScanner.Counts)? { (adapter, scanner.counts) }

    func start(at now: MonotonicTime, _ receiver: any PacketReceiver) {
        receiver.activity(.blind, at: now, of: adapter)
        scanner.start(at: now) { changed($0, now, receiver) }
    }

    func advance(to now: MonotonicTime, _ receiver: any PacketReceiver) {
        scanner.advance(to: now) {
            receiver.packet($0, at: $1, from: adapter)
        } _: {
            changed($0, now, receiver)
        }
    }

    func use(_ parameters: ScanParameters?, at now: MonotonicTime, _ receiver: any PacketReceiver) {
        scanner.use(parameters, at: now) { changed($0, now, receiver) }
    }

    var provenUntil: MonotonicTime { isListening ? scanner.lastSign + Self.tolerance : .distantFuture }

    func askForSign(at now: MonotonicTime, _ receiver: any PacketReceiver) {
        guard provenUntil < now else { return }
        scanner.askForSign(at: now) { changed($0, now, receiver) }
    }

    func stop() { scanner.stop() }

    private func changed(_ change: AdapterScanner.Change, _ now: MonotonicTime, _ receiver: any PacketReceiver) {
        switch change {
        case .activity(let parameters):
            isListening = parameters != nil
            let activity = parameters.map {
                RadioActivity.scanning(
                    window: TimeInterval(nanoseconds: $0.window.nanoseconds),
                    interval: TimeInterval(nanoseconds: $0.interval.nanoseconds))
            }
            receiver.activity(activity ?? .paused, at: now, of: adapter)
        case .state(let state, let reason):
            if let reason { receiver.failure(reason, of: adapter) }
            switch state {
            case .absent, .blind, .failed, .ended:
                // It may have been so since its last sign of life.
                let since = min(now, provenUntil)
                isListening = false
                receiver.activity(.blind, at: since, of: adapter)
            case .starting, .scanning: break
            }
            // Another reason for the same state is a matter for the log alone.
            guard state != told else { return }
            told = state
            receiver.state(state, at: now, of: adapter)
        }
    }
}
