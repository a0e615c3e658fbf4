// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import Configuration
public import LinuxIO
public import Presence
public import SinkKit

/// What `plugins.json` says, checked and in the types of the program. ``AgentConfigurationKeys`` declares the keys.
public struct AgentConfiguration: Sendable {
    /// The gateway's id, valid as one level of a topic; nil leaves it to the program.
    public var gatewayID: String?
    /// Where packets come from, at least one: `hci:0`, `btsnoop:FILE`, `simulate:FILE`.
    public var sources: [String]
    public var logLevel: LogLevel
    /// An absolute path; nil keeps the outbox in memory.
    public var stateDirectory: String?
    /// The path of the control socket; `none` for none, nil for the runtime folder.
    public var controlSocket: String?
    public var presence: PresenceSettings
    public var scan: Scan
    /// Each identity and each alias at most once.
    public var beacons: [BeaconRule]
    /// Each name at most once.
    public var regions: [RegionRule]
    /// Each name at most once; disabled ones are among them.
    public var sinks: [SinkInstance]

    /// How the radio listens.
    public struct Scan: Sendable {
        /// Time of listening in each interval (Core 5.4, Vol 4, Part E, 7.8.10), 2.5 ms to 10.24 s, at most `interval`.
        public var window: TimeInterval
        public var interval: TimeInterval
        /// Whether scan responses are asked for.
        public var isActive: Bool
    }

    /// A configured sink.
    public struct SinkInstance: Sendable, Equatable {
        public var name: String
        /// A kind of the registry.
        public var kind: String
        public var isEnabled: Bool
        /// Events that wait for it at most.
        public var queueCapacity: Int
        /// The values of its own section.
        public var values: Values

        /// A sink of this kind with everything at its default.
        public init(kind: String) {
            self.init(name: kind, kind: kind, isEnabled: true, queueCapacity: 1024, values: Values())
        }

        init(name: String, kind: String, isEnabled: Bool, queueCapacity: Int, values: Values) {
            self.name = name
            self.kind = kind
            self.isEnabled = isEnabled
            self.queueCapacity = queueCapacity
            self.values = values
        }
    }
}

extension AgentConfiguration {
    /// The declaration of `plugins.json`: for reading, the schema, the sample and the reference.
    public static func section(formats: FormatCatalog, sinks: SinkRegistry) -> Section {
        AgentConfigurationKeys(formats: formats, sinks: sinks).section
    }

    /// Reads the bytes of a file; `file` is how messages name it.
    public static func load(
        _ text: [UInt8], file: String, formats: FormatCatalog, sinks: SinkRegistry, names: NameTable
    ) throws(ConfigurationError) -> AgentConfiguration {
        let keys = AgentConfigurationKeys(formats: formats, sinks: sinks)
        let values = try ConfigurationReader.read(text, file: file, section: keys.section)
        return AgentConfiguration(values, keys, names)
    }

    /// Reads a file.
    public static func load(
        path: String, formats: FormatCatalog, sinks: SinkRegistry, names: NameTable
    ) throws(LoadError) -> AgentConfiguration {
        let text: [UInt8]
        do {
            text = try FileDescriptor.contents(of: path, limit: ConfigurationReader.maximumBytes)
        } catch {
            throw .unreadable(error)
        }
        do {
            return try load(text, file: path, formats: formats, sinks: sinks, names: names)
        } catch {
            throw .refused(error)
        }
    }

    /// Why a configuration could not be loaded.
    public enum LoadError: Error, CustomStringConvertible {
        /// The file could not be read (exit status 66).
        case unreadable(SystemError)
        /// The file is wrong (exit status 78).
        case refused(ConfigurationError)

        public var description: String {
            switch self {
            case .unreadable(let error): error.description
            case .refused(let error): error.description
            }
        }
    }
}

extension AgentConfiguration {
    /// - Parameter values: of the section of `keys`, checked.
    private init(_ values: Values, _ keys: AgentConfigurationKeys, _ names: NameTable) {
        gatewayID = values[AgentConfigurationKeys.gateway][AgentConfigurationKeys.Gateway.id]
        sources = values[AgentConfigurationKeys.sources]
        let level = values[AgentConfigurationKeys.logLevel]
        logLevel = LogLevel.allCases.first { $0.word == level } ?? .info
        stateDirectory = values[AgentConfigurationKeys.stateDirectory]
        controlSocket = values[AgentConfigurationKeys.controlSocket]
        presence = PresenceSettings(values[AgentConfigurationKeys.presence])
        scan = Scan(values[AgentConfigurationKeys.scan])
        let identities = keys.identities
        var byAlias: [String: BeaconIdentity] = [:]
        beacons = values[keys.beacons].compactMap { entry in
            guard let identity = identities.identity(entry) else { return nil }
            let alias = entry[AgentConfigurationKeys.Beacon.alias]
            if let alias { byAlias[alias] = identity }
            return BeaconRule(
                identity: identity, alias: alias.map(names.intern) ?? .none,
                measuredPower: entry[AgentConfigurationKeys.Beacon.measuredPower].flatMap { Int8(exactly: $0) },
                enterCount: entry[AgentConfigurationKeys.Beacon.enterCount].map(Int.init),
                exitTime: entry[AgentConfigurationKeys.Beacon.exitTime])
        }
        regions = values[keys.regions].compactMap { entry in
            let name = names.intern(entry[AgentConfigurationKeys.Region.name])
            if entry.isGiven(AgentConfigurationKeys.Region.beacons) {
                let members = entry[AgentConfigurationKeys.Region.beacons].compactMap { byAlias[$0] }
                return RegionRule(name: name, patterns: members.map { IdentityPattern(identity: $0, prefix: $0.count) })
            }
            return identities.pattern(entry).map { RegionRule(name: name, patterns: [$0]) }
        }
        sinks = values[keys.sinks].map { entry in
            SinkInstance(
                name: entry[AgentConfigurationKeys.Sink.name] ?? entry.pluginKind, kind: entry.pluginKind,
                isEnabled: entry[AgentConfigurationKeys.Sink.enabled],
                queueCapacity: Int(entry[AgentConfigurationKeys.Sink.queue]), values: entry.pluginConfiguration)
        }
    }
}

extension PresenceSettings {
    fileprivate init(_ values: Values) {
        typealias Keys = AgentConfigurationKeys.Presence
        self.init()
        enterCount = Int(values[Keys.enterCount])
        enterGap = values[Keys.enterGap]
        exitTime = values[Keys.exitTime]
        reportInterval = values[Keys.reportInterval]
        averageOver = Int(values[Keys.averageOver])
        pathLossExponent = values[Keys.pathLossExponent]
        maximumBeacons = Int(values[Keys.maximumBeacons])
    }
}

extension AgentConfiguration.Scan {
    fileprivate init(_ values: Values) {
        typealias Keys = AgentConfigurationKeys.Scan
        window = values[Keys.window]
        interval = values[Keys.interval]
        isActive = values[Keys.active]
    }
}
