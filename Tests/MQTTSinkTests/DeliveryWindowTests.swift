// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Testing

@testable import MQTTSink

@Suite struct DeliveryWindowTests {
    private func time(_ seconds: Int64) -> MonotonicTime { .zero + .seconds(seconds) }

    @Test func `only answered deliveries from the front are accepted`() {
        var window = DeliveryWindow(capacity: 3)
        window.begin()
        window.send(10, at: time(1))
        window.handOver()
        window.send(12, at: time(1))
        window.send(13, at: time(1))
        #expect(window.isFull)
        #expect(window.accepted == 0)

        window.answer(12, refusal: nil, at: time(2))
        #expect(window.accepted == 0, "an answer out of turn does not cover the one before it")
        window.answer(11, refusal: nil, at: time(2))
        window.answer(10, refusal: nil, at: time(3))
        #expect(window.accepted == 3)
        window.answer(13, refusal: nil, at: time(4))
        #expect(window.accepted == 4)
        #expect(window.isSettled)
    }

    @Test func `the first refusal in order counts, whenever it comes`() {
        var window = DeliveryWindow(capacity: 4)
        window.begin()
        for message in Int32(1)...3 { window.send(message, at: time(0)) }
        window.refuseNext("too long")
        #expect(window.refusal?.index == 3)
        window.answer(2, refusal: "no", at: time(1))
        #expect(window.refusal?.index == 1)
        window.answer(3, refusal: "no", at: time(1))
        #expect(window.refusal?.index == 1)
        #expect(window.accepted == 0)
        window.answer(1, refusal: nil, at: time(1))
        #expect(window.accepted == 1)
    }

    @Test func `progress is an answer, or the first one that becomes owed`() {
        var window = DeliveryWindow(capacity: 4)
        window.begin()
        window.send(1, at: time(5))
        window.send(2, at: time(6))
        #expect(window.lastProgress == time(5))
        window.answer(1, refusal: nil, at: time(9))
        #expect(window.lastProgress == time(9))
        window.answer(77, refusal: nil, at: time(10))
        #expect(window.lastProgress == time(9), "somebody else's answer")
        window.answer(2, refusal: nil, at: time(11))
        window.send(3, at: time(60))
        #expect(window.lastProgress == time(60))
    }

    @Test func `a new batch owes nothing to the one before`() {
        var window = DeliveryWindow(capacity: 2)
        window.begin()
        window.send(1, at: time(0))
        window.refuseNext("no")
        window.begin()
        #expect(window.isSettled)
        #expect(window.refusal == nil)
        #expect(window.accepted == 0)
        window.send(2, at: time(0))
        window.answer(1, refusal: nil, at: time(0))
        #expect(!window.isSettled)
    }
}
