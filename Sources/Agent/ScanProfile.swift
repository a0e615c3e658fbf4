// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import HCI
public import Presence

/// A named way of listening: how much of the radio's time it takes, and whether scan responses are asked for.
public struct ScanProfile: Hashable, Sendable {
    public let name: String
    /// Window and interval are whole slots of 0.625 ms from 2.5 ms to 10.24 s (Core 5.4, Vol 4, Part E, 7.8.10).
    public let pattern: ScanPattern
    public let isActive: Bool

    /// - Parameters:
    ///   - window: rounded to the nearest slot and at most the interval.
    ///   - interval: rounded to the nearest slot.
    public init(
        name: String, window: TimeInterval, interval: TimeInterval, isActive: Bool = false,
        burst: ScanPattern.Burst? = nil
    ) {
        let interval = Self.inSlots(interval)
        self.name = name
        pattern = ScanPattern(window: min(Self.inSlots(window), interval), interval: interval, burst: burst)
        self.isActive = isActive
    }

    /// 0x0004 to 0x4000 slots of 0.625 ms (Core 5.4, Vol 4, Part E, 7.8.10).
    public static let times = TimeInterval(nanoseconds: 2_500_000) ... .milliseconds(10_240)
    /// Of either part of a burst schedule. Shorter, and the commands to the controller would take a noticeable part;
    /// longer, and the planner could not follow the phases over a period.
    public static let burstTimes = TimeInterval.milliseconds(100) ... .seconds(300)
    private static let slot: Int64 = 625_000

    private static func inSlots(_ time: TimeInterval) -> TimeInterval {
        let inRange = min(max(time, times.lowerBound), times.upperBound)
        return TimeInterval(nanoseconds: (inRange.nanoseconds + slot / 2) / slot * slot)
    }

    /// What the controller is told while the profile scans.
    public var parameters: ScanParameters {
        ScanParameters(
            interval: .init(nanoseconds: pattern.interval.nanoseconds),
            window: .init(nanoseconds: pattern.window.nanoseconds), isActive: isActive)
    }

    /// Whether it hears more than another one: the larger duty is stronger, then the longer window, then active before
    /// passive. The name decides between equals, so that there is always one strongest.
    func isStronger(than other: ScanProfile) -> Bool {
        if pattern.duty != other.pattern.duty { return pattern.duty > other.pattern.duty }
        if pattern.window != other.pattern.window { return pattern.window > other.pattern.window }
        if isActive != other.isActive { return isActive }
        return name < other.name
    }
}

// The numbers come from `docs/plan.md`: among scan intervals with about this duty they are of those that beat the least
// with 25 advertising intervals, and the windows are long enough that their edges cost little. A test holds them to it.
extension ScanProfile {
    /// Listens all the time. A change of the channel costs about 2.3 ms of listening, so it is not more frequent.
    public static let continuous = ScanProfile(
        name: "continuous", window: .milliseconds(100), interval: .milliseconds(100))
    /// Listens 30 % of the time.
    public static let balanced = ScanProfile(
        name: "balanced", window: TimeInterval(nanoseconds: 58_750_000), interval: .milliseconds(195))
    /// Listens 10 % of the time.
    public static let economy = ScanProfile(
        name: "economy", window: TimeInterval(nanoseconds: 27_500_000), interval: TimeInterval(nanoseconds: 272_500_000)
    )

    /// The profiles that are there without being configured.
    public static let stock = [continuous, balanced, economy]
}
