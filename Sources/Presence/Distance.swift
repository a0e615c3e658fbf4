// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// From strength to distance.
enum Distance {
    /// Estimates reach no further than this, in metres: beyond it a number says no more than "far".
    static let limit: Float = 1000

    /// The distance in metres at which a beacon is heard so strong, by the log-distance path-loss model: the strength
    /// falls by ten times the exponent, in dB, with every tenfold distance.
    static func metres(strength: Float, measuredPower: Int8, pathLossExponent: Double) -> Float {
        let loss = Double(measuredPower) - Double(strength)
        return min(Float(powerOfTen(loss / (10 * pathLossExponent))), limit)
    }

    /// How far such a distance is off when the strength is by so many dB, in metres: what the path-loss model says to the
    /// first order, ln 10 / 10 of the distance for each dB over the exponent.
    static func uncertainty(metres: Float, deviation: Float, pathLossExponent: Double) -> Float {
        metres * deviation * Float(0.230_258_5 / pathLossExponent)
    }

    /// Half a metre and three metres are what phone libraries use; Apple names no numbers.
    static func proximity(metres: Float) -> Proximity {
        metres < 0 ? .unknown : metres <= 0.5 ? .immediate : metres <= 3 ? .near : .far
    }

    /// The proximity when it was another one before: a limit must be passed by a quarter, 2 dB in the open, so that a
    /// beacon at it does not go to and fro.
    static func proximity(metres: Float, after before: Proximity) -> Proximity {
        let here = proximity(metres: metres)
        guard before != .unknown, here != .unknown else { return here }
        let slack: Float = here.rawValue < before.rawValue ? 1.25 : 0.8
        return proximity(metres: metres * slack) == before ? before : here
    }

    /// 10 to the power of `exponent`, for -100 to 100, to within a few units in the last place. The standard library
    /// has no such function, and the C library's differ between machines.
    static func powerOfTen(_ exponent: Double) -> Double {
        let binary = exponent * 3.321_928_094_887_362_3  // log2 10
        let whole = binary.rounded()
        let rest = (binary - whole) * 0.693_147_180_559_945_3  // ln 2
        // |rest| is at most 0.35, so the series of e^rest has converged to double precision after 14 terms.
        let terms = terms
        var sum = terms[0]
        for index in 1..<terms.count { sum = sum * rest + terms[index] }
        return sum * Double(sign: .plus, exponent: Int(whole), significand: 1)
    }

    /// The terms of the series, 1/14! to 1/0!.
    private static let terms = [15 of Double] { index in
        var factorial = 1.0
        for factor in 1...14 where factor <= 14 - index { factorial *= Double(factor) }
        return 1 / factorial
    }
}
