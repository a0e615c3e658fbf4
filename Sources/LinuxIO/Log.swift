// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Glibc
import Synchronization

/// The log: lines on stderr, with the priority in front that journald reads (`<6>`) when nobody watches at a terminal.
///
/// An identical line appears at most once in 10 s; the next one says how many were left out.
public final class Log: Sendable {
    private struct State {
        var level: LogLevel
        /// When a line was last written, and how often it was left out since.
        var recent: [String: (time: MonotonicTime, suppressed: Int)] = [:]
    }

    /// Quiet time of an identical line: a fault that repeats at the rate of packets must not fill a disk, and a person
    /// who watches should still see it go on.
    private static let quietTime = TimeInterval.seconds(10)
    /// Lines remembered for suppression; past it the oldest are forgotten.
    private static let capacity = 256

    private let state: Mutex<State>
    private let isTerminal = isatty(STDERR_FILENO) == 1

    public init(level: LogLevel) {
        state = Mutex(State(level: level))
    }

    public var level: LogLevel {
        get { state.withLock { $0.level } }
        set { state.withLock { $0.level = newValue } }
    }

    /// Writes a line unless its level is below the one that is wanted or it was written just now.
    public func callAsFunction(_ level: LogLevel, _ line: String) {
        let now = Clock.now
        let suppressed: Int? = state.withLock { state in
            guard level <= state.level else { return nil }
            if let last = state.recent[line], now - last.time < Self.quietTime {
                state.recent[line]?.suppressed += 1
                return nil
            }
            let suppressed = state.recent[line]?.suppressed ?? 0
            if state.recent.count >= Self.capacity {
                state.recent = state.recent.filter { now - $0.value.time < Self.quietTime }
                if state.recent.count >= Self.capacity { state.recent.removeAll() }
            }
            state.recent[line] = (now, 0)
            return suppressed
        }
        guard let suppressed else { return }
        let repeated = suppressed > 0 ? " (\(suppressed) more like it)" : ""
        let prefix = isTerminal ? (level <= .warning ? "\(level.word): " : "") : "<\(level.rawValue)>"
        Self.write("\(prefix)\(line)\(repeated)\n")
    }

    /// One write(2), so that lines of several threads do not mix.
    private static func write(_ text: String) {
        let bytes = Array(text.utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
