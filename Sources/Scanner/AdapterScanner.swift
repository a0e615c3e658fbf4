// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import HCI
import LinuxIO

/// Drives one controller: brings it to scanning and hands out what it sends.
public final class AdapterScanner {
    /// What the owner is told.
    public enum Change: Equatable, Sendable {
        case scanning
        case failed(reason: String)
    }

    /// Time for a controller to answer a command. A healthy one takes some milliseconds; the kernel itself gives up
    /// after 2 s.
    public static let timeLimit = TimeInterval.seconds(2)
    /// Packets that are read at a time, so that a flood cannot keep the loop from its timers.
    private static let packetsPerTurn = 64

    private let socket: AdapterSocket
    private var bringUp: ScanBringUp
    private var buffer = [UInt8](repeating: 0, count: 264)
    /// When the command in flight must have been answered.
    public private(set) var deadline = MonotonicTime.distantFuture

    public init(_ socket: consuming AdapterSocket, parameters: ScanParameters) {
        self.socket = socket
        bringUp = ScanBringUp(parameters)
    }

    public var descriptor: Int32 { socket.descriptor }
    public var isScanning: Bool { bringUp.isScanning }

    public func start(at now: MonotonicTime, _ change: (Change) -> Void) {
        perform(bringUp.start(), at: now, change)
    }

    /// The descriptor can be read.
    public func receive(
        at now: MonotonicTime, packet: (Span<UInt8>) -> Void, _ change: (Change) -> Void
    ) {
        for _ in 0..<Self.packetsPerTurn {
            let count: Int
            do {
                guard let read = try socket.read(into: &buffer) else { return }
                count = read
            } catch {
                return fail("\(error); the adapter is gone or down", change)
            }
            guard count > 0 else { return fail("the controller closed the connection", change) }
            let octets = buffer.span.extracting(0..<count)
            if let event = ControllerEvent(octets) {
                perform(bringUp.received(event), at: now, change)
            } else {
                packet(octets)
            }
        }
    }

    /// ``deadline`` has passed.
    public func timerFired(at now: MonotonicTime, _ change: (Change) -> Void) {
        guard deadline <= now else { return }
        perform(bringUp.timedOut(), at: now, change)
    }

    /// Turns the scan off, if it was this scanner that turned it on.
    public func stop() {
        guard bringUp.isScanning else { return }
        // Nobody is left to hear of a failure, and the adapter may be gone already.
        try? socket.send(bringUp.disable.packet)
    }

    private func perform(_ action: ScanBringUp.Action, at now: MonotonicTime, _ change: (Change) -> Void) {
        switch action {
        case .send(let command):
            deadline = now + Self.timeLimit
            do { try socket.send(command.packet) } catch { fail("\(error); is the adapter up?", change) }
        case .scanning:
            deadline = .distantFuture
            change(.scanning)
        case .failed(let reason): fail(reason, change)
        case .none: break
        }
    }

    private func fail(_ reason: String, _ change: (Change) -> Void) {
        deadline = .distantFuture
        change(.failed(reason: reason))
    }
}
