// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What became of one beacon over a capture or a recorded run. Times are nanoseconds since 1970.
struct BeaconTimeline {
    /// One sighting, or one report of several.
    struct Sample {
        var time: MonotonicTime
        /// The strengths that it stands for, dBm; nil when none was measured.
        var strengths: ClosedRange<Int>?
        /// The filtered strength, dBm.
        var filtered: Double?
        var count: Int
        var adapter: String
        /// Why it would leave, after this sighting; nil where the recording does not say.
        var exit: ExitRule?
    }

    /// The exit time in force.
    struct ExitRule: Equatable {
        /// Seconds of silence, while a radio listens without pause.
        var time: Double
        /// What determined it, as in the key `limited_by`.
        var limit: String
    }

    enum Kind: String {
        case heard = "first heard"
        case enter, exit, unknown, known, forgotten, clone
        case region, radio
        case end = "the end"
    }

    /// Something that was decided, or what a radio did.
    struct Decision {
        var time: MonotonicTime
        var kind: Kind
        var exit: ExitRule?
        /// What it was and why.
        var reason: String
    }

    /// Format and identity, as `beacond scan` shows them.
    var identity: String
    var alias: String?
    /// The file.
    var source: String
    /// The first and the last moment of the file.
    var beginning = MonotonicTime.distantFuture
    var end = MonotonicTime(nanoseconds: .min)
    var samples: [Sample] = []
    var decisions: [Decision] = []
    /// While no radio listened.
    var blindTimes: [ClosedRange<MonotonicTime>] = []
    /// What else is worth a line.
    var notes: [String] = []

    init(identity: String, source: String) {
        self.identity = identity
        self.source = source
    }

    mutating func extend(to time: MonotonicTime) {
        beginning = min(beginning, time)
        end = max(end, time)
    }

    /// When it was present, by its enters and exits.
    var stays: [ClosedRange<MonotonicTime>] {
        var stays: [ClosedRange<MonotonicTime>] = []
        var since: MonotonicTime?
        for decision in decisions {
            if decision.kind == .enter { since = since ?? decision.time }
            if decision.kind == .exit {
                stays.append(min(since ?? beginning, decision.time)...decision.time)
                since = nil
            }
        }
        if let since { stays.append(since...max(since, end)) }
        return stays
    }

    /// Seconds since the file's first moment.
    func seconds(_ time: MonotonicTime) -> Double { (time - beginning).seconds }

    /// `21:09:00.123` in UTC.
    static func clock(_ time: MonotonicTime, milliseconds: Bool = true) -> String {
        guard let civil = CivilTime(WallTime(milliseconds: time.nanoseconds / 1_000_000)) else { return "-" }
        var text: [UInt8] = []
        civil.appendTimeOfDay(to: &text)
        guard milliseconds else { return String(decoding: text, as: UTF8.self) }
        let digits = String(1000 + civil.millisecond).dropFirst()
        return "\(String(decoding: text, as: UTF8.self)).\(digits)"
    }

    /// `2026-11-30` in UTC.
    static func date(_ time: MonotonicTime) -> String {
        guard let civil = CivilTime(WallTime(milliseconds: time.nanoseconds / 1_000_000)) else { return "-" }
        var text: [UInt8] = []
        civil.appendDate(to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    static let unknownReason = "every radio has been blind for blind_hold: nobody can say whether it is here"
    static let knownReason = "heard again, and had not left"

    /// Why a beacon left.
    static func exitReason(
        _ word: String, silentSince: MonotonicTime?, at time: MonotonicTime,
        falseExits: (asked: Double, expected: Double)?
    ) -> String {
        switch word {
        case "evicted": return "forgotten because the table was full and it was the oldest"
        case "removed": return "no longer in the configuration"
        case "far": return "farther away than \"signal\" in the configuration allows"
        default: break
        }
        var text = "not heard"
        if let silentSince {
            text += " for \(TerminalText.number((time - silentSince).seconds)) s, since \(clock(silentSince))"
        }
        if let falseExits {
            text += "; false exits a day: at most \(TerminalText.number(falseExits.asked, decimals: 2)) asked"
            text += ", \(TerminalText.number(falseExits.expected, decimals: 2)) expected"
        }
        return text
    }
}
