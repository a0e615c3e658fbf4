// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Presence
import Simulation
import TestSupport
import Testing

/// Which profile runs when, and what the radios are told.
@Suite struct ScanDemandsTests {
    private static let quiet = """
        {"scan": {"profile": "economy"}, "regions": [
            {"name": "hall", "uuid": "fda50693-a4e2-4fb1-afcf-c6eb07647825", "range": true},
            {"name": "yard", "uuid": "fda50693-a4e2-4fb1-afcf-c6eb07647826"}]}
        """
    private let names = NameTable()

    private func demands(_ text: String) throws -> ScanDemands {
        ScanDemands(try TestDeclaration.load(text, names: names))
    }

    private func event(_ kind: Event.Kind, _ region: String) -> Event {
        var event = Event(kind: kind, time: .zero)
        event.name = names.intern(region)
        return event
    }

    private func seconds(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(seconds * 1e9)) }

    @Test(arguments: [
        (#"{}"#, nil), (#"{"sinks": [{"kind": "stdout", "enabled": false}]}"#, nil),
        (#"{"sinks": [{"kind": "stdout"}]}"#, "continuous"),
        (#"{"scan": {"profile": "balanced"}, "regions": [{"name": "r", "format": "altbeacon"}]}"#, "balanced"),
        (
            #"{"beacons": [{"uuid": "fda50693-a4e2-4fb1-afcf-c6eb07647825", "major": 1, "minor": 1}]}"#,
            "continuous"
        ),
    ])
    func monitoringLastsAsLongAsAnythingWantsIt(_ text: String, _ profile: String?) throws {
        var demands = try demands(text)
        let directive = demands.directive(at: .zero)
        #expect(directive.profile?.name == profile)
        #expect(directive.parameters == directive.profile?.parameters)
        if profile == nil { #expect(directive.activity == .paused) }
        #expect(directive.until == .distantFuture)
    }

    @Test func aRegionRangesWhileABeaconIsInside() throws {
        var demands = try demands(Self.quiet)
        #expect(demands.directive(at: seconds(0)).profile == .economy)
        demands.follow(event(.regionEnter, "yard"))
        #expect(demands.directive(at: seconds(1)).profile == .economy)
        demands.follow(event(.regionEnter, "hall"))
        let ranging = demands.directive(at: seconds(2))
        #expect(ranging.profile == .continuous)
        #expect(ranging.parameters == ScanProfile.continuous.parameters)
        #expect(ranging.activity == .scanning(window: .milliseconds(100), interval: .milliseconds(100)))
        // Of other kinds of event the region of that name is not meant.
        demands.follow(event(.exit, "hall"))
        demands.follow(event(.regionExit, "yard"))
        #expect(demands.directive(at: seconds(3)).profile == .continuous)
        demands.follow(event(.regionExit, "hall"))
        #expect(demands.directive(at: seconds(4)).profile == .economy)
    }

    /// A beacon that comes at 10 s and goes at 40 s, heard by a radio that does what `economy` says.
    @Test func theProfileRisesOnEnterAndFallsAfterExit() throws {
        let decoder = FrameDecoder()
        let configuration = try AgentConfiguration.load(
            Array(Self.quiet.utf8), file: "plugins.json", formats: decoder.catalog, sinks: TestDeclaration.sinks,
            names: names)
        let uuid = try #require(UUIDText.octets("fda50693-a4e2-4fb1-afcf-c6eb07647825"))
        let pattern = ScanProfile.economy.pattern
        var world = RadioWorld(
            Scenario(
                seed: 3, duration: .seconds(80), radios: [.init(window: pattern.window, interval: pattern.interval)],
                beacons: [
                    .init(
                        advertisement: .iBeacon(uuid: uuid, major: 1, minor: 1), interval: .milliseconds(100),
                        visits: [seconds(10)..<seconds(40)])
                ]))
        var fixed = configuration
        fixed.presence.exitTime = seconds(20) - .zero
        var road = Road(fixed)
        var demands = ScanDemands(configuration)
        var changes: [(time: MonotonicTime, profile: String?)] = []
        func note(_ time: MonotonicTime) {
            let profile = demands.directive(at: time).profile?.name
            if changes.last?.profile != profile { changes.append((time, profile)) }
        }
        func follow(_ event: borrowing Event) {
            demands.follow(event)
            note(event.time)
        }
        var packet: [UInt8] = []
        let adapter = names.intern("sim0")
        note(.zero)
        while let occurrence = world.next(into: &packet) {
            guard occurrence.kind == .packet else { continue }
            road.receive(packet.span, at: occurrence.time, from: adapter, emit: follow)
        }
        road.tick(seconds(80), emit: follow)
        #expect(changes.map(\.profile) == ["economy", "continuous", "economy"])
        // Two sightings enter, each within 2 s as `beacond plan` says; the exit time is 20 s.
        #expect((seconds(10)...seconds(14)).contains(changes[1].time))
        #expect((seconds(57)...seconds(60)).contains(changes[2].time))
    }

    @Test func timedDemandsEnd() throws {
        var demands = try demands("{}")
        let short = demands.holdTimed(.balanced, until: seconds(10))
        let long = demands.holdTimed(.economy, until: seconds(20))
        #expect(short != long)
        #expect(demands.directive(at: seconds(0)).profile == .balanced)
        #expect(demands.directive(at: seconds(0)).until == seconds(10))
        #expect(demands.directive(at: seconds(9.999)).profile == .balanced)
        #expect(demands.directive(at: seconds(10)).profile == .economy)
        #expect(demands.directive(at: seconds(10)).until == seconds(20))
        demands.release(long)
        #expect(demands.directive(at: seconds(11)).parameters == nil)
    }

    /// The larger duty first, whatever the window; then the longer window; then active.
    @Test func theStrongestProfileWins() throws {
        func profile(
            _ name: String, _ window: Int64, _ interval: Int64, active: Bool = false, pause: Int64 = 0
        )
            -> ScanProfile
        {
            ScanProfile(
                name: name, window: .milliseconds(window), interval: .milliseconds(interval), isActive: active,
                burst: pause > 0 ? .init(on: .seconds(1), off: .seconds(pause)) : nil)
        }
        let weakestFirst = [
            profile("bursts", 1000, 1000, pause: 19), profile("tenth", 100, 1000), profile("half", 30, 60),
            profile("long half", 300, 600), profile("b", 30, 30), profile("a", 30, 30),
            profile("active", 30, 30, active: true), profile("long", 40, 40),
        ]
        for order in [weakestFirst, weakestFirst.reversed()] {
            var demands = try demands("{}")
            var held: [(ScanDemands.Holder, ScanProfile)] = []
            for profile in order { held.append((demands.holdTimed(profile, until: .distantFuture), profile)) }
            for expected in weakestFirst.reversed() {
                #expect(demands.directive(at: .zero).profile == expected)
                for (holder, profile) in held where profile == expected { demands.release(holder) }
            }
            #expect(demands.directive(at: .zero).profile == nil)
        }
    }

    @Test func burstsBeginWithTheProfileAndRepeat() throws {
        var demands = try demands(
            """
            {"scan": {"profile": "night", "profiles": [
                {"name": "night", "window": "30ms", "interval": "60ms", "burst": {"on": "2s", "off": "3s"}}]},
             "sinks": [{"kind": "stdout"}]}
            """)
        func check(_ time: Double, _ isOn: Bool, until: Double) {
            let directive = demands.directive(at: seconds(time))
            #expect(directive.profile?.name == "night")
            #expect((directive.parameters != nil) == isOn, "at \(time)")
            #expect(
                directive.activity
                    == (isOn ? .scanning(window: .milliseconds(30), interval: .milliseconds(60)) : .paused))
            #expect(directive.until == seconds(until))
        }
        check(100, true, until: 102)
        check(101.999, true, until: 102)
        check(102, false, until: 105)
        check(104.999, false, until: 105)
        check(105, true, until: 107)
        check(1009.5, false, until: 1010)
        // A stronger demand ends the pause, and after it the schedule begins anew.
        let scan = demands.holdTimed(.continuous, until: seconds(1020))
        #expect(demands.directive(at: seconds(1009.6)).profile == .continuous)
        #expect(demands.directive(at: seconds(1009.6)).until == seconds(1020))
        demands.release(scan)
        check(1012, true, until: 1014)
        // A weaker one does not, but it is a reason to ask again.
        _ = demands.holdTimed(
            ScanProfile(name: "weak", window: .milliseconds(10), interval: .seconds(10)), until: seconds(1013))
        check(1012.5, true, until: 1013)
        check(1013, true, until: 1014)
    }

    @Test func aReloadKeepsWhatStillHolds() throws {
        var demands = try demands(Self.quiet)
        demands.follow(event(.regionEnter, "hall"))
        demands.follow(event(.regionEnter, "yard"))
        demands.reconfigure(
            try TestDeclaration.load(
                Self.quiet.replacing("\"profile\": \"economy\"", with: "\"profile\": \"balanced\""), names: names))
        #expect(demands.directive(at: .zero).profile == .continuous)
        demands.reconfigure(
            try TestDeclaration.load(Self.quiet.replacing(", \"range\": true", with: ""), names: names))
        #expect(demands.directive(at: .zero).profile == .economy)
        demands.reconfigure(try TestDeclaration.load("{}", names: names))
        #expect(demands.directive(at: .zero).profile == nil)
    }

    /// Slots of 0.625 ms, from 2.5 ms to 10.24 s; the nearest one.
    @Test(
        arguments: [
            (100_000_000, 100_000_000), (30_300_000, 30_000_000), (30_400_000, 30_625_000), (1, 2_500_000),
            (99_000_000_000, 10_240_000_000), (10_239_900_000, 10_240_000_000),
        ] as [(Int64, Int64)])
    func profilesHaveWholeSlots(_ asked: Int64, _ expected: Int64) {
        let profile = ScanProfile(
            name: "p", window: TimeInterval(nanoseconds: asked), interval: .milliseconds(10_240))
        #expect(profile.pattern.window.nanoseconds == expected)
        let cut = ScanProfile(name: "p", window: .seconds(5), interval: TimeInterval(nanoseconds: asked))
        #expect(cut.pattern.interval.nanoseconds == expected)
        #expect(cut.pattern.window == min(.seconds(5), cut.pattern.interval))
    }
}
