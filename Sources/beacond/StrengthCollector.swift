// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration
import LinuxIO

/// Gathers the strengths of every beacon at one place, and shows while it does how they spread.
final class StrengthCollector: EventViewer {
    struct Beacon {
        let identity: String
        /// The newest event, for its names.
        fileprivate(set) var event: Node
        fileprivate(set) var strengths: [Int8] = []

        var spread: StrengthSpread? { StrengthSpread(strengths) }
    }

    /// Beacons that are remembered: more than are near enough to be meant.
    private static let capacity = 4096
    /// Strengths that are kept of each: at ten a second those of more than an hour.
    private static let strengthCapacity = 50_000

    private let selection: BeaconSelection?
    private let formats: FormatCatalog
    private let duration: TimeInterval
    private let showsProgress: Bool
    private let beginning = Clock.now
    private var beacons: [String: Beacon] = [:]
    let failure: CommandError? = nil

    /// - Parameters:
    ///   - selection: nil for every beacon.
    ///   - showsProgress: whether a line on the terminal follows what is gathered.
    init(_ selection: BeaconSelection?, formats: FormatCatalog, duration: TimeInterval, showsProgress: Bool) {
        self.selection = selection
        self.formats = formats
        self.duration = duration
        self.showsProgress = showsProgress
    }

    func take(_ line: [UInt8], _ event: Node) {
        guard let word = event["event"]?.text, word == "sighting" || word == "enter",
            let identity = ScanRow.identity(of: event, formats),
            selection?.includes(identity, event) ?? true,
            let strength = event["rssi"]?.integer.flatMap({ Int8(exactly: $0) })
        else { return }
        guard beacons[identity] != nil || beacons.count < Self.capacity else { return }
        beacons[identity, default: Beacon(identity: identity, event: event)].event = event
        guard beacons[identity].map({ $0.strengths.count < Self.strengthCapacity }) ?? false else { return }
        beacons[identity]?.strengths.append(strength)
    }

    func flush() {}

    func tick() {
        guard showsProgress else { return }
        let seconds = (Clock.now - beginning).milliseconds / 1000
        var text = "  \(seconds) s of \(duration.milliseconds / 1000) s: "
        if let beacon = strongest, let spread = beacon.spread {
            text += "\(TerminalText.line(beacon.name)): \(spread.words)"
        } else {
            text += "nothing heard yet"
        }
        let columns = Terminal.size(of: 2)?.columns ?? 80
        StandardError.print("\r\u{1B}[2K\(TerminalText.column(text, columns - 1).trimmingEnd)")
    }

    func end() {
        if showsProgress { StandardError.print("\r\u{1B}[2K") }
    }

    /// The beacons, strongest first; of those that are heard a single time or two it says little how strong they were.
    var ranked: [Beacon] {
        func rank(_ beacon: Beacon) -> (Int, Double) {
            (min(beacon.strengths.count, Calibration.leastCount), beacon.spread?.center ?? -200)
        }
        return beacons.values.sorted { rank($0) == rank($1) ? $0.identity < $1.identity : rank($0) > rank($1) }
    }

    private var strongest: Beacon? { ranked.first }
}

extension StrengthCollector.Beacon {
    /// What people call it.
    var name: String { event["alias"]?.text ?? identity }
}

extension StrengthSpread {
    /// `290 packets, -59.3 dBm, spread 5 dB (-62 to -57)`.
    var words: String {
        let strength = TerminalText.number(center, decimals: 1)
        let range = "\(TerminalText.number(low, decimals: 0)) to \(TerminalText.number(high, decimals: 0))"
        return "\(count) packets, \(strength) dBm, spread \(TerminalText.number(width, decimals: 0)) dB (\(range))"
    }
}
