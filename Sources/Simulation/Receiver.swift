// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// A radio at work: which PDUs it can receive, how strong they are, and which of them spoil each other.
struct Receiver {
    /// A PDU is received in spite of another on its channel when it is this many dB stronger. An estimate: Core 5.4
    /// (Vol 6, Part A, 4.2) lets a receiver need 21 dB, and real ones are better than that.
    static let captureMargin = 8.0

    struct Reception {
        var transmission: Transmission
        /// dBm.
        var strength: Double
        /// The strongest PDU that overlaps it on its channel, dBm.
        var interference = -Double.infinity
        /// Received unless something spoils it; the others are kept only as long as they may spoil one.
        var isAwaited: Bool
    }

    private(set) var radio: Scenario.Radio
    private(set) var tally = ReceptionTally()
    /// Until when the present activity lasts.
    private(set) var activityEnd = MonotonicTime.zero
    /// PDUs of the channel listened to that may not have ended yet.
    private(set) var onAir: [Reception] = []

    private let blind: [Range<MonotonicTime>]
    /// Nobody wants it to listen.
    private var isResting = false
    private var activity = RadioActivity.paused
    private var activityStart = MonotonicTime.zero
    private var random: RandomSource
    private let noise: Double

    /// - Precondition: the window is longer than zero and no longer than the interval; so are the parts of a burst.
    init(_ radio: Scenario.Radio, index: Int, seed: UInt64, noise: Double) {
        precondition(
            radio.window > .zero && radio.window <= radio.interval, "a scan window lies within its interval")
        precondition(
            radio.burst.map { $0.on > .zero && $0.off > .zero } ?? true, "both parts of a burst last some time")
        self.radio = radio
        self.noise = noise
        blind = merged(radio.blind)
        random = RandomSource(seed: seed, stream: UInt64(index) << 1 | 1)
    }

    /// Begins what the radio does from `time` on. Scanning begins anew, with channel 37.
    mutating func changeActivity(at time: MonotonicTime) -> RadioActivity {
        activityStart = time
        if let period = blind.first(where: { $0.contains(time) }) {
            activity = .blind
            activityEnd = period.upperBound
            return activity
        }
        activity = isResting ? .paused : .scanning(window: radio.window, interval: radio.interval)
        activityEnd = .distantFuture
        if let burst = radio.burst {
            let cycle = burst.on.nanoseconds + burst.off.nanoseconds
            let phase = time.nanoseconds % cycle
            let isOn = phase < burst.on.nanoseconds
            if !isOn { activity = .paused }
            activityEnd = time + TimeInterval(nanoseconds: (isOn ? burst.on.nanoseconds : cycle) - phase)
        }
        if let next = blind.first(where: { $0.lowerBound > time }) {
            activityEnd = min(activityEnd, next.lowerBound)
        }
        return activity
    }

    /// Has a directed radio listen like this from `time` on, or not at all: its activity ends, and
    /// ``changeActivity(at:)`` is to be called then.
    mutating func use(_ times: (window: TimeInterval, interval: TimeInterval)?, at time: MonotonicTime) {
        if let times { (radio.window, radio.interval) = times }
        isResting = times == nil
        activityEnd = time
    }

    /// Whether the radio is tuned to it at its start or at its end; if not, it can neither be received nor spoil
    /// anything.
    mutating func touches(_ transmission: Transmission) -> Bool {
        if window(at: transmission.start, channel: transmission.channel) != nil { return true }
        if window(at: transmission.end, channel: transmission.channel) != nil { return true }
        tally.missed += 1
        return false
    }

    /// Takes in a PDU that begins now. Whether it is awaited: ``finish(at:)`` is to be called at its end.
    ///
    /// - Parameter strength: dBm before noise.
    mutating func begin(_ transmission: Transmission, strength: Double) -> Bool {
        onAir.removeAll { $0.transmission.end <= transmission.start }
        let end = window(at: transmission.start, channel: transmission.channel) ?? .zero
        var reception = Reception(
            transmission: transmission, strength: strength + (noise > 0 ? noise * random.normal() : 0),
            isAwaited: transmission.end <= end)
        for index in onAir.indices where onAir[index].transmission.channel == transmission.channel {
            reception.interference = max(reception.interference, onAir[index].strength)
            onAir[index].interference = max(onAir[index].interference, reception.strength)
        }
        onAir.append(reception)
        if !reception.isAwaited { tally.missed += 1 }
        return reception.isAwaited
    }

    /// The awaited PDU that ends now, or nil when it was not received after all.
    mutating func finish(at end: MonotonicTime) -> Reception? {
        guard let index = onAir.firstIndex(where: { $0.isAwaited && $0.transmission.end == end }) else { return nil }
        let reception = onAir.remove(at: index)
        let loss = reception.transmission.loss
        if reception.strength < radio.sensitivity {
            tally.faint += 1
        } else if reception.strength < reception.interference + Self.captureMargin {
            tally.collided += 1
        } else if loss > 0, random.uniform() < loss {
            tally.lost += 1
        } else {
            tally.heard += 1
            return reception
        }
        return nil
    }

    /// The end of the scan window that is open at `time` on `channel`; nil when there is none.
    private func window(at time: MonotonicTime, channel: UInt8) -> MonotonicTime? {
        guard case .scanning = activity, time < activityEnd else { return nil }
        let (interval, phase) = (time - activityStart).nanoseconds.quotientAndRemainder(
            dividingBy: radio.interval.nanoseconds)
        guard phase < radio.window.nanoseconds, interval % 3 == Int64(channel) else { return nil }
        return min(time + TimeInterval(nanoseconds: radio.window.nanoseconds - phase), activityEnd)
    }
}
