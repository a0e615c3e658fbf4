// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import Store

/// What a worker needs of the outbox from which durable sinks read. The Store is one; tests bring their own.
///
/// All members may be called from any thread. `wake` is called, from any thread, when something was committed.
public protocol TransitionSource: Sendable {
    /// The newest committed position; 0 when there is none.
    var lastPosition: UInt64 { get }
    /// What it did since it was opened.
    var counters: StoreCounters { get }

    /// Makes a sink known, so that what it has not acknowledged is kept for it.
    func register(sink: String, wake: @escaping @Sendable () -> Void)
    /// Through which position the sink has acknowledged.
    func cursor(of sink: String) -> UInt64
    /// Hands over up to `limit` committed transitions behind a position, in order and of one segment, each with its
    /// position.
    func read(after position: UInt64, limit: Int, _ body: (StreamSegment, UInt64, Event) -> Void) throws
    /// The destination has everything through this position.
    func acknowledge(sink: String, through position: UInt64)
}
