// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import LinuxIO
import Scanner
import Testing

@testable import Agent

/// When a source is read at once, and when at intervals.
@Suite struct SourceReaderTests {
    /// A source that says what a test wants.
    private final class ScriptedSource: PacketSource {
        let end: EventDescriptor
        var packetsOfTurn = 1

        init() throws { end = try EventDescriptor() }

        var descriptor: Int32? { end.number }
        var adapters: [Name] { [] }
        var nextDeadline: MonotonicTime { .distantFuture }
        var hasEnded: Bool { false }
        func start(at now: MonotonicTime, _ receiver: any PacketReceiver) {}
        func advance(to now: MonotonicTime, _ receiver: any PacketReceiver) {}
    }

    private static func milliseconds(_ count: Int64) -> MonotonicTime { .zero + .milliseconds(count) }

    private let source: ScriptedSource
    private let loop: EventLoop
    private let reader: SourceReader

    init() throws {
        source = try ScriptedSource()
        loop = try EventLoop()
        reader = SourceReader(source, loop, latency: .milliseconds(20))
        try reader.start {}
    }

    private func wake(at time: Int64) { reader.woken(at: Self.milliseconds(time)) {} }

    @Test func aQuietAirIsReadAtOnce() {
        for time in stride(from: 0, to: 1000, by: 6) as StrideTo<Int64> { wake(at: time) }
        #expect(reader.nextLook == .distantFuture)
    }

    @Test func aBusyAirIsLookedAtInIntervalsForAsLongAsThatPays() {
        wake(at: 0)
        #expect(reader.nextLook == .distantFuture)
        wake(at: 1)
        #expect(reader.nextLook == Self.milliseconds(21))
        source.packetsOfTurn = 20
        reader.looked(at: Self.milliseconds(22))
        #expect(reader.nextLook == Self.milliseconds(42))
        // Something else was due, and little had come since.
        source.packetsOfTurn = 1
        reader.looked(at: Self.milliseconds(30))
        #expect(reader.nextLook == Self.milliseconds(42))
        source.packetsOfTurn = 3
        reader.looked(at: Self.milliseconds(42))
        #expect(reader.nextLook == .distantFuture)
    }

    @Test func nothingWaitsWhileTheControllerIsSpokenTo() {
        source.packetsOfTurn = 0
        for time in 0..<100 as Range<Int64> { wake(at: time) }
        #expect(reader.nextLook == .distantFuture)
    }

    @Test func withoutLatencyNothingWaits() {
        reader.latency = .zero
        for time in 0..<100 as Range<Int64> { wake(at: time) }
        #expect(reader.nextLook == .distantFuture)
    }

    @Test func theLoopDoesNotWaitForADescriptorInTheInterval() throws {
        let source = try ScriptedSource()
        let other = try EventDescriptor()
        let loop = try EventLoop()
        let reader = SourceReader(source, loop, latency: .milliseconds(20))
        var woken = 0
        try reader.start { [loop] in
            woken += 1
            loop.stop()
        }
        reader.woken(at: Self.milliseconds(0)) {}
        reader.woken(at: Self.milliseconds(1)) {}
        source.end.signal()
        let token = try loop.add(other.number) { [loop] in loop.stop() }
        other.signal()
        try loop.run(prepare: { .distantFuture }, timer: {})
        #expect(woken == 0)
        source.packetsOfTurn = 0
        reader.looked(at: Self.milliseconds(21))
        loop.remove(token, descriptor: other.number)
        try loop.run(prepare: { .distantFuture }, timer: {})
        #expect(woken == 1)
    }
}
