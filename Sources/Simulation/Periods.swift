// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// The same moments as periods that are apart from each other and in the order of time.
func merged(_ periods: [Range<MonotonicTime>]) -> [Range<MonotonicTime>] {
    var result: [Range<MonotonicTime>] = []
    for period in periods.filter({ !$0.isEmpty }).sorted(by: { $0.lowerBound < $1.lowerBound }) {
        if let last = result.last, period.lowerBound <= last.upperBound {
            result[result.count - 1] = last.lowerBound..<max(last.upperBound, period.upperBound)
        } else {
            result.append(period)
        }
    }
    return result
}

/// What remains of a period when others are taken out of it, in the order of time.
func subtract(_ holes: [Range<MonotonicTime>], from period: Range<MonotonicTime>) -> [Range<MonotonicTime>] {
    var result: [Range<MonotonicTime>] = []
    var start = period.lowerBound
    for hole in merged(holes) where hole.overlaps(period) {
        if hole.lowerBound > start { result.append(start..<hole.lowerBound) }
        start = hole.upperBound
    }
    if start < period.upperBound { result.append(start..<period.upperBound) }
    return result
}
