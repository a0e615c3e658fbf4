// SPDX-License-Identifier: Apache-2.0

/// The classes into which silences are counted: two to an octave from 125 ms to 512 s, the first and the last open.
enum SilenceBins {
    static let count = 24
    private static let shortest = 0.125

    /// - Parameter seconds: the length of a silence.
    static func index(_ seconds: Double) -> Int {
        let ratio = seconds / shortest
        guard ratio > 1 else { return 0 }
        let octave = Int(ratio.exponent)
        return min(2 * octave + (ratio.significand >= 1.414_213_562_373_095 ? 1 : 0), count - 1)
    }

    /// The lower edges, and that of the silences beyond all.
    static let edges = [25 of Double] { lowerEdge($0) }
    /// What stands for the silences of a bin: the geometric mean of its edges.
    static let centers = [24 of Double] { lowerEdge($0) * 1.189_207_115_002_721 }

    private static func lowerEdge(_ index: Int) -> Double {
        Double(sign: .plus, exponent: index / 2, significand: shortest)
            * (index % 2 == 0 ? 1 : 1.414_213_562_373_095)
    }
}
