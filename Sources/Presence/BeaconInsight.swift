// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// What the engine knows of one beacon and why it would decide as it does: for `explain` and for the evaluation.
public struct BeaconInsight: Sendable {
    public enum State: String, Sendable, CaseIterable {
        /// Heard, but not often enough to enter.
        case candidate
        case present
        /// It was present when every radio failed, for longer than anybody can vouch for.
        case unknown
        /// It has left, and what was learned of it is kept.
        case away
    }

    public var state: State
    /// When it entered; nil for a candidate.
    public var enteredAt: MonotonicTime?
    /// The newest sighting.
    public var lastSeen: MonotonicTime
    /// The signal of the unfinished report.
    public var signal: Signal
    public var measuredPower: Int8?
    public var proximity: Proximity
    /// Metres; negative when unknown.
    public var accuracy: Float
    /// The learned time from one advertisement to the next; nil until it is known.
    public var advertisingInterval: TimeInterval?
    /// The learned share of advertisements that a listening radio does not hear, 0 to 1; nil until it is known.
    public var loss: Double?
    /// What a second is worth as evidence of absence now, 0 while no radio listens to 1 while one listens without
    /// pause.
    public var hearingChance: Double
    /// How much evidence makes an exit, as seconds of a radio that listens without pause. For a candidate, after
    /// what silence it is forgotten.
    public var exitTime: TimeInterval
    /// When it leaves if it is not heard and the radios go on as they do; nil while no radio listens.
    public var deadline: MonotonicTime?
    /// The false exits a second that the configuration allows; nil with a fixed exit time.
    public var falseExitsAsked: Double?
    /// The false exits a second that the exit time is expected to make; nil with a fixed exit time.
    public var falseExitsExpected: Double?
    /// What determined the exit time.
    public var limit: Event.ExitLimit
    /// Silences between sightings that were learned from.
    public var gapCount: UInt64
}
