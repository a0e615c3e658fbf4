// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The log-distance model, fitted to strengths at known distances: at `d` metres a beacon is heard with
/// `measuredPower − 10 · exponent · log10(d)` dBm.
public struct PathLossFit: Sendable {
    /// What was measured at one place.
    public struct Point: Sendable {
        /// Metres, above 0.
        public var distance: Double
        /// dBm.
        public var strength: Double

        public init(distance: Double, strength: Double) {
            self.distance = distance
            self.strength = strength
        }
    }

    public enum Failure: Error, Equatable, Sendable {
        case noPoints
        /// A distance is not above 0.
        case distance(Double)
        /// The farthest of several places is not ``leastRatio`` times as far as the nearest: what the strength loses
        /// there is less than what a reflection adds or takes.
        case distancesTooNear
        /// The exponent that the points give, which is outside of ``plausibleExponents``.
        case exponent(Double)
    }

    /// From the least that a corridor guides a wave with to thick walls; what the configuration accepts.
    public static let plausibleExponents = 1.0...6.0
    /// In free space 1.5 times the distance costs 3.5 dB.
    public static let leastRatio = 1.5

    /// Strength at 1 m, dBm.
    public let measuredPower: Double
    public let exponent: Double
    /// Whether the exponent follows from the points; with one distance it is the one that was assumed.
    public let isExponentFitted: Bool
    /// The most by which a point lies above or below the model, dB.
    public let deviation: Double

    /// Least squares of the strengths against the logarithms of the distances.
    ///
    /// Each point counts the same, however many packets are behind it: what the place does to the strength is more than
    /// what chance does.
    ///
    /// - Parameter assumedExponent: with which a single point is moved to 1 m.
    public init(_ points: [Point], assumedExponent: Double = 2) throws(Failure) {
        guard let first = points.first else { throw .noPoints }
        for point in points where !(point.distance > 0 && point.distance.isFinite) { throw .distance(point.distance) }
        let places = points.map { (x: 10 * log10($0.distance), y: $0.strength) }
        let meanX = places.reduce(0) { $0 + $1.x } / Double(places.count)
        let meanY = places.reduce(0) { $0 + $1.y } / Double(places.count)
        if points.count == 1 {
            exponent = assumedExponent
            isExponentFitted = false
        } else {
            let nearest = points.reduce(first.distance) { min($0, $1.distance) }
            let farthest = points.reduce(first.distance) { max($0, $1.distance) }
            guard farthest >= nearest * Self.leastRatio else { throw .distancesTooNear }
            let covariance = places.reduce(0) { $0 + ($1.x - meanX) * ($1.y - meanY) }
            let slope = -covariance / places.reduce(0) { $0 + ($1.x - meanX) * ($1.x - meanX) }
            guard Self.plausibleExponents.contains(slope) else { throw .exponent(slope) }
            exponent = slope
            isExponentFitted = true
        }
        let (power, slope) = (meanY + exponent * meanX, exponent)
        measuredPower = power
        deviation = places.reduce(0) { max($0, abs($1.y - (power - slope * $1.x))) }
    }
}
