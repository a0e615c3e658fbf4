// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit
import SinkRuntime
import Store
import Synchronization
import Testing

@Suite struct OutboxTests {
    @Test func aDurableSinkReadsTheOutboxFromItsCursor() throws {
        let outbox = FakeOutbox()
        for minor in 1...300 { outbox.append(Samples.event(.enter, minor)) }
        outbox.acknowledge(sink: "durable", through: 100)
        let script = Script("durable")
        let worker = try SinkWorker.scripted(BrokerTraits.self, script, source: outbox)
        try worker.start()
        #expect(eventually { outbox.cursor(of: "durable") == 300 })
        outbox.append(Samples.event(.exit, 301))
        // What is offered is not delivered a second time.
        worker.offer(Samples.event(.exit, 301))
        #expect(eventually { outbox.cursor(of: "durable") == 301 })
        #expect(worker.stopAndJoin())
        let written = script.written.filter { $0.role == .transitions }
        #expect(written.map(\.sequence) == Array(101...301))
        #expect(written.map(\.isReplayed) == Array(repeating: true, count: 200) + [false])
        let counts = worker.counters.transitions
        #expect(counts.offered == 201)
        #expect(counts.written == 201)
        #expect(counts.isBalanced)
    }

    @Test func anOutageLosesNothingAndKeepsTheOrder() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        let random = Mutex(SeededRandom(seed: seed))
        let script = Script(
            "outage",
            onOpen: { _ in
                random.withLock { Bool.random(using: &$0) } ? SinkError(.retry(accepted: 0), "open", "down") : nil
            },
            onWrite: { deliveries in
                random.withLock { random in
                    let accepted = Int.random(in: 0...deliveries.count, using: &random)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: return SinkError(.disconnected(accepted: accepted), "write", "reset")
                    case 1: return SinkError(.retry(accepted: accepted), "write", "busy")
                    default: return nil
                    }
                }
            })
        let outbox = FakeOutbox()
        let worker = try SinkWorker.scripted(BrokerTraits.self, script, source: outbox, seed: seed)
        try worker.start()
        for number in 1...2000 {
            outbox.append(Samples.event(number % 2 == 0 ? .exit : .enter, number % 100, time: Int64(number)))
            if number % 50 == 0 { #expect(worker.counters.transitions.isBalanced) }
        }
        #expect(eventually { outbox.cursor(of: "outage") == 2000 })
        #expect(worker.stopAndJoin())
        #expect(script.written.filter { $0.role == .transitions }.map(\.sequence) == Array(1...2000))
        let counts = worker.counters.transitions
        #expect(counts.isBalanced)
        #expect(counts.offered == 2000)
        #expect(counts.written == 2000)
    }

    @Test func whatIsWrittenAgainSaysSo() throws {
        let attempts = Atomic(0)
        let script = Script(
            "again",
            onWrite: { _ in
                attempts.add(1, ordering: .relaxed).newValue == 1
                    ? SinkError(.retry(accepted: 1), "write", "busy") : nil
            })
        let outbox = FakeOutbox()
        let worker = try SinkWorker.scripted(BrokerTraits.self, script, source: outbox)
        try worker.start()
        #expect(eventually { worker.counters.state == .open })
        for minor in 1...3 { outbox.append(Samples.event(.enter, minor)) }
        #expect(eventually { outbox.cursor(of: "again") == 3 })
        #expect(worker.stopAndJoin())
        // The first write had one, two or all three of them, and its first was accepted.
        let written = script.written
        #expect(written.map(\.sequence) == [1, 2, 3])
        #expect(written.first?.isReplayed == false)
        #expect(worker.counters.transitions.isBalanced)
    }

    @Test func whatTheStoreLostIsCountedAndTheRestGoesOn() throws {
        let outbox = FakeOutbox()
        for minor in 1...5 { outbox.append(Samples.event(.enter, minor)) }
        outbox.lose(3)
        let script = Script("damaged")
        let worker = try SinkWorker.scripted(BrokerTraits.self, script, source: outbox)
        try worker.start()
        #expect(eventually { outbox.cursor(of: "damaged") == 5 })
        #expect(worker.stopAndJoin())
        #expect(script.written.map(\.sequence) == [1, 2, 4, 5])
        #expect(worker.counters.transitions.dropped == 1)
        #expect(worker.counters.transitions.isBalanced)
    }

    @Test("a stream that follows another: each batch has one, and numbers begin at 1 again")
    func twoStreams() throws {
        let outbox = FakeOutbox()
        for minor in 1...200 { outbox.append(Samples.event(.enter, minor)) }
        let second = String(repeating: "ab", count: 16)
        outbox.begin(stream: second, boot: "b007")
        for minor in 201...300 { outbox.append(Samples.event(.exit, minor)) }
        let script = Script(
            "two streams",
            onWrite: { deliveries in
                deliveries.contains { $0.sequence == 150 && !$0.isReplayed }
                    ? SinkError(.disconnected(accepted: 3), "write", "reset") : nil
            })
        let worker = try SinkWorker.scripted(BrokerTraits.self, script, source: outbox)
        try worker.start()
        #expect(eventually { outbox.cursor(of: "two streams") == 300 })
        #expect(worker.stopAndJoin())
        let record = script.record
        #expect(record.written.map(\.sequence) == Array(1...200) + Array(1...100))
        #expect(record.streams.prefix(200).allSatisfy { $0 == "00112233445566778899aabbccddeeff" })
        #expect(record.streams.dropFirst(200).allSatisfy { $0 == second })
        #expect(record.written.prefix(200).allSatisfy { $0.boot == .none })
        #expect(record.written.dropFirst(200).allSatisfy { $0.boot != .none })
        #expect(worker.counters.transitions.isBalanced && worker.counters.transitions.written == 300)
    }

    @Test func whatADeadDestinationMissesShowsAsQueued() throws {
        let outbox = FakeOutbox()
        let script = Script("dead", onOpen: { _ in SinkError(.retry(accepted: 0), "open", "down") })
        let worker = try SinkWorker.scripted(BrokerTraits.self, script, source: outbox)
        try worker.start()
        for minor in 1...40 { outbox.append(Samples.event(.enter, minor)) }
        #expect(worker.counters.transitions.queued == 40)
        #expect(worker.stopAndJoin())
        #expect(worker.counters.transitions.queued == 40, "what is in the store stays there when the program ends")
        #expect(worker.counters.transitions.isBalanced)
        #expect(outbox.cursor(of: "dead") == 0)
    }
}
