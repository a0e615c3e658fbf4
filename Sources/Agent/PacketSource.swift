// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import Scanner

/// Takes what a source of packets hands out: the first room of the road.
protocol PacketReceiver: AnyObject {
    func packet(_ packet: Span<UInt8>, at time: MonotonicTime, from adapter: Name)
    func activity(_ activity: RadioActivity, at time: MonotonicTime, of adapter: Name)
    func state(_ state: Event.AdapterState, at time: MonotonicTime, of adapter: Name)
    /// Why the source is not well, in a line for the log.
    func failure(_ reason: String, of adapter: Name)
}

/// Where packets come from, driven by the agent's loop.
protocol PacketSource: AnyObject {
    /// The radios that it has or stands for.
    var adapters: [Name] { get }
    /// Begins. Packets have times on the agent's clock, which reads `now`.
    func start(at now: MonotonicTime, _ receiver: any PacketReceiver)
    /// When it wants ``advance(to:_:)`` to be called; `distantFuture` for a source that only waits for a descriptor.
    var nextDeadline: MonotonicTime { get }
    /// Hands out what is due.
    func advance(to now: MonotonicTime, _ receiver: any PacketReceiver)
    /// A descriptor to wait for; ``advance(to:_:)`` is called when it can be read.
    var descriptor: Int32? { get }
    /// Advertisements that the last ``advance(to:_:)`` read; 0 when more may wait, or when it waits for something else.
    var packetsOfTurn: Int { get }
    /// Nothing will come any more.
    var hasEnded: Bool { get }
    /// Listens in another way from now on; nil: not at all. Nothing to a source that is no radio.
    func use(_ parameters: ScanParameters?, at now: MonotonicTime, _ receiver: any PacketReceiver)
    /// What the scanner of a controller has counted; nil for a source that is no controller.
    var scannerCounts: (adapter: Name, counts: AdapterScanner.Counts)? { get }
    /// Until when its radios are known to have listened. A controller that hangs is silent like an empty room, so its
    /// silence says nothing of the time behind its last sign of life. `distantFuture` for what cannot hang or does not
    /// listen.
    var provenUntil: MonotonicTime { get }
    /// Has the radios give a sign of life: they answer, or are found to hang within ``AdapterScanner/timeLimit``.
    func askForSign(at now: MonotonicTime, _ receiver: any PacketReceiver)
    /// Lets go of the radio.
    func stop()
}

extension PacketSource {
    var descriptor: Int32? { nil }
    var packetsOfTurn: Int { 0 }
    var scannerCounts: (adapter: Name, counts: AdapterScanner.Counts)? { nil }
    func use(_ parameters: ScanParameters?, at now: MonotonicTime, _ receiver: any PacketReceiver) {}
    var provenUntil: MonotonicTime { .distantFuture }
    func askForSign(at now: MonotonicTime, _ receiver: any PacketReceiver) {}
    func stop() {}
}
