// SPDX-License-Identifier: Apache-2.0

/// What was heard of one beacon over a report interval. Strengths in dBm.
public struct Signal: Equatable, Sendable {
    /// The newest strength; nil when the controller did not measure it (127 on the wire).
    public var last: Int8?
    /// The filtered strength; nil until there was a measured one.
    public var filtered: Float?
    public var minimum: Int8?
    public var maximum: Int8?
    /// Advertisements heard since the last report.
    public var count: UInt32

    public init(
        last: Int8? = nil, filtered: Float? = nil, minimum: Int8? = nil, maximum: Int8? = nil, count: UInt32 = 0
    ) {
        self.last = last
        self.filtered = filtered
        self.minimum = minimum
        self.maximum = maximum
        self.count = count
    }
}

/// The strength that a beacon claims at 1 m.
public enum MeasuredPower {
    /// What can be true, dBm. No LE radio sends more than +20 dBm (Core 5.4, Vol 6, Part A, 3), of which free space takes
    /// 40 dB over the first metre at 2.4 GHz; and what is weaker than −100 dBm at 1 m is not received at all. Tags shipped
    /// with −3 gave distances of millions of kilometres.
    public static let plausible: ClosedRange<Int8> = -100 ... -20
}

/// The strength in five bands that people know: lower bounds −50, −60, −75 and −90 dBm.
public enum SignalQuality: UInt8, Sendable, CaseIterable {
    case veryPoor, poor, fair, good, excellent

    /// - Parameter strength: dBm.
    public init(strength: Float) {
        self =
            switch strength {
            case (-50)...: .excellent
            case (-60)...: .good
            case (-75)...: .fair
            case (-90)...: .poor
            default: .veryPoor
            }
    }

    public var word: String {
        switch self {
        case .veryPoor: "very_poor"
        case .poor: "poor"
        case .fair: "fair"
        case .good: "good"
        case .excellent: "excellent"
        }
    }
}

/// How near a beacon is, in the words of Apple's CLProximity.
public enum Proximity: UInt8, Sendable, CaseIterable {
    case unknown, immediate, near, far

    public var word: String {
        switch self {
        case .unknown: "unknown"
        case .immediate: "immediate"
        case .near: "near"
        case .far: "far"
        }
    }
}
