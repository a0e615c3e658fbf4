// SPDX-License-Identifier: Apache-2.0

/// Randomness that a seed repeats (SplitMix64), for tests that print their seed.
public struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    /// Another seed in each run, printed with the name of the test so that a failure can be repeated.
    public init(_ test: String, seed: UInt64 = UInt64.random(in: .min ... .max)) {
        print("\(test): seed \(seed)")
        state = seed
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// A number from 0 to less than `bound`.
    public mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
