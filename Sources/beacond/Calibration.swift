// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration

/// What was measured of one beacon, and what follows for `plugins.json`.
struct Calibration {
    /// Fewer packets than this say nothing of the spread.
    static let leastCount = 10
    /// Metres. Nearer than this the strength depends on how the antennas lie, farther a beacon is hardly heard.
    static let distances = 0.1...100.0
    /// dB by which a point may lie off the fitted line before it is worth a word: reflections make about so much.
    private static let usualDeviation = 4.0

    private(set) var beacon: StrengthCollector.Beacon?
    private var points: [PathLossFit.Point] = []

    /// Metres, from `1m` or `2.5`; nil when it is no distance in ``distances``.
    static func distance(_ text: String) -> Double? {
        let digits = text.hasSuffix("m") ? text.dropLast() : text[...]
        return Double(digits).flatMap { distances.contains($0) ? $0 : nil }
    }

    /// A distance for people.
    static func words(_ distance: Double) -> String {
        TerminalText.number(distance, decimals: distance == distance.rounded() ? 0 : 2) + " m"
    }

    mutating func add(_ beacon: StrengthCollector.Beacon, _ spread: StrengthSpread, at distance: Double) {
        self.beacon = self.beacon ?? beacon
        points.removeAll { $0.distance == distance }
        points.append(PathLossFit.Point(distance: distance, strength: spread.center))
    }

    /// Says what is wrong with a spread; nil when nothing is.
    static func warning(_ spread: StrengthSpread) -> String? {
        guard spread.width > StrengthSpread.usualWidth else { return nil }
        let width = TerminalText.number(spread.width, decimals: 0)
        let usual = TerminalText.number(StrengthSpread.usualWidth, decimals: 0)
        return """
            warning: four of five packets lie within \(width) dB, usual are up to \(usual) dB for a beacon that lies still.
              Fix it in sight of the radio, away from metal and your body, keep people out
              of the way, and measure again; a longer --duration helps too.

            """
    }

    func fit(assuming exponent: Double) throws(CommandError) -> PathLossFit {
        do { return try PathLossFit(points, assumedExponent: exponent) } catch {
            let text =
                switch error {
                case .noPoints: "nothing was measured"
                case .distance(let distance): "\(distance) m is no distance"
                case .distancesTooNear:
                    "the distances are too near each other to tell how the signal falls; measure at 1 m and at 3 to 5 m"
                case .exponent(let exponent):
                    "the signal falls with exponent \(TerminalText.number(exponent, decimals: 1)), which cannot be (1 to 6 can): "
                        + "check the distances, keep the beacon in sight, and measure again"
                }
            throw CommandError(.failure, text)
        }
    }

    /// What a person should know of the fit.
    func words(_ fit: PathLossFit) -> String {
        let exponent = TerminalText.number(fit.exponent, decimals: 2)
        var text = "At 1 m: \(TerminalText.number(fit.measuredPower, decimals: 1)) dBm. "
        text +=
            fit.isExponentFitted
            ? "The signal falls with exponent \(exponent) (2 in the open, 2.5 to 4 among walls and people).\n"
            : "How the signal falls was not measured (a second distance would); exponent \(exponent) goes on.\n"
        if let claimed = beacon?.event["measured_power"]?.integer {
            text += "Until now distances were reckoned with \(claimed) dBm.\n"
        }
        if fit.deviation > Self.usualDeviation {
            let deviation = TerminalText.number(fit.deviation, decimals: 1)
            text +=
                "warning: a point lies \(deviation) dB off the line; a reflection, or a wrong distance. Measure more points.\n"
        }
        return text
    }

    /// An entry of `beacons`, in a file that is a configuration by itself.
    func snippet(_ fit: PathLossFit, _ formats: FormatCatalog) throws(CommandError) -> String {
        guard let beacon, let name = beacon.event["format"]?.text,
            let format = formats.id(named: name).flatMap({ formats[$0] })
        else {
            throw CommandError(.failure, "the beacon is of a format that this program does not know; give --config")
        }
        guard let power = Int8(exactly: fit.measuredPower.rounded()), (-127...20).contains(power) else {
            throw CommandError(.failure, "no beacon is so strong or weak at 1 m; check the distances and measure again")
        }
        var members: [String] = []
        func add(_ key: String, _ write: (inout JSONWriter) -> Void) {
            var writer = JSONWriter()
            write(&writer)
            members.append("\"\(key)\": \(writer.text)")
        }
        if let alias = beacon.event["alias"]?.text { add("alias") { $0.string(alias) } }
        add("format") { $0.string(name) }
        for field in format.fields {
            if let number = beacon.event[field.key]?.integer {
                add(field.key) { $0.integer(number) }
            } else {
                add(field.key) { $0.string(beacon.event[field.key]?.text ?? "") }
            }
        }
        add("measured_power") { $0.integer(power) }
        if fit.isExponentFitted { add("path_loss_exponent") { $0.decimal(fit.exponent, decimals: 2) } }
        return "{ \"beacons\": [\n    { \(members.joined(separator: ", ")) }\n] }\n"
    }
}
