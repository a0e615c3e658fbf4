// SPDX-License-Identifier: Apache-2.0

/// e to a power and its inverse. The standard library has none, and the C library's differ between machines.
enum Exponential {
    private static let ln2 = 0.693_147_180_559_945_3

    /// To within a few units in the last place, for -700 to 700; beyond, as at these.
    static func exp(_ exponent: Double) -> Double {
        let exponent = min(max(exponent, -700), 700)
        let whole = (exponent / ln2).rounded()
        let rest = exponent - whole * ln2
        // |rest| is at most 0.35, so the series has converged to double precision after 14 terms.
        var term = 1.0
        var sum = 1.0
        for index in 1...14 {
            term *= rest / Double(index)
            sum += term
        }
        return Double(sign: .plus, exponent: Int(whole), significand: sum)
    }

    /// The natural logarithm of a finite number more than 0; of anything else -700.
    static func log(_ number: Double) -> Double {
        guard number > 0, number.isFinite else { return -700 }
        let isLarge = number.significand > 1.414_213_562_373_095
        let mantissa = isLarge ? number.significand / 2 : number.significand
        let exponent = Double(number.exponent) + (isLarge ? 1 : 0)
        // With |ratio| at most 0.172 the series of the inverse hyperbolic tangent has converged after 11 terms.
        let ratio = (mantissa - 1) / (mantissa + 1)
        let square = ratio * ratio
        var power = ratio
        var sum = 0.0
        for index in 0..<11 {
            sum += power / Double(2 * index + 1)
            power *= square
        }
        return 2 * sum + exponent * ln2
    }
}
