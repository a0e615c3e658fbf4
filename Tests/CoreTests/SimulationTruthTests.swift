// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Simulation
import Testing

/// Who is there and when: what a scenario says of itself, and what is heard of it.
@Suite struct SimulationTruthTests {
    private let scenario = Scenario(
        duration: .seconds(60),
        beacons: [
            .numbered(0),
            .numbered(1) {
                // Out of order, touching and overlapping on purpose.
                $0.visits = [
                    .seconds(40) ..< .distantFuture, .seconds(5) ..< .seconds(10), .seconds(10) ..< .seconds(15),
                    .seconds(12) ..< .seconds(20),
                ]
            },
            .numbered(2) {
                $0.visits = [.zero ..< .seconds(30)]
                $0.silent = [.seconds(10) ..< .seconds(12), .seconds(25) ..< .seconds(50)]
            },
            .numbered(3) { $0.visits = [] },
            .numbered(4) { $0.visits = [.seconds(70) ..< .seconds(80)] },
            .numbered(5) { $0.silent = [.zero ..< .distantFuture] },
            .numbered(6) {
                $0.visits = [.seconds(10) ..< .seconds(20)]
                $0.silent = [.seconds(1) ..< .seconds(5), .seconds(30) ..< .seconds(40)]
            },
        ], noise: 0)

    @Test func truthMatchesTheVisits() {
        #expect(
            scenario.truth(within: .seconds(60)) == [
                Visit(beacon: 0, period: .zero ..< .seconds(60)),
                Visit(beacon: 2, period: .zero ..< .seconds(10)),
                Visit(beacon: 1, period: .seconds(5) ..< .seconds(20)),
                Visit(beacon: 6, period: .seconds(10) ..< .seconds(20)),
                Visit(beacon: 2, period: .seconds(12) ..< .seconds(25)),
                Visit(beacon: 1, period: .seconds(40) ..< .seconds(60)),
            ])
        #expect(
            scenario.truth(within: .seconds(8)) == [
                Visit(beacon: 0, period: .zero ..< .seconds(8)), Visit(beacon: 2, period: .zero ..< .seconds(8)),
                Visit(beacon: 1, period: .seconds(5) ..< .seconds(8)),
            ])
        #expect(scenario.truth(within: .zero).isEmpty)
        #expect(scenario.truth(within: .seconds(-1)).isEmpty)
    }

    /// What a radio that listens all the time hears is the truth: first and last heard lie within an interval and the
    /// longest advDelay of both ends, and nothing is heard outside.
    @Test func whatIsHeardIsTheTruth() throws {
        var scenario = scenario
        scenario.radios = [.unmoving]
        let receptions = Recording(scenario).receptions
        let visits = scenario.truth(within: scenario.duration)
        for visit in visits {
            let heard = receptions.filter { $0.minor == visit.beacon && visit.period.contains($0.time) }.map(\.time)
            let first = try #require(heard.first)
            let last = try #require(heard.last)
            #expect(first - visit.period.lowerBound < .milliseconds(115))
            #expect(visit.period.upperBound - last < .milliseconds(115))
        }
        // A PDU that had begun is sent to its end.
        let slack = TimeInterval.microseconds(368)
        #expect(
            receptions.allSatisfy { reception in
                visits.contains {
                    $0.beacon == reception.minor && reception.time >= $0.period.lowerBound
                        && reception.time < $0.period.upperBound + slack
                }
            })
    }

    @Test func aScenarioIsCutAtItsDuration() {
        var scenario = scenario
        scenario.duration = .seconds(7)
        let recording = Recording(scenario)
        #expect(recording.receptions.last.map { $0.time < .seconds(7) && $0.time > .seconds(6.8) } == true)
        scenario.duration = .zero
        #expect(Recording(scenario).activities.isEmpty)
    }
}
