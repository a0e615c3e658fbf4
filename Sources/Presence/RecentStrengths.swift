// SPDX-License-Identifier: Apache-2.0

/// The last few strengths, of which the filtered one is made.
struct RecentStrengths: Sendable {
    static let capacity = 16

    private var strengths = [16 of Int8](repeating: 0)
    private var count: UInt8 = 0
    private var next: UInt8 = 0
    private var sum: Int16 = 0

    /// - Parameters:
    ///   - strength: dBm.
    ///   - length: how many strengths count, 1 to 16, the same for the life of the filter.
    mutating func add(_ strength: Int8, over length: Int) {
        if count == length { sum -= Int16(strengths[Int(next)]) } else { count += 1 }
        strengths[Int(next)] = strength
        sum += Int16(strength)
        next = Int(next) + 1 == length ? 0 : next + 1
    }

    /// One standard deviation of the mean, in dB; nil before the second strength.
    var deviationOfMean: Float? {
        guard count > 1 else { return nil }
        let mean = Float(sum) / Float(count)
        var squares: Float = 0
        for index in 0..<Int(count) {
            let distance = Float(strengths[index]) - mean
            squares += distance * distance
        }
        return (squares / Float(Int(count) * (Int(count) - 1))).squareRoot()
    }

    /// dBm; nil before the first strength.
    func filtered(_ filter: SignalFilter) -> Float? {
        guard count > 0 else { return nil }
        switch filter {
        case .mean: return Float(sum) / Float(count)
        case .maximum:
            var strongest = strengths[0]
            for index in 0..<Int(count) { strongest = max(strongest, strengths[index]) }
            return Float(strongest)
        }
    }
}
