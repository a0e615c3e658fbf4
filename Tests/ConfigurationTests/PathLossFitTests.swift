// SPDX-License-Identifier: Apache-2.0

import Agent
import Foundation
import TestSupport
import Testing

@Suite struct PathLossFitTests {
    private static func points(_ distances: [Double], power: Double, exponent: Double) -> [PathLossFit.Point] {
        distances.map { .init(distance: $0, strength: power - 10 * exponent * log10($0)) }
    }

    @Test(arguments: [(-59.0, 2.0), (-70, 1.2), (-45, 4.5)])
    func pointsOfTheModelGiveTheModel(power: Double, exponent: Double) throws {
        let fit = try PathLossFit(Self.points([1, 2, 5, 0.5], power: power, exponent: exponent))
        #expect(abs(fit.measuredPower - power) < 1e-9)
        #expect(abs(fit.exponent - exponent) < 1e-9)
        #expect(fit.isExponentFitted && fit.deviation < 1e-9)
    }

    @Test func onePointIsMovedToOneMetre() throws {
        let near = try PathLossFit([.init(distance: 1, strength: -61.5)], assumedExponent: 3)
        #expect(near.measuredPower == -61.5 && near.exponent == 3 && !near.isExponentFitted)
        // 10 m at exponent 3 are 30 dB.
        let far = try PathLossFit([.init(distance: 10, strength: -90)], assumedExponent: 3)
        #expect(abs(far.measuredPower + 60) < 1e-9)
    }

    @Test func aPointOffTheLineIsToldByItsDeviation() throws {
        // By hand: x = 0, 10, 20 (10 log10 of 1, 10, 100), y = -50, -64, -90: slope -2, mean -68, so -48 at 1 m.
        let fit = try PathLossFit([
            .init(distance: 1, strength: -50), .init(distance: 10, strength: -64), .init(distance: 100, strength: -90),
        ])
        #expect(abs(fit.exponent - 2) < 1e-9 && abs(fit.measuredPower + 48) < 1e-9)
        #expect(abs(fit.deviation - 4) < 1e-9)
    }

    @Test func whatCannotBeFittedIsRefused() {
        func failure(_ points: [PathLossFit.Point]) -> PathLossFit.Failure? {
            do {
                _ = try PathLossFit(points)
                return nil
            } catch { return error }
        }
        #expect(failure([]) == .noPoints)
        #expect(failure([.init(distance: 0, strength: -59)]) == .distance(0))
        #expect(failure(Self.points([2, 2], power: -59, exponent: 2)) == .distancesTooNear)
        #expect(failure(Self.points([2, 2.9], power: -59, exponent: 2)) == .distancesTooNear)
        #expect(failure(Self.points([2, 3], power: -59, exponent: 2)) == nil)
        if case .exponent(let exponent) = failure(Self.points([1, 4], power: -59, exponent: -1)) {
            #expect(abs(exponent + 1) < 1e-9)
        } else {
            Issue.record("a signal that grows with the distance was fitted")
        }
    }

    /// 300 packets at each of three places, with noise of 4 dB and one packet in seven 25 dB too weak, as when somebody
    /// walks by.
    ///
    /// The mean of the middle half of 300 has a standard error of about 0.25 dB; outliers on one side shift all places
    /// alike, by about half a decibel at 4 dB. Five standard errors at each place bound the result.
    @Test func noiseAndOutliersDoNotMoveTheFit() throws {
        var generator = SeededGenerator("noiseAndOutliersDoNotMoveTheFit")
        func normal() -> Double {
            let uniform = (Double(generator.below(1 << 30)) + 1) / Double(1 << 30)
            return (-2 * log(uniform)).squareRoot() * cos(2 * .pi * Double(generator.below(1 << 30)) / Double(1 << 30))
        }
        let points = try [1.0, 3, 9].map { distance in
            let strengths = (0..<300).map { index in
                let outlier = index % 7 == 0 ? -25.0 : 0
                return Int8((-59 - 23 * log10(distance) + 4 * normal() + outlier).rounded())
            }
            return PathLossFit.Point(distance: distance, strength: try #require(StrengthSpread(strengths)).center)
        }
        let fit = try PathLossFit(points)
        #expect(abs(fit.measuredPower + 59) < 2.5, "\(fit)")
        #expect(abs(fit.exponent - 2.3) < 0.25, "\(fit)")
    }

    @Test func theSpreadIsThatOfFourFifths() throws {
        #expect(StrengthSpread([]) == nil)
        let one = try #require(StrengthSpread([-60]))
        #expect(one.count == 1 && one.center == -60 && one.width == 0)
        // 0 to -100: a tenth lies below -90, a tenth above -10.
        let many = try #require(StrengthSpread((0...100).map { Int8(-$0) }))
        #expect(many.low == -90 && many.high == -10 && many.center == -50)
        #expect(try #require(StrengthSpread([-20, -60, -60, -61, -61, -100])).center == -60.5)
    }
}
