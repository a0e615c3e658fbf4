// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Presence
import Scanner
import SinkKit

/// The keys of `plugins.json`. Each is declared here and nowhere else; ``AgentConfiguration`` is what they are read to.
struct AgentConfigurationKeys: Sendable {
    static let schema = Key<String?>.optionalText(
        "$schema", "Where an editor finds the schema of this file; the program ignores it.")
    static let gateway = Key<Values>.section(
        "gateway", Section([Gateway.id.declaration]), "What this gateway is called.")
    static let sources = Key<[String]>.texts(
        "sources", sourceRule, count: 1...16, default: ["hci:0"],
        "Where packets come from: an adapter, a capture or a scenario.")
    static let logLevel = Key<String>.choice(
        "log_level", default: LogLevel.info.word, of: LogLevel.allCases.map(\.word),
        "The least grave lines that are logged.")
    static let stateDirectory = Key<String?>.optionalText(
        "state_directory",
        .init(
            maximumBytes: 4095, pattern: "^/", expected: "an absolute path",
            check: { $0.utf8.first == UInt8(ascii: "/") }
        ),
        "The directory of the outbox, which keeps transitions until they are delivered, and of approved beacons; without it the one of the service manager, else memory."
    )
    static let outbox = Key<Values>.section(
        "outbox", Section([Outbox.size.declaration, Outbox.age.declaration]),
        "What the outbox keeps for sinks that do not take it; beyond, the oldest goes first, and a gap event names it.")
    static let controlSocket = Key<String?>.optionalText(
        "control_socket",
        .init(
            maximumBytes: 107, pattern: "^(/.*|none)$", expected: "an absolute path or \"none\"",
            check: { $0 == "none" || $0.utf8.first == UInt8(ascii: "/") }
        ),
        "The path of the socket at which beacond scan, state and reload reach the daemon, or \"none\"; without it one in the runtime folder."
    )
    static let presence = Key<Values>.section(
        "presence", Presence.section, "When a beacon is there, and what is told of it.")
    static let scan = Key<Values>.section(
        "scan", ScanProfileKeys.section, "How the radios listen, and when they listen more.")

    enum Gateway {
        static let id = Key<String?>.optionalText(
            "id", wordRule,
            "The gateway's id in topics and events; without it the program takes the adapter's address, else the machine id."
        )
    }

    enum Outbox {
        static let size = Key<Int64>.size(
            "size", default: 64 << 20, in: (1 << 20)...(16 << 30), "The largest size of its database.")
        static let age = Key<TimeInterval>.duration(
            "age", default: .seconds(30 * 86_400), in: .seconds(60) ... .seconds(3650 * 86_400),
            "The longest that a transition waits in it.")
    }

    enum Presence {
        /// What the engine does by itself is what the file says by default.
        private static let defaults = PresenceSettings()

        static let enterCount = Key<Int64>.integer(
            "enter_count", default: Int64(defaults.enterCount), in: 1...100, "Sightings that make an enter.")
        static let enterGap = Key<TimeInterval>.duration(
            "enter_gap", default: defaults.enterGap, in: .milliseconds(100) ... .seconds(3600),
            "The longest silence between the sightings of an enter; after it they are counted anew.")
        static let exitTime = Key<TimeInterval?>.optionalDuration(
            "exit_time", in: exitTimes,
            "Silence, while a radio listened, that makes an exit; without it each beacon's is learned, by \"false_exits\"."
        )
        static let falseExits = Key<String>.text(
            "false_exits", default: "1/day", falseExitsRule,
            "How often a beacon that is always there may be said to have left, from 1/month to 10/hour.")
        static let shortestExitTime = Key<TimeInterval>.duration(
            "shortest_exit_time", default: defaults.shortestExitTime, in: .milliseconds(500) ... .seconds(3600),
            "Learned exit times are no shorter.")
        static let longestExitTime = Key<TimeInterval>.duration(
            "longest_exit_time", default: defaults.longestExitTime, in: exitTimes,
            "Learned exit times are no longer, in time of a radio that listens without pause.")
        static let rangingInterval = Key<TimeInterval>.duration(
            "ranging_interval", default: defaults.rangingInterval, in: .milliseconds(100) ... .seconds(3600),
            "The time between two lists of the beacons inside a region with \"range\".")
        static let blindHold = Key<TimeInterval>.duration(
            "blind_hold", default: defaults.blindHold, in: .seconds(1) ... .seconds(86_400),
            "While no radio works for so long, states stay as they are; after it they are unknown.")
        static let reportInterval = Key<TimeInterval>.duration(
            "report_interval", default: defaults.reportInterval, in: .zero ... .seconds(3600),
            "The least time between two sightings of one beacon that are told; 0s tells each.")
        static let averageOver = Key<Int64>.integer(
            "average_over", default: Int64(defaults.averageOver), in: 1...16,
            "Values that the filtered signal strength is made of.")
        static let filter = Key<String>.choice(
            "filter", default: defaults.filter.rawValue, of: SignalFilter.allCases.map(\.rawValue),
            "What is made of them: their mean, or the strongest, which is steadier where people walk about.")
        static let pathLossExponent = Key<Double>.number(
            "path_loss_exponent", default: defaults.pathLossExponent, in: PathLossFit.plausibleExponents,
            "How fast the signal falls with the distance: 2 in the open, 2.5 to 4 indoors.")
        static let signal = Signal.key(
            "How near a beacon must be to be present, by its filtered strength or its distance; wherever it is heard unless given."
        )
        static let maximumBeacons = Key<Int64>.integer(
            "maximum_beacons", default: Int64(defaults.maximumBeacons), in: 1...100_000,
            "Beacons that are remembered at one time; past it the one heard longest ago is forgotten.")

        static let section = Section([
            enterCount.declaration, enterGap.declaration, exitTime.declaration, falseExits.declaration,
            shortestExitTime.declaration, longestExitTime.declaration, blindHold.declaration,
            rangingInterval.declaration,
            reportInterval.declaration,
            averageOver.declaration, filter.declaration, pathLossExponent.declaration, signal.declaration,
            maximumBeacons.declaration,
        ])
    }

    enum Beacon {
        static let alias = Key<String?>.optionalText("alias", nameRule, "The name that people know the beacon by.")
        static let measuredPower = Key<Int64?>.optionalInteger(
            "measured_power", in: -127...20,
            "Its strength at 1 m in dBm, measured in place, instead of the one in its frames.")
        static let pathLossExponent = Key<Double?>.optionalNumber(
            "path_loss_exponent", in: PathLossFit.plausibleExponents,
            "How fast its signal falls with the distance, instead of that of \"presence\"; beacond calibrate measures both."
        )
        static let exitTime = Key<TimeInterval?>.optionalDuration(
            "exit_time", in: exitTimes, "Its exit time, instead of that of \"presence\".")
        static let falseExits = Key<String?>.optionalText(
            "false_exits", falseExitsRule, "Its bound on false exits, instead of that of \"presence\".")
        static let enterCount = Key<Int64?>.optionalInteger(
            "enter_count", in: 1...100, "Its sightings for an enter, instead of those of \"presence\".")
        static let signal = Signal.key("How near it must be, instead of what \"presence\" says.")

        /// What may be different for one beacon.
        static let rules = [
            measuredPower.declaration, pathLossExponent.declaration, exitTime.declaration, falseExits.declaration,
            enterCount.declaration, signal.declaration,
        ]
    }

    enum Region {
        static let name = Key<String>.requiredText(
            "name", nameRule, example: "\"office\"", "The name of the region in events and topics.")
        static let beacons = Key<[String]>.texts(
            "beacons", nameRule, count: 1...1000,
            "Aliases of the beacons that belong to it, instead of an identity; it is left when all of them are gone.")
        static let exitTime = Key<TimeInterval?>.optionalDuration(
            "exit_time", in: exitTimes, "The exit time of its beacons, instead of that of \"presence\".")
        static let falseExits = Key<String?>.optionalText(
            "false_exits", falseExitsRule, "The bound on false exits of its beacons, instead of that of \"presence\".")
        static let signal = Signal.key("How near its beacons must be, instead of what \"presence\" says.")
        static let range = Key<Bool>.boolean(
            "range", default: false,
            "Whether its beacons are listed regularly while one is inside, and the profile \"continuous\" is held for it."
        )
    }

    enum Sink {
        static let name = Key<String?>.optionalText(
            "name", wordRule, "What this sink is called in the log and the outbox; its kind unless given.")
        static let enabled = Key<Bool>.boolean("enabled", default: true, "Whether it runs.")
        static let queue = Key<Int64>.integer(
            "queue", default: 1024, in: 1...100_000, "Events that may wait for it.")

        static let common = Section([name.declaration, enabled.declaration, queue.declaration])
    }

    static let formatsKey = "formats"

    let customFormats: CustomFormats
    let identities: IdentityKeys
    let formats: Key<[Values]>
    let beacons: Key<[Values]>
    let regions: Key<[Values]>
    let sinks: Key<[Values]>
    private let kinds: [Shape.PluginKind]

    /// - Parameters:
    ///   - builtin: the formats that are there without the file.
    ///   - custom: those of the file that is read.
    init(formats builtin: FormatCatalog, sinks registry: SinkRegistry, custom: CustomFormats = CustomFormats()) {
        let identities = IdentityKeys(builtin, custom)
        let beaconKeys = [Beacon.alias.declaration] + identities.declarations + Beacon.rules
        let beacon = Section(
            beaconKeys,
            checks: [
                identities.formatCheck, .init(beaconKeys) { identities.check($0, isComplete: true, &$1) },
            ])
        let regionKeys =
            [Region.name.declaration] + identities.declarations + [
                Region.beacons.declaration, Region.exitTime.declaration, Region.falseExits.declaration,
                Region.signal.declaration, Region.range.declaration,
            ]
        let region = Section(
            regionKeys, checks: [identities.formatCheck, .init(regionKeys) { Self.checkRegion($0, identities, &$1) }])
        customFormats = custom
        self.identities = identities
        formats = .sections(
            Self.formatsKey, of: Format.section(builtin: builtin), count: 0...CustomFormats.maximumCount,
            "Formats of beacons that are not built in.")
        beacons = .sections(
            "beacons", of: beacon, count: 0...10_000, example: Self.beaconsExample,
            "The beacons that are told of by name, each with its complete identity.")
        regions = .sections(
            "regions", of: region, count: 0...10_000, example: Self.regionsExample,
            "Sets of beacons that are entered with the first and left with the last: by the leading fields of an identity, or by aliases."
        )
        kinds = registry.registrations.map {
            Shape.PluginKind(
                name: $0.descriptor.kind, summary: $0.descriptor.summary, section: $0.descriptor.section)
        }
        sinks = .plugins(
            "sinks", common: Sink.common, kinds: kinds, count: 0...32, "Where events go.")
    }

    var section: Section {
        let (identities, formats, beacons, regions, sinks) = (identities, formats, beacons, regions, sinks)
        let devices = [beacons.declaration, Self.bindKeys.declaration, Self.identityResolvingKeys.declaration]
        return Section(
            [
                Self.schema.declaration, Self.gateway.declaration, Self.sources.declaration, Self.adapters.declaration,
                Self.logLevel.declaration, Self.stateDirectory.declaration, Self.outbox.declaration,
                Self.controlSocket.declaration,
                Self.presence.declaration, Self.scan.declaration, formats.declaration,
            ] + devices + [regions.declaration, sinks.declaration],
            checks: [
                .init([Self.sources.declaration]) { Self.checkSources($0, &$1) },
                .init([Self.sources.declaration, Self.adapters.declaration]) { Self.checkAdapters($0, &$1) },
                .init([formats.declaration]) { Self.checkFormatNames($0[formats], &$1) },
                .init(devices) { Self.checkDevices($0, beacons, identities, &$1) },
                .init([regions.declaration]) { Self.checkRegionNames($0[regions], &$1) },
                .init(devices + [regions.declaration]) { Self.checkMembers($0, $0[regions], $0[beacons], &$1) },
                .init([sinks.declaration]) { Self.checkSinkNames($0[sinks], &$1) },
            ])
    }
}

// MARK: Rules and examples

extension AgentConfigurationKeys {
    private static let exitTimes = TimeInterval.seconds(1) ... .seconds(7 * 86_400)
    private static let falseExitsRule = Shape.TextRule(
        maximumBytes: 32, pattern: "^[0-9.]+/(hour|day|week|month)$",
        expected: "a rate such as \"1/day\", from \"1/month\" to \"10/hour\"",
        check: { text in FalseExitRate(text).map { FalseExitRate.range.contains($0.perSecond) } ?? false })

    /// Schemes of the sources that the program can open.
    private static let schemes = ["hci", "user", "tcp", "unix", "serial", "btsnoop", "simulate"]

    private static let sourceRule = Shape.TextRule(
        maximumBytes: 4095, pattern: "^(\(schemes.joined(separator: "|"))):.",
        expected:
            "a source such as \"hci:0\", \"tcp:HOST:PORT\", \"btsnoop:FILE\" or \"simulate:FILE\"",
        check: { source in
            schemes.contains { source.utf8.starts(with: "\($0):".utf8) && source.utf8.count > $0.utf8.count + 1 }
        })

    /// A word that every broker takes as a level of a topic.
    static let wordRule = Shape.TextRule(
        maximumBytes: 64, pattern: "^[A-Za-z0-9_-]+$", expected: "letters, digits, \"_\" and \"-\"",
        check: { word in
            word.utf8.allSatisfy { character in
                switch character {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
        })

    /// A name in any language, on one line.
    static let nameRule = Shape.TextRule(
        maximumBytes: 64, pattern: "^[^\\u0000-\\u001f\\u007f]+$", expected: "text without control characters",
        check: { name in name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } })

    private static let beaconsExample = """
        [{"alias": "keys", "uuid": "fda50693-a4e2-4fb1-afcf-c6eb07647825", "major": 1, "minor": 1}]
        """

    private static let regionsExample = """
        [{"name": "office", "uuid": "fda50693-a4e2-4fb1-afcf-c6eb07647825", "major": 1},
        {"name": "me", "beacons": ["keys"]}]
        """
}

// MARK: Checks across keys

extension AgentConfigurationKeys {
    private static func checkSources(_ values: Values, _ complaints: inout Complaints) {
        var seen: [String: String] = [:]
        for (index, source) in values[sources].enumerated() {
            var name = source
            // The radios of a scenario have names of their own.
            if case .controller(let controller) = try? SourceSpecification(source) { name = controller.name }
            if let other = seen.updateValue(source, forKey: name) {
                complaints.add(
                    at: ["sources", .index(index)],
                    other == source
                        ? "the same source twice"
                        : "its name in events would be \"\(name)\", which is that of \"\(other)\"")
            }
        }
    }

    private static func checkRegion(_ values: Values, _ identities: IdentityKeys, _ complaints: inout Complaints) {
        let hasIdentity = identities.isGiven(values) || values.isGiven(identities.format)
        if values.isGiven(Region.beacons) {
            if hasIdentity { complaints.add("beacons", "stands instead of an identity; make two regions") }
        } else if hasIdentity {
            identities.check(values, isComplete: false, &complaints)
        } else {
            complaints.add(nil, "needs an identity such as \"uuid\", or \"beacons\"")
        }
    }

    private static func checkRegionNames(_ entries: [Values], _ complaints: inout Complaints) {
        let names = entries.enumerated().map {
            (path: ["regions", .index($0), "name"] as [PathStep], name: $1[Region.name] as String?, line: $1.line)
        }
        checkUnique(names, "name", &complaints)
    }

    private static func checkSinkNames(_ entries: [Values], _ complaints: inout Complaints) {
        checkUnique(
            entries.enumerated().map { (["sinks", .index($0), "name"], $1[Sink.name] ?? $1.pluginKind, $1.line) },
            "name", &complaints)
    }

    private static func checkMembers(
        _ values: Values, _ regions: [Values], _ beacons: [Values], _ complaints: inout Complaints
    ) {
        let aliases =
            (beacons + values[bindKeys]).compactMap { $0[Beacon.alias] }
            + values[identityResolvingKeys].map { $0[Resolution.alias] }
        let known = Set(aliases)
        for (index, region) in regions.enumerated() {
            for (place, alias) in region[Region.beacons].enumerated() where !known.contains(alias) {
                let hint = Suggestion.nearest(to: alias, in: aliases).map { "; did you mean \"\($0)\"?" } ?? ""
                complaints.add(
                    at: ["regions", .index(index), "beacons", .index(place)],
                    "no beacon has the alias \"\(alias)\"\(hint)")
            }
        }
    }
}
