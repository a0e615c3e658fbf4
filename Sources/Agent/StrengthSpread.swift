// SPDX-License-Identifier: Apache-2.0

/// Where the strengths of a beacon at one place lie.
public struct StrengthSpread: Sendable {
    public let count: Int
    /// The mean of the middle half, dBm: a quarter of outliers on either side does not move it, and unlike a median of
    /// whole numbers it does not jump by 1 dB.
    public let center: Double
    /// The strengths below which a tenth and nine tenths lie, dBm.
    public let low: Double, high: Double

    /// dB between ``low`` and ``high``.
    public var width: Double { high - low }

    /// A beacon that lies still in sight scatters by 3 to 4 dB about its mean, over its three advertising channels and
    /// from packet to packet; four fifths of a normal distribution of 4 dB are 10 dB wide. What is wider than this moves,
    /// or something moves in between.
    public static let usualWidth = 12.0

    /// nil without strengths.
    ///
    /// - Parameter strengths: dBm, in any order.
    public init?(_ strengths: [Int8]) {
        guard !strengths.isEmpty else { return nil }
        let sorted = strengths.sorted()
        count = sorted.count
        let middle = sorted[sorted.count / 4..<sorted.count - sorted.count / 4]
        center = Double(middle.reduce(0) { $0 + Int($1) }) / Double(middle.count)
        low = Double(sorted[(sorted.count - 1) / 10])
        high = Double(sorted[sorted.count - 1 - (sorted.count - 1) / 10])
    }
}
