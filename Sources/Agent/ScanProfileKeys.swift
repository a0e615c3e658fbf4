// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Configuration
import Presence

/// The keys of `scan` in `plugins.json`.
enum ScanProfileKeys {
    static let profile = Key<String>.text(
        "profile", default: ScanProfile.continuous.name, AgentConfigurationKeys.wordRule,
        "The profile of monitoring: continuous, balanced, economy, or one of \"profiles\".")
    static let profiles = Key<[Values]>.sections(
        "profiles", of: entry, count: 0...32,
        example: """
            [{"name": "night", "window": "27.5ms", "interval": "272.5ms", "burst": {"on": "10s", "off": "20s"}}]
            """,
        "Profiles of your own; one with the name of a stock profile replaces it.")

    static let latency = Key<TimeInterval>.duration(
        "latency", default: AgentConfiguration.Scan().latency, in: .zero ... .seconds(1),
        "In a busy air advertisements wait up to so long to be read together, which saves CPU time; 0s reads each as it comes."
    )

    private static let name = Key<String>.requiredText(
        "name", AgentConfigurationKeys.wordRule, example: "\"night\"", "What the profile is called.")
    private static let window = Key<TimeInterval>.duration(
        "window", default: ScanProfile.continuous.pattern.window, in: ScanProfile.times,
        "Time of listening in each interval, rounded to 0.625 ms.")
    private static let interval = Key<TimeInterval>.duration(
        "interval", default: ScanProfile.continuous.pattern.interval, in: ScanProfile.times,
        "Time from the start of one window to the start of the next, rounded to 0.625 ms; with a window of this length the radio always listens."
    )
    private static let active = Key<Bool>.boolean(
        "active", default: false, "Whether scan responses are asked for, which costs the beacons energy.")
    private static let burst = Key<Values>.section(
        "burst", Section([on.declaration, off.declaration]),
        "A schedule of scanning and pausing; without it the radio scans without a pause.")

    private static let on = Key<TimeInterval>.duration(
        "on", default: .seconds(10), in: ScanProfile.burstTimes, "How long it scans.")
    private static let off = Key<TimeInterval>.duration(
        "off", default: .seconds(50), in: ScanProfile.burstTimes, "How long it pauses after that.")

    private static let entry = Section([
        name.declaration, window.declaration, interval.declaration, active.declaration, burst.declaration,
    ]) { values, complaints in
        if values[window] > values[interval] { complaints.add("window", "must not be longer than \"interval\"") }
    }

    static let section = Section([profile.declaration, profiles.declaration, latency.declaration]) {
        values, complaints in
        var lines: [String: Int] = [:]
        for (index, entry) in values[profiles].enumerated() {
            if let line = lines[entry[name]] {
                complaints.add(
                    at: ["profiles", .index(index), "name"],
                    "\"\(entry[name])\" is already the name of the entry on line \(line)")
            } else {
                lines[entry[name]] = entry.line
            }
        }
        let known = AgentConfiguration.Scan(values).profiles.map(\.name)
        if !known.contains(values[profile]) {
            let hint =
                Suggestion.nearest(to: values[profile], in: known).map { "did you mean \"\($0)\"?" }
                ?? "the profiles are \(known.joined(separator: ", "))"
            complaints.add("profile", "no profile has the name \"\(values[profile])\"; \(hint)")
        }
    }

    static func profile(_ values: Values) -> ScanProfile {
        ScanProfile(
            name: values[name], window: values[window], interval: values[interval], isActive: values[active],
            burst: values.isGiven(burst)
                ? ScanPattern.Burst(on: values[burst][on], off: values[burst][off]) : nil)
    }
}

extension AgentConfiguration {
    /// How the radios listen, and when they listen more.
    public struct Scan: Sendable {
        /// Each name once: the stock profiles, and those of the file.
        public private(set) var profiles = ScanProfile.stock
        /// Held as long as anything wants to know who is there.
        public private(set) var monitoring = ScanProfile.continuous
        /// Held while a beacon is inside a region that ranges.
        public private(set) var ranging = ScanProfile.continuous
        /// How long advertisements may wait to be read together.
        public private(set) var latency = TimeInterval.milliseconds(50)
        /// Everything at its default.
        public init() {}

        init(_ values: Values) {
            for profile in values[ScanProfileKeys.profiles].map(ScanProfileKeys.profile) {
                profiles.removeAll { $0.name == profile.name }
                profiles.append(profile)
            }
            latency = values[ScanProfileKeys.latency]
            monitoring = self[values[ScanProfileKeys.profile]] ?? monitoring
            ranging = self[ScanProfile.continuous.name] ?? ranging
        }

        /// The profile of this name, if there is one.
        public subscript(name: String) -> ScanProfile? { profiles.first { $0.name == name } }
    }
}
