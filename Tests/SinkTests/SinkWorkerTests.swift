// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Dispatch
import Glibc
import LinuxIO
import SinkKit
import SinkRuntime
import Synchronization
import Testing

@Suite struct SinkWorkerTests {
    /// Reads and checks the account while others change it.
    private func expectBalanced(_ worker: SinkWorker) {
        let counters = worker.counters
        #expect(counters.states.isBalanced, "\(counters)")
        #expect(counters.transitions.isBalanced, "\(counters)")
        #expect(counters.sightings.isBalanced, "\(counters)")
    }

    @Test func aFailingSinkLosesNothingThatItDoesNotRefuse() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        let random = Mutex(SeededRandom(seed: seed))
        let script = Script(
            "failing",
            onOpen: { _ in
                random.withLock { Int.random(in: 0..<4, using: &$0) } == 0
                    ? SinkError(.retry(accepted: 7), "open", "not now") : nil
            },
            onWrite: { deliveries in
                random.withLock { random in
                    let accepted = Int.random(in: 0...deliveries.count, using: &random)
                    switch Int.random(in: 0..<8, using: &random) {
                    case 0: return SinkError(.retry(accepted: accepted), "write", "busy")
                    case 1: return SinkError(.disconnected(accepted: accepted), "write", "gone")
                    case 2 where accepted < deliveries.count:
                        return SinkError(.reject(accepted: accepted), "write", "too large")
                    default: return nil
                    }
                }
            })
        let worker = try SinkWorker.scripted(StatefulTraits.self, script, capacity: 20_000, seed: seed)
        try worker.start()
        let total = 6000
        for number in 1...total {
            worker.offer(Samples.event(number % 2 == 0 ? .enter : .exit, number % 50, time: Int64(number)))
            worker.offer(Samples.event(.sighting, number % 200, time: Int64(number)))
            if number % 100 == 0 {
                expectBalanced(worker)
                usleep(1000)
            }
        }
        #expect(eventually { worker.counters.transitions.queued + worker.counters.transitions.inFlight == 0 })
        #expect(worker.stopAndJoin())
        let counters = worker.counters
        expectBalanced(worker)
        let record = script.record
        func count(_ deliveries: [Delivery], _ role: DeliveryRoles) -> UInt64 {
            UInt64(deliveries.filter { $0.role == role }.count)
        }
        #expect(counters.transitions.offered == UInt64(total))
        #expect(counters.transitions.dropped == 0)
        #expect(counters.transitions.written == count(record.written, .transitions))
        #expect(counters.transitions.rejected == count(record.rejected, .transitions))
        #expect(counters.sightings.written == count(record.written, .sightings))
        #expect(counters.sightings.rejected == count(record.rejected, .sightings))
        #expect(counters.states.written == count(record.written, .states))
        #expect(counters.transitions.written + counters.transitions.rejected == UInt64(total))
        #expect(counters.total.inFlight == 0)
        // In order, and each one once: what was accepted is never written again.
        let times = record.written.filter { $0.role == .transitions }.map(\.event.time)
        #expect(times == times.sorted())
        #expect(Set(times).count == times.count)
    }

    @Test func manyThreadsMayLookWhileOneOffers() throws {
        let script = Script(
            "busy",
            onWrite: { _ in
                usleep(500)
                return nil
            })
        let worker = try SinkWorker.scripted(LiveTraits.self, script, capacity: 64)
        try worker.start()
        let isDone = Atomic(false)
        let looks = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 3) { role in
            if role == 0 {
                for number in 0..<30_000 {
                    worker.offer(Samples.event(number % 5 == 0 ? .enter : .sighting, number % 300, time: Int64(number)))
                }
                isDone.store(true, ordering: .sequentiallyConsistent)
            } else {
                repeat {
                    #expect(worker.counters.total.isBalanced)
                    looks.wrappingAdd(1, ordering: .relaxed)
                } while !isDone.load(ordering: .sequentiallyConsistent)
            }
        }
        #expect(worker.stopAndJoin())
        let total = worker.counters.total
        #expect(total.isBalanced)
        #expect(total.offered == 30_000)
        #expect(total.written == UInt64(script.written.count))
        #expect(total.queued == 0 && total.inFlight == 0)
        #expect(looks.load(ordering: .relaxed) > 1)
    }

    @Test func statesComeFirstAfterEveryOpen() throws {
        let isCut = Atomic(false)
        let script = Script(
            "states",
            onWrite: { deliveries in
                // The second connection's first batch is cut short, the third one stands.
                guard deliveries.contains(where: { $0.event.time.nanoseconds == 100 }),
                    !isCut.exchange(true, ordering: .sequentiallyConsistent)
                else { return nil }
                return SinkError(.disconnected(accepted: 0), "write", "reset")
            })
        let worker = try SinkWorker.scripted(StatefulTraits.self, script)
        worker.offer(Samples.event(.enter, 1, time: 1))
        worker.offer(Samples.event(.enter, 2, time: 2))
        worker.offer(Samples.region(.regionEnter, "hall", time: 3))
        try worker.start()
        #expect(eventually { script.written.count == 6 })
        worker.offer(Samples.event(.exit, 2, time: 100))
        #expect(eventually { script.written.count == 6 + 3 + 1 })
        #expect(worker.stopAndJoin())
        let second = script.written.dropFirst(6)
        #expect(second.map(\.role) == [.states, .states, .states, .transitions])
        #expect(second.prefix(3).map(\.event.kind) == [.enter, .exit, .regionEnter])
        #expect(second.last?.isReplayed == true)
        #expect(script.record.calls.filter { $0 == "open" }.count == 2)
        expectBalanced(worker)
    }

    @Test func aSinkThatIsNotShownStrangersDoesNotGetThem() throws {
        let script = Script("strangers")
        let worker = try SinkWorker.scripted(BrokerTraits.self, script)
        for kind in [Event.Kind.sighting, .enter, .exit] {
            worker.offer(Samples.event(kind, 1, isConfigured: false))
        }
        #expect(worker.counters.total.offered == 0)
        worker.offer(Samples.event(.sighting, 2))
        worker.offer(Samples.event(.enter, 2))
        worker.offer(Samples.region(.regionEnter, "hall"))
        try worker.start()
        // A durable kind without a store gets its transitions from memory.
        #expect(eventually { script.written.count == 5 })
        #expect(worker.stopAndJoin())
        #expect(script.written.allSatisfy { $0.sequence == 0 })
        #expect(script.written.filter { $0.role == .states }.count == 2)
    }

    @Test func aHangingSinkDoesNotHoldTheLoop() throws {
        let isReleased = Atomic(false)
        let script = Script(
            "hanging",
            onWrite: { _ in
                while !isReleased.load(ordering: .relaxed) { usleep(1000) }
                return nil
            })
        let worker = try SinkWorker.scripted(LiveTraits.self, script, capacity: 256)
        try worker.start()
        worker.offer(Samples.event(.enter, 1))
        #expect(eventually { worker.counters.total.inFlight == 1 })
        let started = Clock.now
        for number in 0..<100_000 { worker.offer(Samples.event(.sighting, number % 1000, time: Int64(number))) }
        for number in 0..<1000 { worker.offer(Samples.event(.exit, number, time: Int64(number))) }
        // A blocked offer would never come back; the bound only says so.
        #expect(Clock.now - started < .seconds(20))
        let counters = worker.counters
        #expect(counters.total.queued == 256)
        #expect(counters.transitions.queued == 256)
        #expect(counters.total.isBalanced)
        #expect(worker.isBehind)

        let deadline = Clock.now + .milliseconds(200)
        worker.stop(deadline: deadline)
        #expect(!worker.join())
        #expect(Clock.now < deadline + SinkWorker.closingTime + .seconds(5))
        isReleased.store(true, ordering: .relaxed)
        #expect(eventually { worker.counters.state == .finished })
        #expect(worker.counters.total.isBalanced)
        #expect(script.record.calls.last == "close finally")
    }

    @Test func stoppingWritesWhatWaits() throws {
        let script = Script("draining")
        let worker = try SinkWorker.scripted(StatefulTraits.self, script)
        try worker.start()
        for minor in 1...300 { worker.offer(Samples.event(.sighting, minor)) }
        worker.offer(Samples.event(.enter, 1))
        #expect(worker.stopAndJoin())
        #expect(script.written.count == 302)
        #expect(script.record.calls.filter { $0.hasPrefix("close") } == ["close finally"])
        #expect(worker.counters.state == .finished)
        worker.offer(Samples.event(.enter, 2))
        #expect(worker.counters.total.dropped == 2)
        expectBalanced(worker)
    }

    @Test func stoppingDoesNotWaitForADestinationThatFails() throws {
        let lines = Mutex<[String]>([])
        let script = Script("unreachable", onOpen: { _ in SinkError(.retry(accepted: 0), "connect", "refused") })
        let worker = try SinkWorker.scripted(
            LiveTraits.self, script, log: { _, line in lines.withLock { $0.append(line) } })
        try worker.start()
        worker.offer(Samples.event(.enter, 1))
        #expect(eventually { script.record.calls.filter { $0 == "open failed" }.count > 3 })
        #expect(worker.counters.state == .waiting)
        #expect(worker.counters.lastError == "connect: refused")
        let started = Clock.now
        #expect(worker.stopAndJoin(within: .seconds(60)))
        #expect(Clock.now - started < .seconds(30))
        #expect(worker.counters.transitions.dropped == 1)
        #expect(lines.withLock { $0.last } == "stopped before 1 events could be delivered")
        #expect(script.record.calls.last == "close finally")
    }

    @Test func aSinkMayAskForAShorterWait() throws {
        let script = Script(
            "eager",
            onOpen: { attempt in
                attempt < 3
                    ? SinkError(.disconnected(accepted: 0), "open", "not yet", longestWait: .milliseconds(5)) : nil
            })
        let worker = try SinkWorker(
            registration: SinkRegistration(ScriptedSink<StatefulTraits>.self), configuration: Values(),
            context: Samples.context(script.name), backoff: Backoff(base: .seconds(300), limit: .seconds(600), seed: 1))
        try worker.start()
        #expect(eventually { worker.counters.state == .open })
        #expect(worker.stopAndJoin())
    }

    @Test func aReaderThatIsGoneEndsTheWorker() throws {
        let finished = Atomic(0)
        let script = Script("pipe", onWrite: { _ in SinkError(.finished, "write", "broken pipe") })
        let worker = try SinkWorker.scripted(
            LiveTraits.self, script, onFinished: { finished.wrappingAdd(1, ordering: .relaxed) })
        try worker.start()
        worker.offer(Samples.event(.enter, 1))
        #expect(eventually { finished.load(ordering: .relaxed) == 1 })
        #expect(worker.join())
        #expect(worker.counters.state == .finished)
        #expect(worker.counters.total.dropped == 1)
        expectBalanced(worker)
    }

    @Test func aSinkThatCannotBeMadeHasFailed() throws {
        let worker = try SinkWorker(
            registration: SinkRegistration(ScriptedSink<LiveTraits>.self), configuration: .init(),
            context: Samples.context("nobody wrote this script"))
        try worker.start()
        worker.offer(Samples.event(.enter, 1))
        #expect(eventually { worker.counters.state == .failed(reason: "make: no script of that name") })
        #expect(worker.join())
        expectBalanced(worker)
    }

    @Test func oneRefusedEventCostsOnlyItself() throws {
        let script = Script(
            "refusing",
            onWrite: { deliveries in
                deliveries.firstIndex { Samples.minor($0.event) == 2 }.map {
                    SinkError(.reject(accepted: $0), "write", "not allowed")
                }
            })
        let worker = try SinkWorker.scripted(LiveTraits.self, script)
        for minor in 1...4 { worker.offer(Samples.event(.enter, minor)) }
        try worker.start()
        #expect(worker.stopAndJoin())
        #expect(script.written.map { Samples.minor($0.event) } == [1, 3, 4])
        #expect(worker.counters.transitions.rejected == 1)
        expectBalanced(worker)
    }

    @Test func aRequestToReopenReachesTheSink() throws {
        let script = Script("rotating")
        let worker = try SinkWorker.scripted(LiveTraits.self, script)
        try worker.start()
        #expect(eventually { worker.counters.state == .open })
        worker.reopen()
        #expect(eventually { script.record.calls == ["open", "reopen"] })
        #expect(worker.stopAndJoin())
    }

    @Test func aConnectionThatDiesWhileIdleIsMadeAgain() throws {
        let hasDied = Atomic(false)
        let script = Script(
            "idle",
            onIdle: {
                hasDied.exchange(true, ordering: .relaxed)
                    ? nil : SinkError(.disconnected(accepted: 3), "ping", "no answer")
            })
        let worker = try SinkWorker.scripted(BrokerTraits.self, script)
        try worker.start()
        #expect(eventually { worker.counters.connections == 2 })
        worker.offer(Samples.event(.sighting, 1))
        #expect(eventually { script.written.count == 1 })
        #expect(worker.stopAndJoin())
        #expect(script.record.calls.prefix(3) == ["open", "close", "open"])
    }
}
