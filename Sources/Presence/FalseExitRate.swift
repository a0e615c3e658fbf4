// SPDX-License-Identifier: Apache-2.0

/// How often a beacon that is always here may be reported as gone, spelled as `1/day`.
public struct FalseExitRate: Sendable, Equatable {
    public let perSecond: Double

    public static let oncePerDay = FalseExitRate(perSecond: 1.0 / 86_400)
    /// What a configuration can ask for: more often and nobody would believe an exit, more rarely and nothing that can be
    /// measured in a year would show it.
    public static let range = 1.0 / 2_592_000...10.0 / 3600

    /// - Parameter perSecond: more than 0.
    public init(perSecond: Double) { self.perSecond = perSecond }

    /// Reads a number, a slash, and `hour`, `day`, `week` or `month` (30 days); nil for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let units: [String: Double] = ["hour": 3600, "day": 86_400, "week": 604_800, "month": 2_592_000]
        guard parts.count == 2, let count = Double(parts[0]), count.isFinite, count > 0,
            let unit = units[String(parts[1])]
        else { return nil }
        perSecond = count / unit
    }
}
