// SPDX-License-Identifier: Apache-2.0

/// Why bytes from a controller or a capture could not be used.
public enum MalformedReason: Int, Sendable, CaseIterable {
    /// The packet ends before its header or before the length that the header gives.
    case truncatedPacket
    /// Octets follow behind the length that the header gives; the packet itself is used.
    case trailingOctets
    /// An event holds fewer reports than it says, or a report runs past its end; the reports in front are used.
    case truncatedReport
    /// Octets follow behind the last report of an event; the reports are used.
    case octetsBehindReports
    /// A legacy report with more than 31 octets of data, which no legacy advertisement can carry.
    case oversizedData
    /// The controller said that it lost the rest of an advertisement's data.
    case truncatedData
    /// Fragments that never came to an end, or grew past 1,650 octets.
    case unfinishedData

    /// `lower_snake_case`, as in summaries and metrics.
    public var word: String {
        switch self {
        case .truncatedPacket: "truncated_packet"
        case .trailingOctets: "trailing_octets"
        case .truncatedReport: "truncated_report"
        case .octetsBehindReports: "octets_behind_reports"
        case .oversizedData: "oversized_data"
        case .truncatedData: "truncated_data"
        case .unfinishedData: "unfinished_data"
        }
    }
}

/// How often each reason occurred. Bad bytes are counted, never logged one by one.
public struct MalformedCounts: Sendable {
    private var counts: [7 of UInt64] = .init(repeating: 0)

    public init() {}

    public subscript(reason: MalformedReason) -> UInt64 { counts[reason.rawValue] }

    public var total: UInt64 {
        var total: UInt64 = 0
        for index in counts.indices { total += counts[index] }
        return total
    }

    public mutating func count(_ reason: MalformedReason) { counts[reason.rawValue] += 1 }
}
