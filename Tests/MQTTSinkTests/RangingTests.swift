// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// The beacons of a region, put together again and published as one message.
@Suite(.serialized) struct RangingTests {
    private let driver = Driver(port: 1)

    private func ranks(_ round: [Event]) -> [UInt32] { round.map(\.rank) }

    @Test func `a round is complete with its last beacon, whatever their order`() {
        var rounds = RangingRounds()
        #expect(rounds.add(driver.ranged("a", rank: 2, of: 3)).isEmpty)
        #expect(rounds.add(driver.ranged("b", rank: 1, of: 2)).isEmpty)
        #expect(rounds.add(driver.ranged("a", rank: 1, of: 3)).isEmpty)
        #expect(ranks(rounds.add(driver.ranged("a", rank: 3, of: 3))) == [1, 2, 3])
        #expect(ranks(rounds.add(driver.ranged("b", rank: 2, of: 2))) == [1, 2])
        #expect(ranks(rounds.add(driver.ranged("c", rank: 1, of: 1))) == [1])
    }

    @Test func `a newer round ends the one before, and an older beacon comes too late`() {
        var rounds = RangingRounds()
        #expect(rounds.add(driver.ranged("a", rank: 3, of: 3)).isEmpty)
        #expect(rounds.add(driver.ranged("a", rank: 1, of: 3)).isEmpty)
        #expect(ranks(rounds.add(driver.ranged("a", rank: 1, of: 2, round: 2))) == [1, 3])
        #expect(rounds.add(driver.ranged("a", rank: 2, of: 3)).isEmpty)
        #expect(ranks(rounds.add(driver.ranged("a", rank: 2, of: 2, round: 2))) == [1, 2])
        #expect(rounds.add(driver.ranged("a", rank: 1, of: 2, round: 3)).isEmpty)
        #expect(ranks(rounds.add(driver.ranged("a", rank: 1, of: 1, round: 4))) == [1])
        #expect(rounds.add(driver.ranged("a", rank: 2, of: 2, round: 5)).isEmpty)
    }

    @Test func `a region is ranged in one message a round, across batches`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker)
        let driver = Driver(port: broker.port)
        try driver.open()
        for round in Int64(1)...2 {
            for ranks in [UInt32(1)...100, 101...150] {
                try driver.write(
                    ranks.map {
                        Delivery(role: .sightings, event: driver.ranged("hall 1", rank: $0, of: 150, round: round))
                    })
            }
        }
        #expect(subscriber.wait { $0.count == 3 })
        let messages = subscriber.messages(on: "beacond/gw1/region/hall%201/ranging")
        #expect(messages.count == 2)
        for message in messages {
            #expect(!message.isRetained)
            let list = try #require(
                JSONSerialization.jsonObject(with: Data(message.payload.utf8)) as? [String: Any])
            #expect(list["inside"] as? Int == 150)
            let beacons = try #require(list["beacons"] as? [[String: Any]])
            #expect(beacons.compactMap { $0["minor"] as? Int } == Array(1...150))
        }
    }
}
