// SPDX-License-Identifier: Apache-2.0

public import BeaconFormats
public import BeaconModel
public import Configuration
import Glibc
public import LinuxIO
public import Presence
public import SinkKit

/// What `plugins.json` says, checked and in the types of the program. ``AgentConfigurationKeys`` declares the keys.
public struct AgentConfiguration: Sendable {
    /// The gateway's id, valid as one level of a topic; nil leaves it to the program.
    public var gatewayID: String?
    /// Where packets come from, at least one: `hci:0`, `btsnoop:FILE`, `simulate:FILE`.
    public var sources: [String]
    /// Each name at most once.
    public var adapters: [AdapterRule]
    public var logLevel: LogLevel
    /// An absolute path; nil keeps the outbox in memory.
    public var stateDirectory: String?
    /// Octets of the outbox at most.
    public var outboxSize: Int64
    /// How long the outbox keeps a transition at most.
    public var outboxAge: TimeInterval
    /// The path of the control socket; `none` for none, nil for the runtime folder.
    public var controlSocket: String?
    public var presence: PresenceSettings
    public var scan: Scan
    /// Formats beside the built-in ones, each name at most once. Identities here are of ``decoder``.
    public var formats: [CustomFormat]
    /// Each identity and each alias at most once; devices that a key gives an alias are among them.
    public var beacons: [BeaconRule]
    /// One at most for each device.
    public var bindKeys: [BindKey]
    /// Each is that of one beacon in `beacons`.
    public var identityResolvingKeys: [DeviceKey]
    /// Each name at most once.
    public var regions: [RegionRule]
    /// Regions in which a beacon inside makes the radios listen more.
    public var rangedRegions: Set<Name>
    /// Each name at most once; disabled ones are among them.
    public var sinks: [SinkInstance]
    /// What is allowed and still unwise, one line each, for the log.
    public private(set) var warnings: [String] = []
    /// Whether a key stands in the file itself.
    private var holdsKeys: Bool

    /// Reads the frames of the built-in formats and of ``formats``.
    public var decoder: FrameDecoder {
        FrameDecoder(
            FormatDefinition.all + formats.map(\.definition), bindKeys: bindKeys.isEmpty ? nil : BindKeys(bindKeys))
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

    /// Reads the bytes of a file.
    ///
    /// - Parameters:
    ///   - file: how messages name it.
    ///   - formats: the built-in formats, those of ``FormatDefinition/all``.
    public static func load(
        _ text: [UInt8], file: String, formats: FormatCatalog, sinks: SinkRegistry, names: NameTable
    ) throws(ConfigurationError) -> AgentConfiguration {
        var keys = AgentConfigurationKeys(formats: formats, sinks: sinks)
        let values = try ConfigurationReader.read(text, file: file) { document in
            keys = AgentConfigurationKeys(
                formats: formats, sinks: sinks, custom: CustomFormats(document, builtin: formats))
            return keys.section
        }
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
            var configuration = try load(text, file: path, formats: formats, sinks: sinks, names: names)
            if configuration.holdsKeys, isReadableByOthers(path) {
                configuration.warnings.append(
                    "\(path) holds keys and everybody on this machine can read it; take that right away (chmod o-r) or put the keys into files of their own (\"key_file\")"
                )
            }
            return configuration
        } catch {
            throw .refused(error)
        }
    }

    private static func isReadableByOthers(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IROTH != 0
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
        adapters = values[AgentConfigurationKeys.adapters].map {
            AdapterRule(
                name: names.intern($0[AgentConfigurationKeys.Adapter.name]),
                rssiOffset: Int($0[AgentConfigurationKeys.Adapter.rssiOffset]))
        }
        let level = values[AgentConfigurationKeys.logLevel]
        logLevel = LogLevel.allCases.first { $0.word == level } ?? .info
        stateDirectory = values[AgentConfigurationKeys.stateDirectory]
        let outbox = values[AgentConfigurationKeys.outbox]
        outboxSize = outbox[AgentConfigurationKeys.Outbox.size]
        outboxAge = outbox[AgentConfigurationKeys.Outbox.age]
        controlSocket = values[AgentConfigurationKeys.controlSocket]
        presence = PresenceSettings(values[AgentConfigurationKeys.presence])
        scan = Scan(values[AgentConfigurationKeys.scan])
        formats = keys.customFormats.formats
        let identities = keys.identities
        var byAlias: [String: BeaconIdentity] = [:]
        func rule(_ identity: BeaconIdentity, _ alias: String?, _ entry: Values) -> BeaconRule {
            if let alias { byAlias[alias] = identity }
            return BeaconRule(
                identity: identity, alias: alias.map(names.intern) ?? .none,
                measuredPower: entry[AgentConfigurationKeys.Beacon.measuredPower].flatMap { Int8(exactly: $0) },
                enterCount: entry[AgentConfigurationKeys.Beacon.enterCount].map(Int.init),
                exitTime: entry[AgentConfigurationKeys.Beacon.exitTime],
                falseExits: entry[AgentConfigurationKeys.Beacon.falseExits].flatMap(FalseExitRate.init),
                pathLossExponent: entry[AgentConfigurationKeys.Beacon.pathLossExponent],
                gate: SignalGate(entry, AgentConfigurationKeys.Beacon.signal))
        }
        beacons = values[keys.beacons].compactMap { entry in
            identities.identity(entry).map { rule($0, entry[AgentConfigurationKeys.Beacon.alias], entry) }
        }
        bindKeys = []
        for entry in values[AgentConfigurationKeys.bindKeys] {
            guard let address = AgentConfigurationKeys.Decryption.address(entry),
                let key = AgentConfigurationKeys.Secret.octets(entry)
            else { continue }
            bindKeys.append(BindKey(address: address.value, key: key))
            if let alias = entry[AgentConfigurationKeys.Beacon.alias], let identity = identities.device(address) {
                beacons.append(rule(identity, alias, entry))
            }
        }
        identityResolvingKeys = []
        for entry in values[AgentConfigurationKeys.identityResolvingKeys] {
            guard let key = identities.deviceKey(entry) else { continue }
            identityResolvingKeys.append(key)
            beacons.append(rule(key.identity, entry[AgentConfigurationKeys.Resolution.alias], entry))
        }
        let keyed = values[AgentConfigurationKeys.bindKeys] + values[AgentConfigurationKeys.identityResolvingKeys]
        holdsKeys = keyed.contains { $0.isGiven(AgentConfigurationKeys.Secret.key) }
        regions = values[keys.regions].compactMap { entry in
            let name = names.intern(entry[AgentConfigurationKeys.Region.name])
            func rule(_ patterns: [IdentityPattern]) -> RegionRule {
                RegionRule(
                    name: name, patterns: patterns, exitTime: entry[AgentConfigurationKeys.Region.exitTime],
                    falseExits: entry[AgentConfigurationKeys.Region.falseExits].flatMap(FalseExitRate.init),
                    gate: SignalGate(entry, AgentConfigurationKeys.Region.signal),
                    isRanged: entry[AgentConfigurationKeys.Region.range])
            }
            if entry.isGiven(AgentConfigurationKeys.Region.beacons) {
                let members = entry[AgentConfigurationKeys.Region.beacons].compactMap { byAlias[$0] }
                return rule(members.map { IdentityPattern(identity: $0, prefix: $0.count) })
            }
            return identities.pattern(entry).map { rule([$0]) }
        }
        rangedRegions = Set(
            values[keys.regions].filter { $0[AgentConfigurationKeys.Region.range] }.map {
                names.intern($0[AgentConfigurationKeys.Region.name])
            })
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
        falseExits = FalseExitRate(values[Keys.falseExits]) ?? falseExits
        shortestExitTime = values[Keys.shortestExitTime]
        longestExitTime = values[Keys.longestExitTime]
        blindHold = values[Keys.blindHold]
        rangingInterval = values[Keys.rangingInterval]
        reportInterval = values[Keys.reportInterval]
        averageOver = Int(values[Keys.averageOver])
        filter = SignalFilter(rawValue: values[Keys.filter]) ?? filter
        pathLossExponent = values[Keys.pathLossExponent]
        gate = SignalGate(values, Keys.signal)
        maximumBeacons = Int(values[Keys.maximumBeacons])
    }
}
