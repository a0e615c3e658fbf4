// SPDX-License-Identifier: Apache-2.0

/// How long the silences of a present beacon are: those it had, filled up with those of beacons like it, and beyond them
/// a tail.
///
/// The tail is a generalised Pareto distribution, fitted by its first two moments above the longest bin edge that enough
/// silences were longer than, with its shape drawn towards ``usualShape`` while they are few: an exponential would
/// promise far too much.
struct SilenceModel {
    /// Silences of the pool that count beside the beacon's own.
    private static let poolWeight = 100.0
    /// Invented silences in front of the first ones of the pool.
    private static let inventedWeight = 20.0
    /// A quarter of the invented silences count as if they had been: enough to have a tail at all.
    private static let inventedEvidence = 0.2
    /// The shape that tails are drawn to, between that of the tags of a public recording (0.25 to 0.45) and no tail,
    /// and the silences at which the fitted one counts as much.
    private static let usualShape = 0.35
    private static let shapeWeight = 20.0
    /// Silences above the threshold of the tail.
    private static let tailCount = 20.0
    /// As many silences would have been seen, were they as frequent as the tail says: one in twenty such tails shows none.
    private static let enoughToSee = 3.0

    /// The share of silences that are at least as long as the lower edge of each bin.
    private var survival = [25 of Double](repeating: 0)
    private var threshold = 0
    /// Silences that the tail was fitted to and those below.
    private var evidence = 0.0
    private var scale = 0.0
    private var shape = SilenceModel.usualShape
    /// The mean silence in seconds.
    private(set) var mean = 0.0
    /// Whether the beacon's own silences are most of what the tail was fitted to.
    private(set) var isOwn = false

    init(_ own: [24 of UInt16], pool: [24 of UInt32], poolTotal: UInt32, usualSilence: Double) {
        // Spans, because a look into an inline array copies all of it.
        let inventedShares = Self.invented(usualSilence)
        let (own, pool, invented) = (own.span, pool.span, inventedShares.span)
        let pooled = Self.poolWeight / (Double(poolTotal) + Self.inventedWeight)
        var allWeights = [24 of Double](repeating: 0)
        var allEvidence = [24 of Double](repeating: 0)
        var total = 0.0
        var all = 0.0
        for bin in 0..<SilenceBins.count {
            let weight = Double(own[bin]) + pooled * (Double(pool[bin]) + Self.inventedWeight * invented[bin])
            // The pool holds the beacon's own silences too.
            let evidence =
                max(Double(own[bin]), Double(pool[bin]))
                + Self.inventedEvidence * Self.inventedWeight * invented[bin]
            allWeights[bin] = weight
            allEvidence[bin] = evidence
            total += weight
            all += evidence
        }
        let (weights, evidence) = (allWeights.span, allEvidence.span)
        let tail = Self.sharedTail(of: own, weights, evidence)
        let lengths = SilenceBins.centers
        let centers = lengths.span
        // Most silences are usual ones, and the middle of their bin may be far off.
        let usualBin = SilenceBins.index(usualSilence)
        var rest = 0.0
        var above = 0.0
        let needed = min(Self.tailCount, all / 2)
        for bin in (0..<SilenceBins.count).reversed() {
            let share = (bin < tail.start ? weights[bin] : tail.factor * evidence[bin]) / total
            rest += share
            above += evidence[bin]
            survival[bin] = rest
            mean += share * (bin == usualBin ? usualSilence : centers[bin])
            if threshold == 0, above >= needed { threshold = bin }
        }
        self.evidence = all
        fitTail(evidence, centers)
        var ownAbove = 0.0
        var evidenceAbove = 0.0
        for bin in threshold..<SilenceBins.count {
            ownAbove += Double(own[bin])
            evidenceAbove += evidence[bin]
        }
        isOwn = ownAbove * 2 >= evidenceAbove
    }

    /// Above the longest edge that enough of the beacon's own silences exceeded, the shape is that of all beacons: a
    /// single long silence of its own says little about how likely it is. From `start` on, the weight of a bin is its
    /// evidence times `factor`.
    private static func sharedTail(
        of own: Span<UInt16>, _ weights: Span<Double>, _ evidence: Span<Double>
    ) -> (start: Int, factor: Double) {
        var count = 0.0
        var weight = 0.0
        var pooled = 0.0
        for bin in (0..<SilenceBins.count).reversed() {
            count += Double(own[bin])
            weight += weights[bin]
            pooled += evidence[bin]
            if count >= tailCount { return (bin, weight / pooled) }
        }
        return (SilenceBins.count, 0)
    }

    /// What is believed of a beacon before any was heard: nine of ten silences are the usual one, and the others fall
    /// off with the power of 2.4.
    private static func invented(_ usualSilence: Double) -> [24 of Double] {
        var result = [24 of Double](repeating: 0)
        result[SilenceBins.index(usualSilence)] = 0.9
        var share = 0.055
        var total = 0.9
        let first = SilenceBins.index(1.5 * usualSilence)
        for bin in first..<min(first + 8, SilenceBins.count) {
            result[bin] += share
            total += share
            share *= 0.435
        }
        for bin in 0..<SilenceBins.count { result[bin] /= total }
        return result
    }

    private mutating func fitTail(_ evidence: Span<Double>, _ centers: Span<Double>) {
        let edge = SilenceBins.edges[threshold]
        var count = 0.0
        var sum = 0.0
        var squares = 0.0
        for bin in threshold..<SilenceBins.count {
            let excess = centers[bin] - edge
            count += evidence[bin]
            sum += evidence[bin] * excess
            squares += evidence[bin] * excess * excess
        }
        guard count > 0 else { return }
        let mean = sum / count
        let variance = squares / count - mean * mean
        let fitted = variance > 0 ? min(max((1 - mean * mean / variance) / 2, -0.2), 0.9) : 0
        shape = max((count * fitted + Self.shapeWeight * Self.usualShape) / (count + Self.shapeWeight), 0.02)
        scale = mean * (1 - shape)
    }

    /// The length in seconds that a share of all silences exceeds.
    ///
    /// The tail counts only while too few silences were seen to tell. Where they do, and many have about the same length,
    /// hardly fewer are longer than somewhat shorter times and none is longer than somewhat longer ones. A time that is
    /// now one and now the other then is better in both than one between; so the length is at least that at which the
    /// lower convex hull of the shares comes down to the share.
    func quantile(_ share: Double) -> Double {
        if share < survival[threshold], share * evidence < Self.enoughToSee {
            let edge = SilenceBins.edges[threshold]
            return edge + scale / shape * (Exponential.exp(shape * Exponential.log(survival[threshold] / share)) - 1)
        }
        let (left, right) = hullSegment(share)
        let (from, to) = (SilenceBins.edges[left], SilenceBins.edges[right])
        guard right == left + 1, survival[left] > share else { return survival[left] > share ? to : from }
        return from + (to - from) * (survival[left] - share) / (survival[left] - survival[right])
    }

    /// The edges between which the lower convex hull of the shares comes down to a share.
    private func hullSegment(_ share: Double) -> (left: Int, right: Int) {
        var corners = [25 of Int](repeating: 0)
        var hull = corners.mutableSpan
        let (shares, lengths) = (survival, SilenceBins.edges)
        let (survival, edges) = (shares.span, lengths.span)
        var last = -1
        for next in edges.indices {
            while last > 0 {
                let (from, middle) = (hull[last - 1], hull[last])
                let fall = (survival[from] - survival[next]) * (edges[middle] - edges[from])
                guard (survival[from] - survival[middle]) * (edges[next] - edges[from]) <= fall else { break }
                last -= 1
            }
            last += 1
            hull[last] = next
        }
        var place = 1
        while place < last, survival[hull[place]] > share { place += 1 }
        return (hull[place - 1], hull[place])
    }

    /// The share of silences that are longer than so many seconds.
    func share(longerThan seconds: Double) -> Double {
        let edge = SilenceBins.edges[threshold]
        guard seconds > edge else { return seenShare(longerThan: seconds) }
        let stretch = 1 + shape * (seconds - edge) / scale
        let fitted = survival[threshold] * Exponential.exp(-Exponential.log(stretch) / shape)
        let visible = Self.enoughToSee / evidence
        return fitted > visible ? min(fitted, max(seenShare(longerThan: seconds), visible)) : fitted
    }

    private func seenShare(longerThan seconds: Double) -> Double {
        let bin = SilenceBins.index(seconds)
        let upper = survival[bin]
        let lower = max(survival[bin + 1], upper * 1e-3)
        guard upper > lower, seconds > SilenceBins.edges[bin] else { return upper }
        let part = Exponential.log(seconds / SilenceBins.edges[bin]) / 0.346_573_590_279_972_6
        return upper * Exponential.exp(-min(part, 1) * Exponential.log(upper / lower))
    }
}
