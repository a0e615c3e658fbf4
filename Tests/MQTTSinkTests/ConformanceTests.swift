// SPDX-License-Identifier: Apache-2.0

import Configuration
import SinkKit
import SinkTestKit
import TestSupport
import Testing

@testable import MQTTSink

@Suite struct ConformanceTests {
    @Test(arguments: ["5", "3.1.1"])
    func `the sink keeps the contract of all sinks`(version: String) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker)
        let values = Values(given: [
            "host": .text("127.0.0.1"), "port": .integer(Int64(broker.port)), "protocol": .text(version),
        ])
        let violations = SinkConformance.verify(SinkRegistration(MQTTSink.self), configuration: values) {
            // What the broker has is on its way to the subscriber; it is all there when nothing more comes.
            var count = -1
            while count != subscriber.messages.count {
                count = subscriber.messages.count
                subscriber.wait(seconds: 0.3) { $0.count > count }
            }
            return subscriber.messages.map(\.payload)
        }
        #expect(violations.isEmpty)
    }
}
