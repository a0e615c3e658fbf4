// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Presence
import TestSupport
import Testing

/// The engine against a model that is slow and obviously right, and what must hold whatever happens.
@Suite("Presence: rules as properties")
struct PresenceModelTests {
    static let seeds = Array(UInt64(1)...24)
    static let learning = seeds.flatMap { [($0, false), ($0, true)] }

    @Test("Engine and model agree, event by event", arguments: seeds, [false, true])
    func agreesWithModel(seed: UInt64, goesBlind: Bool) {
        var world = PresenceWorld(seed: seed)
        if goesBlind { world.goBlind() }
        var engine = PresenceEngine(settings: world.settings, beacons: world.beacons, regions: world.regions)
        let model = NaivePresence(world)
        var eventCount = 0
        for (step, input) in world.inputs.enumerated() {
            let events = engine.take(input).map(presenceLine).sorted()
            let expected = model.take(input).map(presenceLine).sorted()
            eventCount += events.count
            #expect(events == expected, "seed \(seed), step \(step): \(input)")
            #expect(engine.trackedCount == model.beacons.count, "seed \(seed), step \(step)")
            #expect(engine.presentCount == model.beacons.count { $0.isPresent }, "seed \(seed), step \(step)")
            let next = model.nextExpiry().map(MonotonicTime.init(nanoseconds:)) ?? .distantFuture
            #expect(engine.nextDeadline <= next, "seed \(seed), step \(step): a deadline would be missed")
            #expect((engine.nextDeadline == .distantFuture) == (next == .distantFuture), "seed \(seed), step \(step)")
            if events != expected || engine.trackedCount != model.beacons.count { return }
        }
        #expect(eventCount > 30, "seed \(seed): the world is too quiet to show anything")
        #expect(!goesBlind || model.doubtCount > 0, "seed \(seed): nobody was ever in doubt")
    }

    @Test("The same calls give the same events, and extra ticks change none", arguments: learning)
    func deterministic(seed: UInt64, learnsExitTimes: Bool) {
        var world = PresenceWorld(seed: seed)
        if learnsExitTimes { world.learnExitTimes() }
        var random = SeededGenerator(seed: seed &+ 1000)
        var plain = PresenceEngine(settings: world.settings, beacons: world.beacons, regions: world.regions)
        var ticked = PresenceEngine(settings: world.settings, beacons: world.beacons, regions: world.regions)
        var plainEvents: [String] = []
        var tickedEvents: [String] = []
        var now = Int64.min
        for input in world.inputs {
            plainEvents += plain.take(input).map(presenceLine)
            if now > .min, input.time > now {
                for _ in 0..<random.below(3) {
                    now += Int64(random.below(Int(input.time - now) + 1))
                    tickedEvents += ticked.take(.tick(now)).map(presenceLine)
                }
            }
            tickedEvents += ticked.take(input).map(presenceLine)
            now = max(now, input.time)
        }
        #expect(plainEvents == tickedEvents, "seed \(seed)")
        #expect(plainEvents.count > 30, "seed \(seed): the world is too quiet to show anything")
    }

    @Test(
        "Enter and exit alternate, times never go back, regions agree with the beacons inside", arguments: seeds,
        [false, true])
    func invariants(seed: UInt64, learnsExitTimes: Bool) {
        var random = SeededGenerator(seed: seed &+ 2000)
        var world = PresenceWorld(seed: seed)
        world.goBlind()
        if learnsExitTimes { world.learnExitTimes() }
        var engine = PresenceEngine(settings: world.settings, beacons: world.beacons, regions: world.regions)
        let nobody = presenceIdentity(255, [])
        var present: [BeaconIdentity: Bool] = [:]
        var doubtful: Set<BeaconIdentity> = []
        var inside: Set<Name> = []
        var unknown: Set<Name> = []
        var time = MonotonicTime(nanoseconds: .min)

        func check(_ events: [Event], _ context: String) {
            for event in events {
                #expect(event.time >= time, "\(context): \(presenceLine(event))")
                time = event.time
                switch event.kind {
                case .enter:
                    #expect(
                        present.updateValue(event.isConfigured, forKey: event.identity ?? nobody) == nil,
                        "\(context): second enter")
                case .exit:
                    #expect(
                        present.removeValue(forKey: event.identity ?? nobody) == event.isConfigured,
                        "\(context): wrong exit")
                    doubtful.remove(event.identity ?? nobody)
                case .unknown:
                    #expect(present[event.identity ?? nobody] == true, "\(context): a stray doubt")
                    #expect(doubtful.insert(event.identity ?? nobody).inserted, "\(context): in doubt twice")
                case .known:
                    #expect(doubtful.remove(event.identity ?? nobody) != nil, "\(context): no doubt before")
                case .sighting:
                    #expect(present[event.identity ?? nobody] == event.isConfigured, "\(context): stray sighting")
                case .regionEnter: #expect(inside.insert(event.name).inserted, "\(context): second region enter")
                case .regionExit:
                    #expect(inside.remove(event.name) != nil, "\(context): region exit without enter")
                    unknown.remove(event.name)
                case .regionUnknown:
                    #expect(inside.contains(event.name), "\(context): an empty region is unknown")
                    #expect(unknown.insert(event.name).inserted, "\(context): unknown twice")
                case .regionKnown: #expect(unknown.remove(event.name) != nil, "\(context): known twice")
                case .proximity:
                    #expect(present[event.identity ?? nobody] == event.isConfigured, "\(context): stray proximity")
                case .adapter, .gap, .health, .flood, .ranging, .clone:
                    Issue.record("\(context): not presence")
                }
            }
            var listed: [BeaconIdentity: Bool] = [:]
            var listedAsUnknown: Set<BeaconIdentity> = []
            engine.forEachPresent {
                listed[$0.identity ?? nobody] = $0.isConfigured
                if $0.kind == .unknown, $0.isConfigured { listedAsUnknown.insert($0.identity ?? nobody) }
            }
            #expect(listed == present, "\(context)")
            #expect(listedAsUnknown == doubtful, "\(context)")
            var counts: [Name: UInt32] = [:]
            engine.forEachRegion { counts[$0] = $1 }
            for region in world.regions {
                let expected = present.keys.count { identity in region.patterns.contains { $0.matches(identity) } }
                #expect(counts[region.name] == UInt32(expected), "\(context): count of \(region.name)")
                #expect(inside.contains(region.name) == (expected > 0), "\(context): state of \(region.name)")
            }
            #expect(inside.isSubset(of: Set(world.regions.map(\.name))), "\(context): inside an unknown region")
        }

        for (step, input) in world.inputs.enumerated() {
            let tracked = engine.trackedCount
            check(engine.take(input), "seed \(seed), step \(step)")
            if case .sighting(let sighting) = input,
                !world.beacons.contains(where: { $0.identity == sighting.identity })
            {
                #expect(
                    engine.trackedCount <= max(tracked, world.settings.maximumBeacons), "seed \(seed), step \(step)")
            }
            guard random.below(40) == 0 else { continue }
            let before = present
            world.chooseConfiguration(&random)
            if learnsExitTimes { world.learnExitTimes() }
            var events: [Event] = []
            engine.reconfigure(
                settings: world.settings, beacons: world.beacons, regions: world.regions,
                at: .init(nanoseconds: input.time)
            ) { events.append(copy $0) }
            check(events, "seed \(seed), step \(step), reconfigured")
            for event in events where event.kind == .exit && event.exitReason == .removed {
                guard let identity = event.identity else { continue }
                #expect(
                    before[identity] != world.isConfigured(identity),
                    "seed \(seed), step \(step): \(identity) keeps its standing and was removed")
            }
        }
    }
}

// MARK: - Worlds

enum PresenceInput {
    case sighting(Sighting)
    case radio(Name, RadioActivity, Int64)
    case tick(Int64)

    var time: Int64 {
        switch self {
        case .sighting(let sighting): sighting.time.nanoseconds
        case .radio(_, _, let time), .tick(let time): time
        }
    }
}

/// Settings, a configuration and a series of inputs drawn from a seed: few beacons and coarse times, so that everything
/// meets everything.
struct PresenceWorld {
    var settings = enteringAtOnce()
    var beacons: [BeaconRule] = []
    var regions: [RegionRule] = []
    private(set) var inputs: [PresenceInput] = []
    private var goesBlind = false

    private static let identities: [BeaconIdentity] = (0..<24).map { number in
        let octets = [number / 12, number / 4 % 3, number].map { UInt8($0) }
        return presenceIdentity(UInt8(number % 2), octets)
    }

    init(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        chooseConfiguration(&random)
        var time = Int64(random.below(1000)) * 1_000_000_000
        for _ in 0..<500 {
            switch random.below(10) {
            case 0...4: time += Int64(random.below(300)) * 1_000_000
            case 5...6: time += Int64(random.below(4)) * 500_000_000
            case 7: time += Int64(random.below(8)) * 1_000_000_000
            default: break
            }
            let adapter = Name(rawValue: UInt16(1 + random.below(3)))
            switch random.below(20) {
            case 0: inputs.append(.tick(time))
            case 1:
                let activity: RadioActivity =
                    switch random.below(4) {
                    case 0: .paused
                    case 1: .blind
                    default: .scanning(window: .milliseconds(30), interval: .milliseconds(300))
                    }
                inputs.append(.radio(adapter, activity, time))
            default:
                let delay = random.below(8) == 0 ? Int64(random.below(30)) * 100_000_000 : 0
                inputs.append(
                    .sighting(
                        Sighting(
                            time: .init(nanoseconds: time - delay),
                            identity: Self.identities[random.below(random.below(3) == 0 ? 24 : 8)],
                            address: .init(value: random.next(), kind: .randomDevice),
                            rssi: random.below(6) == 0 ? nil : Int8(-30 - random.below(70)),
                            measuredPower: random.below(4) == 0 ? nil : Int8(-random.below(128)), adapter: adapter)))
            }
        }
    }

    /// Has all radios fail together where one did, and the hold be short.
    mutating func goBlind() {
        goesBlind = true
        settings.blindHold = .seconds(2)
        inputs = inputs.flatMap { input in
            guard case .radio(_, .blind, let time) = input else { return [input] }
            return (1...3).map { .radio(Name(rawValue: $0), .blind, time) }
        }
    }

    mutating func chooseConfiguration(_ random: inout SeededGenerator) {
        settings.enterCount = 1 + random.below(3)
        settings.enterGap = .seconds(Int64(1 + random.below(6)))
        settings.exitTime = .seconds(Int64(1 + random.below(10)))
        settings.blindHold = goesBlind ? .seconds(2) : .seconds(Int64.max)
        settings.reportInterval = .milliseconds(Int64(random.below(3)) * 700)
        settings.averageOver = 1 + random.below(6)
        settings.maximumBeacons = random.below(2) == 0 ? 1000 : 4 + random.below(6)
        beacons = Self.identities.filter { _ in random.below(6) == 0 }.enumerated().map { index, identity in
            BeaconRule(
                identity: identity, alias: Name(rawValue: UInt16(100 + index)),
                measuredPower: random.below(2) == 0 ? -60 : nil, enterCount: random.below(2) == 0 ? 2 : nil,
                exitTime: random.below(2) == 0 ? .seconds(7) : nil,
                pathLossExponent: random.below(2) == 0 ? 3 : nil)
        }
        regions = (0..<random.below(6)).map { number in
            RegionRule(
                name: Name(rawValue: UInt16(200 + number)),
                patterns: (0..<1 + random.below(4)).map { _ in
                    IdentityPattern(identity: Self.identities[random.below(24)], prefix: UInt8(random.below(4)))
                })
        }
    }

    /// Nobody has a fixed exit time, and nobody knows anything after a radio has been blind for a second.
    mutating func learnExitTimes() {
        settings.exitTime = nil
        settings.shortestExitTime = .milliseconds(500)
        settings.longestExitTime = .seconds(8)
        settings.blindHold = .seconds(1)
        for index in beacons.indices { beacons[index].exitTime = nil }
        // Windows would let the hit model be asked for every class of intervals there is.
        for index in inputs.indices {
            if case .radio(let adapter, .scanning, let time) = inputs[index] {
                inputs[index] = .radio(adapter, .listening, time)
            }
        }
    }

    func isConfigured(_ identity: BeaconIdentity) -> Bool {
        beacons.contains { $0.identity == identity }
            || regions.contains { $0.patterns.contains { $0.matches(identity) } }
    }
}

func presenceIdentity(_ format: UInt8, _ octets: [UInt8]) -> BeaconIdentity {
    BeaconIdentity(format: FormatID(rawValue: format), octets: octets.span)
}

/// All that an event of presence says, for comparison.
func presenceLine(_ event: Event) -> String {
    let signal = event.signal
    return """
        \(event.time.nanoseconds) \(event.kind.word) \(event.identity.map { "\($0)" } ?? "-") name \(event.name.rawValue) \
        \(event.isConfigured) \(event.address.value) adapter \(event.adapter.rawValue) last \(signal.last ?? 1) \
        filtered \(signal.filtered ?? 1) min \(signal.minimum ?? 1) max \(signal.maximum ?? 1) count \(signal.count) \
        power \(event.measuredPower ?? 1) \(event.proximity.word) accuracy \(Int((event.accuracy * 100).rounded())) \
        seen \(event.lastSeen?.nanoseconds ?? 0) exit \(event.exitTime.nanoseconds) \(event.exitReason.word) \
        inside \(event.insideCount)
        """
}

extension PresenceEngine {
    mutating func take(_ input: PresenceInput) -> [Event] {
        var events: [Event] = []
        switch input {
        case .sighting(let sighting): observe(sighting) { events.append(copy $0) }
        case .radio(let name, let activity, let time):
            radio(name, activity, at: .init(nanoseconds: time)) { events.append(copy $0) }
        case .tick(let time): tick(.init(nanoseconds: time)) { events.append(copy $0) }
        }
        return events
    }
}

/// Everything at its default, but the first sighting enters.
func enteringAtOnce() -> PresenceSettings {
    var settings = PresenceSettings()
    settings.exitTime = .seconds(20)
    settings.enterCount = 1
    return settings
}
