// SPDX-License-Identifier: Apache-2.0

/// What became of the deliveries of one role. At every moment
/// offered = written + rejected + dropped + conflated + in flight + queued.
public struct DeliveryCounts: Equatable, Sendable {
    /// Deliveries that the sink should get.
    public internal(set) var offered: UInt64 = 0
    /// The destination has them.
    public internal(set) var written: UInt64 = 0
    /// The sink said that they can never be written.
    public internal(set) var rejected: UInt64 = 0
    /// Lost here: no room, or the program ended first.
    public internal(set) var dropped: UInt64 = 0
    /// A newer value of the same thing took their place.
    public internal(set) var conflated: UInt64 = 0
    /// In the batch that is being written or waits to be written again.
    public internal(set) var inFlight: UInt64 = 0
    /// Waiting, in memory or in the store.
    public internal(set) var queued: UInt64 = 0

    public init() {}

    /// Whether every delivery is accounted for.
    public var isBalanced: Bool { offered == written + rejected + dropped + conflated + inFlight + queued }

    static func + (left: Self, right: Self) -> Self {
        var sum = left
        sum.offered += right.offered
        sum.written += right.written
        sum.rejected += right.rejected
        sum.dropped += right.dropped
        sum.conflated += right.conflated
        sum.inFlight += right.inFlight
        sum.queued += right.queued
        return sum
    }
}

/// How one sink fares: what became of its deliveries, and in which state it is.
///
/// An event counts once in each role in which the sink gets it.
/// - `sightings`: each one that passed the filter for unconfigured beacons. A newer one of the same beacon conflates
///   the one that waits.
/// - `transitions`: each one that was offered or, for a sink that reads the store, each one that the store holds behind
///   the sink's cursor. Those of an outage therefore show as `queued`, however many they are. What the store lost is
///   `dropped`.
/// - `states`: each change of the state of a beacon or region, and again all of them after each successful `open`.
public struct SinkCounters: Equatable, Sendable {
    public internal(set) var states = DeliveryCounts()
    public internal(set) var transitions = DeliveryCounts()
    public internal(set) var sightings = DeliveryCounts()
    public internal(set) var state = SinkState.starting
    /// The last failure in words; it stays when the sink has recovered.
    public internal(set) var lastError: String?
    /// How often the destination was reached.
    public internal(set) var connections: UInt64 = 0

    public init() {}

    /// All roles together.
    public var total: DeliveryCounts { states + transitions + sightings }
}

/// Where a sink is in its life.
public enum SinkState: Equatable, Sendable {
    /// Not yet open for the first time.
    case starting
    /// Connected, so far as anybody knows.
    case open
    /// It failed and tries again after a wait; ``SinkCounters/lastError`` says why.
    case waiting
    /// It could not be made and will not be tried again.
    case failed(reason: String)
    /// It has ended, because it was asked to or because its reader went away.
    case finished
}
