// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import Presence
import Simulation

/// What a profile hears of a beacon, and how soon: the answer of `beacond plan`. `docs/plan.md` explains the numbers.
public struct ScanProfilePlan: Sendable {
    /// The times within which half, 95 % and 99 % of all beacons were heard; nil when it is too long to be told.
    public struct Times: Sendable {
        public var median: TimeInterval?
        public var most: TimeInterval?
        public var nearlyAll: TimeInterval?

        fileprivate init(_ quantile: (Double) -> TimeInterval?) {
            median = quantile(0.5)
            most = quantile(0.95)
            nearlyAll = quantile(0.99)
        }
    }

    /// Advertising intervals that many beacons have: the 100 ms of iBeacons, the nine that Apple recommends for
    /// accessories, and slow ones of tags that live on a coin cell.
    public static let usualIntervals: [TimeInterval] =
        [100_000, 152_500, 211_250, 318_750, 417_500, 546_250, 760_000, 852_500, 1_022_500, 1_285_000].map {
            TimeInterval(nanoseconds: $0 * 1000)
        } + [.seconds(2), .seconds(5), .seconds(10)]

    public let profile: ScanProfile
    /// The beacon's.
    public let interval: TimeInterval
    /// The share of advertising events that are heard.
    public let chance: Double
    /// Of one beacon.
    public let reportsPerSecond: Double
    /// From the moment at which the beacon comes until it is heard.
    public let firstHeard: Times
    /// ``HitModel/beatFactor(_:)``.
    public let beatFactor: Double?
    /// ``HitModel/exitTime(falseExits:)``.
    public let exitTime: TimeInterval?
    public let limits: [HitModel.Limit]

    private let loss: Double

    /// - Parameters:
    ///   - interval: advertising interval of the beacon, at least 20 ms.
    ///   - loss: share of packets that are lost, 0 to less than 1.
    ///   - falseExits: how many are allowed a second and beacon, more than 0.
    public init(_ profile: ScanProfile, advertisingInterval interval: TimeInterval, loss: Double, falseExits: Double) {
        let model = HitModel(profile.pattern, .init(interval: interval, loss: loss))
        let times = model.firstHeard()
        self.profile = profile
        self.interval = interval
        self.loss = loss
        chance = model.chance
        reportsPerSecond = model.reportRate
        firstHeard = Times(times.quantile)
        beatFactor = model.beatFactor(times)
        exitTime = model.exitTime(falseExits: falseExits)
        limits = model.limits(times)
    }

    /// Whether the intervals beat, so that the beacon takes much longer than its share of the time.
    public var beats: Bool { beatFactor.map { $0 >= HitModel.beat } ?? false }

    /// A quantile of 99 % of this many beacons has a standard error of 1.5 %.
    private static let usualBeacons = 20_000
    /// About how many advertising events a simulation may take, some seconds.
    private static let affordableEvents = 20_000_000.0
    /// A beacon that was not heard after this counts as never heard.
    private static let patience = TimeInterval.seconds(7 * 86_400)

    /// The times that beacons of the simulation need, and how many beacons that were. Each has a world of its own, so
    /// that none disturbs another, and they come at moments spread evenly over the scanner's cycle.
    public func simulate(seed: UInt64) -> (times: Times, count: Int) {
        let count = max(400, min(Self.usualBeacons, Int(Self.affordableEvents * chance)))
        let pattern = profile.pattern
        let cycle = pattern.burst?.period.nanoseconds ?? pattern.interval.nanoseconds * 3
        var packet: [UInt8] = []
        var heard: [TimeInterval] = []
        for number in 0..<count {
            let arrival = MonotonicTime(nanoseconds: Int64((Double(number) + 0.5) / Double(count) * Double(cycle)))
            var world = RadioWorld(scenario(arrival, seed: seed &+ UInt64(number)))
            while let occurrence = world.next(into: &packet) {
                guard occurrence.kind == .packet else { continue }
                heard.append(occurrence.time - arrival)
                break
            }
        }
        heard.sort()
        let times = Times { share in
            let index = Int(share * Double(count))
            return index < heard.count ? heard[index] : nil
        }
        return (times, count)
    }

    private func scenario(_ arrival: MonotonicTime, seed: UInt64) -> Scenario {
        let pattern = profile.pattern
        let radio = Scenario.Radio(
            window: pattern.window, interval: pattern.interval,
            burst: pattern.burst.map { Scenario.Burst(on: $0.on, off: $0.off) })
        let beacon = Scenario.Beacon(
            advertisement: .iBeacon(uuid: [UInt8](repeating: 0, count: 16), major: 0, minor: 0), interval: interval,
            visits: [arrival ..< .distantFuture], loss: loss)
        return Scenario(seed: seed, duration: Self.patience, radios: [radio], beacons: [beacon], noise: 0)
    }
}
