// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// A scenario as it unfolds: what a host would receive from its controllers, in the order of time.
///
/// Pure: no clock, no input or output, and no randomness but the scenario's seed. `docs/simulation.md` describes the
/// model and what it leaves out.
public struct RadioWorld: Sendable {
    /// Something that a host notices.
    public struct Occurrence: Equatable, Sendable {
        public enum Kind: Equatable, Sendable {
            /// The radio sent an HCI packet, which is in the buffer.
            case packet
            /// This is what the radio does from now on. Each radio begins with one at time zero.
            case activity(RadioActivity)
        }

        /// Since the beginning of the world; for a packet when the advertisement had been received.
        public var time: MonotonicTime
        /// Index into ``Scenario/radios``.
        public var radio: Int
        public var kind: Kind

        public init(time: MonotonicTime, radio: Int, kind: Kind) {
            self.time = time
            self.radio = radio
            self.kind = kind
        }
    }

    /// PDUs sent on any channel until now.
    public private(set) var transmissionCount = 0

    private(set) var receivers: [Receiver]
    private var advertisers: [Advertiser]
    private var agenda = Agenda()
    private let end: MonotonicTime
    private let walls: [Scenario.Wall]
    private let measuredPowers: [Int8]
    private let pathLossExponent: Double

    /// - Precondition: intervals, windows and identities are as their declarations in ``Scenario`` say.
    public init(_ scenario: Scenario) {
        end = .zero + scenario.duration
        walls = scenario.walls
        measuredPowers = scenario.beacons.map(\.measuredPower)
        pathLossExponent = scenario.pathLossExponent
        advertisers = scenario.beacons.enumerated().map { Advertiser($1, index: $0, seed: scenario.seed) }
        receivers = scenario.radios.enumerated().map {
            Receiver($1, index: $0, seed: scenario.seed, noise: scenario.noise)
        }
        for radio in receivers.indices {
            agenda.insert(.init(time: .zero, kind: .activityChange, index: radio))
        }
        for beacon in advertisers.indices {
            agenda.insert(.init(time: advertisers[beacon].nextStart, kind: .transmission, index: beacon))
        }
    }

    /// The next occurrence, or nil when the world has ended.
    ///
    /// - Parameter packet: replaced by the octets of a packet, H4 packet type first; room for 60 octets is enough for
    ///   every packet.
    public mutating func next(into packet: inout [UInt8]) -> Occurrence? {
        next(until: .distantFuture, into: &packet)
    }

    /// The same, or nil when it comes after `limit`: what happens then may still be changed (``use(_:at:)``).
    public mutating func next(until limit: MonotonicTime, into packet: inout [UInt8]) -> Occurrence? {
        while let entry = agenda.first, entry.time < end, entry.time <= limit {
            switch entry.kind {
            case .activityChange:
                // Of a radio that was told to do something else meanwhile.
                guard entry.time == receivers[entry.index].activityEnd else {
                    agenda.removeFirst()
                    continue
                }
                let activity = receivers[entry.index].changeActivity(at: entry.time)
                agenda.replaceFirst(
                    with: .init(
                        time: receivers[entry.index].activityEnd, kind: .activityChange, index: entry.index))
                return Occurrence(time: entry.time, radio: entry.index, kind: .activity(activity))
            case .transmission:
                transmit(entry.index)
            case .reception:
                agenda.removeFirst()
                if finishReception(entry, into: &packet) {
                    return Occurrence(time: entry.time, radio: entry.index, kind: .packet)
                }
            }
        }
        return nil
    }

    /// When ``next(until:into:)`` may have something; never before that.
    public var nextTime: MonotonicTime { agenda.first?.time ?? .distantFuture }

    /// Has the radios that are directed listen with this window out of every interval, or not at all.
    ///
    /// - Parameter time: not before the limit of the last call of ``next(until:into:)``.
    /// - Precondition: the window is longer than zero and no longer than the interval.
    public mutating func use(_ times: (window: TimeInterval, interval: TimeInterval)?, at time: MonotonicTime) {
        for index in receivers.indices where receivers[index].radio.isDirected {
            receivers[index].use(times, at: time)
            agenda.insert(.init(time: time, kind: .activityChange, index: index))
        }
    }

    /// What became of every PDU until now, seen from one radio.
    public func tally(ofRadio radio: Int) -> ReceptionTally {
        receivers[radio].tally
    }

    private mutating func transmit(_ beacon: Int) {
        let transmission = advertisers[beacon].transmit()
        transmissionCount += 1
        agenda.replaceFirst(with: .init(time: advertisers[beacon].nextStart, kind: .transmission, index: beacon))
        for radio in receivers.indices where receivers[radio].touches(transmission) {
            let strength = strength(of: transmission)
            if receivers[radio].begin(transmission, strength: strength) {
                agenda.insert(.init(time: transmission.end, kind: .reception, index: radio))
            }
        }
    }

    /// dBm at the radios before noise: log-distance path loss from the strength at 1 m.
    private mutating func strength(of transmission: Transmission) -> Double {
        // Nearer than a hand the law of the far field says nothing, and at zero it would be infinite.
        let distance = max(advertisers[transmission.beacon].distance(at: transmission.start), 0.1)
        let pathLoss = 10 * pathLossExponent * commonLogarithm(distance)
        var strength = Double(measuredPowers[transmission.beacon]) - pathLoss
        for wall in walls where distance > wall.distance && wall.period.contains(transmission.start) {
            strength -= wall.attenuation
        }
        return strength
    }

    private mutating func finishReception(_ entry: Agenda.Entry, into packet: inout [UInt8]) -> Bool {
        guard let reception = receivers[entry.index].finish(at: entry.time) else { return false }
        // The range of RSSI in a report (Core 5.4, Vol 4, Part E, 7.7.65.2).
        let rssi = min(max(reception.strength.rounded(), -127), 20)
        let report = ReportPacket(
            address: reception.transmission.address, rssi: Int8(rssi),
            data: advertisers[reception.transmission.beacon].payload)
        if receivers[entry.index].radio.isExtended {
            report.writeExtended(into: &packet)
        } else {
            report.writeLegacy(into: &packet)
        }
        return true
    }
}
