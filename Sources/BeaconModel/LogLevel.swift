// SPDX-License-Identifier: Apache-2.0

/// How grave a line of the log is; the raw values are those of syslog (RFC 5424).
public enum LogLevel: UInt8, Sendable, CaseIterable, Comparable {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
    case debug = 7

    /// The graver level is the smaller one, as in syslog.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    public var word: String {
        switch self {
        case .error: "error"
        case .warning: "warning"
        case .notice: "notice"
        case .info: "info"
        case .debug: "debug"
        }
    }
}
