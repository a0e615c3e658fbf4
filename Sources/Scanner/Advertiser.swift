// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import HCI
import LinuxIO

/// Drives one controller that acts as a beacon.
public final class Advertiser {
    /// What the owner is told.
    public enum Change: Equatable, Sendable {
        case advertising
        case failed(reason: String)
        /// It is over; `problem` says why the controller may still advertise.
        case stopped(problem: String?)
    }

    /// Time for a controller to answer a command: that of the scanner.
    public static let timeLimit = AdapterScanner.timeLimit

    private let socket: AdapterSocket
    private var bringUp: AdvertisingBringUp
    private var buffer = [UInt8](repeating: 0, count: 264)
    /// When the command in flight must have been answered.
    public private(set) var deadline = MonotonicTime.distantFuture

    public init(_ socket: consuming AdapterSocket, parameters: AdvertisingParameters) {
        self.socket = socket
        bringUp = AdvertisingBringUp(parameters)
    }

    public var descriptor: Int32 { socket.descriptor }
    public var isAdvertising: Bool { bringUp.isAdvertising }
    public var usesExtendedCommands: Bool { bringUp.usesExtendedCommands }

    public func start(at now: MonotonicTime, _ change: (Change) -> Void) {
        perform(bringUp.start(), at: now, change)
    }

    /// The descriptor can be read.
    public func receive(at now: MonotonicTime, _ change: (Change) -> Void) {
        // Reports of a scan that somebody else runs come here too; 64 at a time leave the loop its turn.
        for _ in 0..<64 {
            let count: Int
            do {
                guard let read = try socket.read(into: &buffer) else { return }
                count = read
            } catch {
                deadline = .distantFuture
                return change(.failed(reason: "\(error); the adapter is gone or down"))
            }
            guard count > 0 else {
                deadline = .distantFuture
                return change(.failed(reason: "the controller closed the connection"))
            }
            if let event = ControllerEvent(buffer.span.extracting(0..<count)) {
                perform(bringUp.received(event), at: now, change)
            }
        }
    }

    /// ``deadline`` has passed.
    public func timerFired(at now: MonotonicTime, _ change: (Change) -> Void) {
        guard deadline <= now else { return }
        perform(bringUp.timedOut(), at: now, change)
    }

    /// Makes the controller stop; ``Change/stopped(problem:)`` follows, at once or when the controller has answered.
    public func stop(at now: MonotonicTime, _ change: (Change) -> Void) {
        perform(bringUp.stop(), at: now, change)
    }

    private func perform(_ action: AdvertisingBringUp.Action, at now: MonotonicTime, _ change: (Change) -> Void) {
        switch action {
        case .send(let command):
            deadline = now + Self.timeLimit
            do { try socket.send(command.packet) } catch {
                deadline = .distantFuture
                change(.failed(reason: "\(error); is the adapter up?"))
            }
        case .advertising:
            deadline = .distantFuture
            change(.advertising)
        case .failed(let reason):
            deadline = .distantFuture
            change(.failed(reason: reason))
        case .stopped(let problem):
            deadline = .distantFuture
            change(.stopped(problem: problem))
        case .none: break
        }
    }
}
