// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Glibc
import HCI
import LinuxIO

/// Asks one controller whether it is well, and listens whether somebody else makes it scan.
public struct AdapterProbe: Equatable, Sendable {
    /// Whether the controller answered a command that changes nothing.
    public var answers = false
    /// Why it could not be asked.
    public var failure: String?
    /// Advertising reports that came although this program did not ask for any.
    public var reportCount = 0

    /// Blocks for at most `patience`, and for `listening` when the controller answers at once.
    ///
    /// - Parameters:
    ///   - listening: a second is enough for a scan that goes on without pause to show.
    ///   - patience: as long as a scanner waits for an answer.
    public init(
        _ socket: borrowing AdapterSocket, listening: TimeInterval = .seconds(1),
        patience: TimeInterval = AdapterScanner.timeLimit
    ) {
        do { try socket.send(Command(.readLocalVersionInformation).packet) } catch {
            failure = "\(error)"
            return
        }
        let beginning = Clock.now
        var buffer = [UInt8](repeating: 0, count: 264)
        while true {
            let elapsed = Clock.now - beginning
            let end = answers ? listening : patience
            guard elapsed < end else { return }
            var descriptor = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
            let left = (end - elapsed).milliseconds + 1
            guard unsafe poll(&descriptor, 1, Int32(clamping: left)) > 0 else { continue }
            do {
                guard let count = try socket.read(into: &buffer) else { continue }
                guard count > 0 else {
                    failure = "the controller closed the connection"
                    return
                }
                take(buffer.span.extracting(0..<count))
            } catch {
                failure = "\(error)"
                return
            }
        }
    }

    private mutating func take(_ packet: Span<UInt8>) {
        if case .commandComplete(.readLocalVersionInformation, _, _) = ControllerEvent(packet) { answers = true }
        guard packet.count > 3, packet[1] == EventCode.leMeta.rawValue else { return }
        let subevent = LESubevent(rawValue: packet[3])
        if subevent == .advertisingReport || subevent == .extendedAdvertisingReport { reportCount += 1 }
    }
}

extension Opcode {
    /// 7.4.1
    static let readLocalVersionInformation = Opcode(rawValue: 0x1001)
}

extension TimeInterval {
    fileprivate static func - (left: Self, right: Self) -> Self {
        TimeInterval(nanoseconds: left.nanoseconds - right.nanoseconds)
    }
}
