// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// What scanning costs, account by account: one for each profile that was in force with those who held it, and one for
/// the time in which nobody wanted the radio.
///
/// Pure: time and processor time are handed in. Nothing happens between changes, so it costs nothing per packet.
public struct RadioLedger: Sendable {
    public struct Account: Equatable, Sendable {
        /// nil while nobody wanted the radio.
        public var profile: String?
        /// Who held the profile; a demand for a weaker one is not named. Empty for accounts that were put together
        /// because there were too many.
        public var holders: [String]
        public var time = TimeInterval.zero
        /// Time of listening, summed over the radios: a radio that scans counts with its window over its interval, one
        /// that pauses or is blind does not count.
        public var listening = TimeInterval.zero
        /// Time that was, summed over the radios.
        public var radioTime = TimeInterval.zero
        /// Processor time of the whole process.
        public var processorTime = TimeInterval.zero

        /// The radio's share of the time, from 0 to 1.
        public var radioShare: Double { radioTime > .zero ? listening.seconds / radioTime.seconds : 0 }
        /// Share of one core.
        public var processorShare: Double { time > .zero ? processorTime.seconds / time.seconds : 0 }
    }

    private struct Radio {
        var name: Name
        /// Share of the time that it listens now.
        var duty: Double
    }

    /// Who holds a profile is told apart for this many accounts; after that the profile alone is.
    static let capacity = 64

    public private(set) var accounts: [Account] = []
    /// Index of the account that is in force; nil before the first ``begin(_:holders:at:processorTime:)``.
    public private(set) var current: Int?
    private var radios: [Radio] = []
    private var settledAt = MonotonicTime.zero
    private var processorTimeThen = TimeInterval.zero

    public init() {}

    /// From now on this profile is in force, or none.
    public mutating func begin(
        _ profile: String?, holders: [String], at time: MonotonicTime, processorTime: TimeInterval
    ) {
        settle(at: time, processorTime: processorTime)
        current = place(profile, holders)
    }

    /// From now on a radio does this.
    public mutating func radio(
        _ name: Name, _ activity: RadioActivity, at time: MonotonicTime, processorTime: TimeInterval
    ) {
        settle(at: time, processorTime: processorTime)
        var duty = 0.0
        if case .scanning(let window, let interval) = activity, interval > .zero {
            duty = window.seconds / interval.seconds
        }
        if let index = radios.firstIndex(where: { $0.name == name }) {
            radios[index].duty = duty
        } else {
            radios.append(Radio(name: name, duty: duty))
        }
    }

    /// Counts what passed until now.
    public mutating func settle(at time: MonotonicTime, processorTime: TimeInterval) {
        // A source may tell of a moment that lies a little before the last one.
        let passed = max(time - settledAt, .zero)
        if let current {
            accounts[current].time.add(passed.nanoseconds)
            accounts[current].processorTime.add(processorTime.nanoseconds - processorTimeThen.nanoseconds)
            for radio in radios {
                accounts[current].radioTime.add(passed.nanoseconds)
                accounts[current].listening.add(Int64(Double(passed.nanoseconds) * radio.duty))
            }
        }
        settledAt = max(settledAt, time)
        processorTimeThen = processorTime
    }

    private mutating func place(_ profile: String?, _ holders: [String]) -> Int {
        func find(_ holders: [String]) -> Int? {
            accounts.firstIndex { $0.profile == profile && $0.holders == holders }
        }
        if let index = find(holders) { return index }
        if accounts.count >= Self.capacity, let index = find([]) { return index }
        accounts.append(Account(profile: profile, holders: accounts.count < Self.capacity ? holders : []))
        return accounts.count - 1
    }
}

extension TimeInterval {
    fileprivate mutating func add(_ nanoseconds: Int64) {
        self = TimeInterval(nanoseconds: self.nanoseconds + nanoseconds)
    }
}
