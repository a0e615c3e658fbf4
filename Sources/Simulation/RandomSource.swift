// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// SplitMix64 (Steele, Lea, Flood 2014) with the distributions that the world needs.
///
/// Nothing here comes from the C library or from the standard library's distributions: those may round otherwise on
/// another machine or change with a version, and a scenario has to make the same bytes everywhere.
struct RandomSource {
    private var state: UInt64
    private var spare: Double?

    /// A source for one purpose. Different streams of a seed are unrelated, so that one more beacon changes nothing
    /// about the others' times.
    init(seed: UInt64, stream: UInt64) {
        state = Self.mix(Self.mix(seed) &+ stream &* Self.increment)
    }

    /// 64 random bits.
    mutating func next() -> UInt64 {
        state &+= Self.increment
        return Self.mix(state)
    }

    /// At least 0 and less than 1.
    mutating func uniform() -> Double {
        Double(next() >> 11) * 0x1p-53
    }

    /// At least zero and less than `limit`.
    mutating func uniform(below limit: TimeInterval) -> TimeInterval {
        TimeInterval(nanoseconds: Int64(uniform() * Double(limit.nanoseconds)))
    }

    /// Normally distributed with mean 0 and variance 1, by Marsaglia's polar method.
    mutating func normal() -> Double {
        if let value = spare {
            spare = nil
            return value
        }
        while true {
            let x = 2 * uniform() - 1
            let y = 2 * uniform() - 1
            let square = x * x + y * y
            guard square > 0, square < 1 else { continue }
            let factor = (-2 * naturalLogarithm(square) / square).squareRoot()
            spare = y * factor
            return x * factor
        }
    }

    private static let increment: UInt64 = 0x9E37_79B9_7F4A_7C15

    private static func mix(_ bits: UInt64) -> UInt64 {
        var bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }
}

/// The natural logarithm of a positive, normal number, to about 15 digits, from operations that IEEE 754 defines
/// exactly.
func naturalLogarithm(_ x: Double) -> Double {
    var significand = x.significand
    var exponent = Double(x.exponent)
    if significand > 1.414_213_562_373_095_1 {
        significand /= 2
        exponent += 1
    }
    // ln m = 2 artanh((m − 1) / (m + 1)); with m between √½ and √2 the argument is at most 0.172, and the terms from
    // the tenth on are below 10⁻¹⁵.
    let argument = (significand - 1) / (significand + 1)
    let square = argument * argument
    var sum = 0.0
    for divisor in stride(from: 19.0, through: 1.0, by: -2.0) {
        sum = sum * square + 1 / divisor
    }
    return exponent * 0.693_147_180_559_945_31 + 2 * argument * sum
}

/// The logarithm to the base 10 of a positive, normal number.
func commonLogarithm(_ x: Double) -> Double {
    naturalLogarithm(x) * 0.434_294_481_903_251_83
}
