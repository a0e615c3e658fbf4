// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Bounds of the signal for those who want a beacon to be present only while it is near: it enters when its filtered
/// strength or its distance has kept to one of them for a while, and leaves, besides by silence, when it has been past
/// the other. `docs/presence.md` explains them.
public struct SignalGate: Equatable, Sendable {
    public enum Measure: Sendable {
        /// dBm; more is nearer.
        case strength
        /// Metres; less is nearer.
        case distance
    }

    public var measure: Measure
    /// It may enter at this or nearer.
    public var enter: Double
    /// It leaves when it is farther than this, which is no nearer than ``enter``; nil: by silence alone.
    public var exit: Double?
    /// For how long without an advertisement to the contrary, in listening time, up to an hour and to a tenth of a second.
    public var enterDwell: TimeInterval
    public var exitDwell: TimeInterval

    public init(
        _ measure: Measure, enter: Double, exit: Double?, enterDwell: TimeInterval = .zero,
        exitDwell: TimeInterval = .seconds(10)
    ) {
        self.measure = measure
        self.enter = enter
        self.exit = exit
        self.enterDwell = enterDwell
        self.exitDwell = exitDwell
    }

    /// - Parameters:
    ///   - strength: filtered, dBm; nil when none was measured.
    ///   - metres: negative when not known.
    func isNear(strength: Float?, metres: Float) -> Bool {
        switch measure {
        case .strength: strength.map { Double($0) >= enter } ?? false
        case .distance: metres >= 0 && Double(metres) <= enter
        }
    }

    func isFar(strength: Float?, metres: Float) -> Bool {
        guard let exit else { return false }
        return switch measure {
        case .strength: strength.map { Double($0) < exit } ?? false
        case .distance: metres >= 0 && Double(metres) > exit
        }
    }
}

/// How long something has been so without a break, in two octets: a moment of the listening clock in tenths of a second,
/// which go round after 109 minutes.
struct Dwell: Sendable {
    private static let round: Int64 = 65_535
    /// 0 for not at all.
    private var since: UInt16 = 0

    /// Whether it has been so for that long.
    mutating func note(_ isSo: Bool, at moment: ListeningTime, for time: TimeInterval) -> Bool {
        guard isSo else {
            since = 0
            return false
        }
        let tenth = ((moment.nanoseconds / 100_000_000) % Self.round + Self.round) % Self.round
        if since == 0 { since = UInt16(tenth + 1) }
        let elapsed = (tenth - Int64(since) + 1 + Self.round) % Self.round
        return elapsed * 100_000_000 >= time.nanoseconds
    }

    mutating func reset() { since = 0 }
}
