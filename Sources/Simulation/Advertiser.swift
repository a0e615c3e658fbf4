// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// One PDU on the air.
struct Transmission {
    var beacon: Int
    /// 0, 1, 2 for the channels 37, 38, 39.
    var channel: UInt8
    var start: MonotonicTime
    var end: MonotonicTime
    var address: DeviceAddress
    /// The share of unexplained loss.
    var loss: Double
}

/// A beacon at work: advertising events, each of three PDUs (Core 5.4, Vol 6, Part B, 4.4.2).
struct Advertiser {
    /// advDelay is uniform from 0 to this (Core 5.4, Vol 6, Part B, 4.4.2.2.1).
    static let longestDelay = TimeInterval.milliseconds(10)
    /// The shortest advInterval (same place).
    static let shortestInterval = TimeInterval.milliseconds(20)
    /// From the start of one PDU of an event to the start of the next. The specification allows up to 10 ms; chips take
    /// about 0.4 to 1.5 ms (an estimate). It is a habit of the device, so each beacon keeps its own.
    private static let spacings = (
        shortest: TimeInterval(nanoseconds: 400_000), range: TimeInterval(nanoseconds: 1_100_000)
    )
    /// The octets around AdvData: preamble 1, access address 4, header 2, AdvA 6, CRC 3 (Core 5.4, Vol 6, Part B, 2.1
    /// and 2.3.1), each 8 µs long on LE 1M.
    private static let overhead = 16
    private static let octetTime: Int64 = 8000

    let payload: [UInt8]
    /// The start of the next PDU; the distant future when there is none.
    private(set) var nextStart = MonotonicTime.zero

    private let beacon: Scenario.Beacon
    private let index: Int
    private let periods: [Range<MonotonicTime>]
    private let airTime: TimeInterval
    private let spacing: TimeInterval
    private let addressSeed: UInt64
    private var random: RandomSource
    private var address: DeviceAddress
    private var period = 0
    private var eventStart = MonotonicTime.zero
    private var channel: UInt8 = 0
    private var waypoint = 0

    /// - Precondition: the advertising interval is at least 20 ms.
    init(_ beacon: Scenario.Beacon, index: Int, seed: UInt64) {
        precondition(beacon.interval >= Self.shortestInterval, "an advertising interval is at least 20 ms")
        precondition(
            beacon.addressRotation.map { $0 > .zero } ?? true, "an address lasts longer than no time at all")
        self.beacon = beacon
        self.index = index
        payload = beacon.advertisement.octets(measuredPower: beacon.measuredPower)
        airTime = TimeInterval(nanoseconds: Int64(Self.overhead + payload.count) * Self.octetTime)
        periods = beacon.advertisingPeriods
        random = RandomSource(seed: seed, stream: UInt64(index) << 1)
        addressSeed = random.next()
        let randomStatic = Self.address(random.next(), topBits: 0b11)
        address = beacon.address ?? randomStatic
        spacing = TimeInterval(
            nanoseconds: Self.spacings.shortest.nanoseconds + random.uniform(below: Self.spacings.range).nanoseconds)
        beginPeriod()
    }

    /// The PDU that starts at ``nextStart``; afterwards that is the start of the one after it.
    mutating func transmit() -> Transmission {
        if channel == 0, let rotation = beacon.addressRotation {
            var source = RandomSource(
                seed: addressSeed, stream: UInt64(clamping: eventStart.nanoseconds / rotation.nanoseconds))
            // Non-resolvable, since there is no key by which anybody could resolve it.
            address = Self.address(source.next(), topBits: 0b00)
        }
        let transmission = Transmission(
            beacon: index, channel: channel, start: nextStart, end: nextStart + airTime, address: address,
            loss: beacon.loss)
        if channel < 2 {
            channel += 1
            nextStart = nextStart + spacing
        } else {
            channel = 0
            eventStart = eventStart + beacon.interval + random.uniform(below: Self.longestDelay)
            nextStart = eventStart
        }
        if nextStart >= periods[period].upperBound {
            period += 1
            beginPeriod()
        }
        return transmission
    }

    /// Metres from the radios. Asked in the order of time.
    mutating func distance(at time: MonotonicTime) -> Double {
        let path = beacon.path
        guard let first = path.first else { return 1 }
        guard time > first.time else { return first.distance }
        while waypoint + 1 < path.count, path[waypoint + 1].time <= time { waypoint += 1 }
        let from = path[waypoint]
        guard waypoint + 1 < path.count else { return from.distance }
        let to = path[waypoint + 1]
        return from.distance + (to.distance - from.distance)
            * ((time - from.time).seconds / (to.time - from.time).seconds)
    }

    /// Begins to advertise at a phase that nobody knows, as a beacon that was carried in or switched on.
    private mutating func beginPeriod() {
        channel = 0
        while period < periods.count {
            eventStart = max(periods[period].lowerBound, .zero) + random.uniform(below: beacon.interval)
            nextStart = eventStart
            if nextStart < periods[period].upperBound { return }
            period += 1
        }
        nextStart = .distantFuture
    }

    /// The kind of a random address stands in its two top bits (Core 5.4, Vol 6, Part B, 1.3.2).
    private static func address(_ bits: UInt64, topBits: UInt64) -> DeviceAddress {
        DeviceAddress(value: bits & 0x3FFF_FFFF_FFFF | topBits << 46, kind: .randomDevice)
    }
}
