// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// What a subscriber of a state topic reads while the broker is killed again and again.
@Suite(.serialized) struct StateOrderTests {
    @Test func `no state is older than one that was read before`() throws {
        let seed: UInt64 = 20_261_201
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let broker = try Broker()
        // It connects again by itself, and gets what is retained.
        let subscriber = try Subscriber(broker, "beacond/gw1/ibeacon/#")
        let driver = Driver(port: broker.port)
        var version: Int64 = 0
        var accepted: Int64 = 0
        // Later it may read little: it takes a second to come back, and the broker dies sooner.
        try driver.open()
        while version < 10 {
            version += 1
            var event = driver.event(version % 2 == 1 ? .enter : .exit)
            event.wallTime = WallTime(milliseconds: 1_790_000_000_000 + version)
            try driver.write([Delivery(role: .states, event: event)])
            accepted = version
        }
        #expect(subscriber.wait { $0.count == 10 })
        for _ in 0..<6 {
            try driver.open()
            let delay = UInt32.random(in: 1_000...60_000, using: &random)
            Thread.detachNewThread {
                usleep(delay)
                broker.kill()
            }
            // As the host does it: only the newest state, again after each connection, until it is accepted.
            var error: SinkError?
            while error == nil {
                if accepted == version { version += 1 }
                var event = driver.event(version % 2 == 1 ? .enter : .exit)
                event.wallTime = WallTime(milliseconds: 1_790_000_000_000 + version)
                error = driver.failure([Delivery(role: .states, event: event)])
                if error == nil { accepted = version }
            }
            #expect(error?.isDisconnected == true)
            driver.close(isFinal: false)
            broker.kill()
            try broker.start()
        }
        try driver.open()
        var last = driver.event(.enter)
        last.wallTime = WallTime(milliseconds: 1_790_000_000_000 + version + 1)
        try driver.write([Delivery(role: .states, event: last)])
        let late = try Subscriber(broker, "beacond/gw1/ibeacon/#")
        #expect(late.wait { $0.count == 1 })

        let times = subscriber.messages.compactMap { $0["time"] }
        #expect(times.count >= 10)
        #expect(times == times.sorted())
        let newest = try #require(late.messages.first?["time"])
        #expect(times.allSatisfy { $0 <= newest })
    }
}
