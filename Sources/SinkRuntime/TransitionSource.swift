// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// What a worker needs of the outbox from which durable sinks read. The Store is one; tests bring their own.
///
/// All members may be called from any thread. `wake` is called, from any thread, when something was committed.
public protocol TransitionSource: Sendable {
    /// The stream that sequence numbers belong to.
    var stream: String { get }
    /// The newest committed sequence number; 0 when there is none.
    var lastSequence: UInt64 { get }

    /// Makes a sink known, so that what it has not acknowledged is kept for it.
    func register(sink: String, wake: @escaping @Sendable () -> Void)
    /// Through which sequence number the sink has acknowledged.
    func cursor(of sink: String) -> UInt64
    /// Hands over up to `limit` committed transitions behind a sequence number, in order.
    func read(after sequence: UInt64, limit: Int, _ body: (UInt64, Event) -> Void) throws
    /// The destination has everything through this sequence number.
    func acknowledge(sink: String, through sequence: UInt64)
}
