// SPDX-License-Identifier: Apache-2.0

/// The silences of all beacons together, for those that are too new to have had their own.
///
/// They are kept apart by the advertising interval, an octave each: within one, the silences of two beacons are alike
/// whether they are lost packets, whose length goes with the interval, or shadows and pauses, whose length does not.
struct SilencePool: Sendable {
    private static let classCount = 9
    /// In an array, because the engine that holds the pool is copied now and then to be looked at.
    private var counts = [[24 of UInt32]](repeating: [24 of UInt32](repeating: 0), count: classCount)
    private var totals = [9 of UInt32](repeating: 0)
    /// By how much exit times are longer than the model says, as a natural logarithm: raised by every false exit and
    /// lowered by every second without one, so that in the long run there are as many as were allowed.
    private(set) var margin = 0.0

    /// Returns after an exit within ``soon`` and, ten times as long, after it: whether short absences are common here.
    private var returns = (soon: 2.0, later: 0.0)
    private static let soon = 60.0
    /// As many returns are remembered.
    private static let returnCapacity = 64.0

    /// The pool forgets half when it has this many: some hours of a crowd.
    private static let capacity: UInt32 = 1 << 20
    /// That of a single beacon is larger.
    private static let longestStep = 0.1
    private static let margins = 0...2.0

    /// Octaves of the shortest silence from 100 ms; those below and beyond belong to the first and the last.
    static func index(_ usualSilence: Double) -> Int {
        let ratio = usualSilence / 0.1
        return ratio >= 1 ? min(Int(ratio.exponent), classCount - 1) : 0
    }

    subscript(index: Int) -> [24 of UInt32] { counts[index] }

    func total(_ index: Int) -> UInt32 { totals[index] }

    /// - Parameter count: at most some thousands.
    mutating func add(_ bin: Int, count: UInt32 = 1, to index: Int) {
        counts[index][bin] += count
        totals[index] += count
        guard totals[index] >= Self.capacity else { return }
        totals[index] = 0
        for bin in 0..<SilenceBins.count {
            counts[index][bin] /= 2
            totals[index] += counts[index][bin]
        }
    }

    /// A beacon came back after it had left; says whether its exit was false.
    ///
    /// A silence of half a minute may be a body in front of the beacon or a walk around the corner, and nothing in the
    /// signal tells which. Where most of those who come back within ten minutes were away for more than one, the others
    /// were away too; elsewhere whoever comes back within a minute had not left.
    mutating func comesBack(after silence: Double, exitTime: Double) -> Bool {
        let soon = max(Self.soon, 2 * exitTime)
        guard silence < 10 * soon else { return false }
        if silence < soon { returns.soon += 1 } else { returns.later += 1 }
        if returns.soon + returns.later > Self.returnCapacity {
            returns.soon /= 2
            returns.later /= 2
        }
        return silence < 2 * exitTime || silence < soon && returns.soon * 2 >= returns.later
    }

    /// - Parameter rate: false exits a second that are allowed.
    mutating func falseExit(at rate: Double) { margin = min(margin + Self.step(rate), Self.margins.upperBound) }

    /// - Parameters:
    ///   - expected: false exits that were allowed meanwhile.
    ///   - rate: of them, a second.
    mutating func noFalseExit(expected: Double, at rate: Double) {
        margin = max(margin - Self.step(rate) * expected, Self.margins.lowerBound)
    }

    /// What one false exit raises the margin by. Where more than one an hour is allowed, those of an hour do together.
    private static func step(_ rate: Double) -> Double { longestStep / max(rate * 3600, 1) }
}
