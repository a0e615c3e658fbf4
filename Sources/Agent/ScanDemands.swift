// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import HCI
import Presence

/// Who wants the radios, and how much: named demands, each with a profile. The strongest profile runs; without a demand
/// nothing does.
///
/// Pure: the time is handed in, and ``directive(at:)`` says what every radio should do now and when to ask again.
public struct ScanDemands: Sendable {
    /// Who holds a demand. A holder has at most one: a new one replaces it.
    public enum Holder: Hashable, Sendable {
        /// The gateway, as long as anything wants to know who is there.
        case monitoring
        /// A region that ranges, while a beacon is inside.
        case region(Name)
        /// A scan for some time that somebody asked for, by a number of its own.
        case timed(UInt64)
        /// Those who watch events.
        case watching
        /// Whoever asked for a profile until told otherwise.
        case command
    }

    /// What a radio should do.
    public struct Directive: Equatable, Sendable {
        /// The strongest profile, also while its burst schedule pauses; nil when nobody wants the radio.
        public var profile: ScanProfile?
        /// Who wants that profile, in no order.
        public var holders: [Holder]
        /// What to tell the controller; nil to stop scanning.
        public var parameters: ScanParameters?
        /// The same for presence, as long as the radio can do it.
        public var activity: RadioActivity
        /// When to ask again at the latest, if no demand comes or goes before.
        public var until: MonotonicTime
    }

    private struct Demand {
        var profile: ScanProfile
        var end: MonotonicTime
    }

    private var demands: [Holder: Demand] = [:]
    private var ranging: ScanProfile
    private var rangedRegions: Set<Name>
    private var current: ScanProfile?
    /// When ``current`` became the strongest; its bursts count from there.
    private var since = MonotonicTime.zero
    private var timedCount: UInt64 = 0

    public init(_ configuration: AgentConfiguration) {
        ranging = configuration.scan.ranging
        rangedRegions = configuration.rangedRegions
        monitor(configuration)
    }

    // MARK: Demands

    /// - Parameter end: when the demand ends by itself.
    public mutating func hold(
        _ profile: ScanProfile, for holder: Holder, until end: MonotonicTime = .distantFuture
    ) {
        demands[holder] = Demand(profile: profile, end: end)
    }

    public mutating func release(_ holder: Holder) {
        demands[holder] = nil
    }

    /// What somebody holds, and until when.
    public func demand(of holder: Holder) -> (profile: ScanProfile, end: MonotonicTime)? {
        demands[holder].map { ($0.profile, $0.end) }
    }

    /// A demand that ends by itself at `end`, or before that when it is released.
    public mutating func holdTimed(_ profile: ScanProfile, until end: MonotonicTime) -> Holder {
        timedCount += 1
        hold(profile, for: .timed(timedCount), until: end)
        return .timed(timedCount)
    }

    /// Monitor first, range only inside: a region that ranges holds its demand from its enter to its exit.
    public mutating func follow(_ event: borrowing Event) {
        switch event.kind {
        case .regionEnter where rangedRegions.contains(event.name): hold(ranging, for: .region(event.name))
        case .regionExit: release(.region(event.name))
        default: break
        }
    }

    /// The configuration was read again. Timed demands go on with the profile that they were asked for with; regions
    /// that range from now on and have somebody inside are told by ``follow(_:)``, with the events of the state.
    public mutating func reconfigure(_ configuration: AgentConfiguration) {
        ranging = configuration.scan.ranging
        rangedRegions = configuration.rangedRegions
        for holder in Array(demands.keys) {
            guard case .region(let name) = holder else { continue }
            if rangedRegions.contains(name) { hold(ranging, for: holder) } else { release(holder) }
        }
        monitor(configuration)
    }

    private mutating func monitor(_ configuration: AgentConfiguration) {
        if configuration.wantsMonitoring {
            hold(configuration.scan.monitoring, for: .monitoring)
        } else {
            release(.monitoring)
        }
    }

    // MARK: The answer

    /// What every radio should do at `now`, which never goes back.
    public mutating func directive(at now: MonotonicTime) -> Directive {
        demands = demands.filter { $0.value.end > now }
        let strongest = demands.values.map(\.profile).max { $1.isStronger(than: $0) }
        if strongest != current {
            current = strongest
            since = now
        }
        let nextEnd = demands.values.map(\.end).min() ?? .distantFuture
        guard let strongest else {
            return Directive(
                profile: nil, holders: [], parameters: nil, activity: .paused, until: .distantFuture)
        }
        let (isScanning, change) = strongest.pattern.isScanning(at: now, since: since)
        return Directive(
            profile: strongest, holders: demands.filter { $0.value.profile == strongest }.map(\.key),
            parameters: isScanning ? strongest.parameters : nil,
            activity: isScanning
                ? .scanning(window: strongest.pattern.window, interval: strongest.pattern.interval) : .paused,
            until: min(nextEnd, change))
    }
}

extension AgentConfiguration {
    /// Whether anything wants to know who is there: a beacon, a region, or a sink.
    var wantsMonitoring: Bool {
        !beacons.isEmpty || !regions.isEmpty || sinks.contains(where: \.isEnabled)
    }
}
