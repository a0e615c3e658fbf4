// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Glibc
import LinuxIO
import Presence

/// Beacons that somebody approved while the program runs. They are treated as if they stood behind the `beacons` of
/// `plugins.json`, in whose syntax they are kept, in a file of the state directory.
public struct ApprovedBeacons {
    /// So that nobody who may send commands fills a broker or a Home Assistant.
    public static let capacity = 100

    struct Beacon: Equatable {
        var identity: BeaconIdentity
        var alias: String?
    }

    /// Why something was not done.
    struct Refusal: Error, CustomStringConvertible {
        let reason: String
        var description: String { reason }
    }

    private(set) var beacons: [Beacon] = []
    /// Why the file could not be read. It is left as it is, and nothing is approved until somebody has mended it.
    private(set) var trouble: String?
    /// nil when there is no state directory.
    private let path: String?
    private let formats: FormatCatalog

    /// Reads the file, if there is one.
    ///
    /// - Parameter formats: the built-in formats and those of the configuration.
    init(directory: String?, formats: FormatCatalog) {
        path = directory.map { "\($0)/approved.json" }
        self.formats = formats
        guard let path else { return }
        do throws(AgentConfiguration.LoadError) { beacons = try Self.load(path, formats) } catch {
            if case .unreadable(let error) = error, error.code == ENOENT { return }
            trouble = error.description
        }
    }

    private static func load(_ path: String, _ formats: FormatCatalog) throws(AgentConfiguration.LoadError) -> [Beacon]
    {
        let text: [UInt8]
        do { text = try FileDescriptor.contents(of: path, limit: ConfigurationReader.maximumBytes) } catch {
            throw .unreadable(error)
        }
        do { return try read(text, path, formats) } catch { throw .refused(error) }
    }

    private static func read(
        _ text: [UInt8], _ path: String, _ formats: FormatCatalog
    ) throws(ConfigurationError) -> [Beacon] {
        typealias Keys = AgentConfigurationKeys
        let identities = IdentityKeys(formats, CustomFormats())
        let keys = [Keys.Beacon.alias.declaration] + identities.declarations
        let section = Section(
            keys, checks: [identities.formatCheck, .init(keys) { identities.check($0, isComplete: true, &$1) }])
        let list = Key<[Values]>.sections("beacons", of: section, count: 0...capacity, "Approved beacons.")
        let check = Section.Check([list.declaration]) { Keys.checkDevices($0, list, identities, &$1) }
        let values = try ConfigurationReader.read(
            text, file: path, section: Section([list.declaration], checks: [check]))
        return values[list].compactMap { entry in
            identities.identity(entry).map { Beacon(identity: $0, alias: entry[Keys.Beacon.alias]) }
        }
    }

    // MARK: Use

    /// A configuration with these beacons. What it names itself stays as it is, and keeps its alias.
    func joined(to configuration: AgentConfiguration, _ names: NameTable) -> AgentConfiguration {
        var joined = configuration
        let named = Set(configuration.beacons.map(\.identity))
        let aliases = Set(configuration.beacons.map { names[$0.alias] })
        for beacon in beacons where !named.contains(beacon.identity) {
            let alias = beacon.alias.flatMap { aliases.contains($0) ? nil : names.intern($0) }
            joined.beacons.append(BeaconRule(identity: beacon.identity, alias: alias ?? .none))
        }
        return joined
    }

    /// The place of the beacon that is meant by an alias or an identity.
    private func place(of text: String) -> Int? {
        beacons.firstIndex { $0.alias == text } ?? beacons.firstIndex { $0.identity == formats.identity(text) }
            ?? beacons.firstIndex { formats.isText(text, of: $0.identity) }
    }

    // MARK: Changes

    /// Adds a beacon, or gives one that is there another alias; without an alias it keeps the one it has.
    ///
    /// - Parameter configuration: that of the file, without these beacons.
    mutating func approve(
        _ identity: BeaconIdentity, alias: String?, beside configuration: AgentConfiguration, _ names: NameTable
    ) throws(Refusal) {
        if let rule = configuration.beacons.first(where: { $0.identity == identity }) {
            guard alias == nil || alias == names[rule.alias] else {
                throw Refusal(reason: "the configuration file names this beacon; change its alias there")
            }
            return
        }
        if let alias {
            let isTaken =
                configuration.beacons.contains { names[$0.alias] == alias }
                || beacons.contains { $0.alias == alias && $0.identity != identity }
            guard !isTaken else { throw Refusal(reason: "$.alias: another beacon has it") }
        }
        var changed = beacons
        if let place = changed.firstIndex(where: { $0.identity == identity }) {
            changed[place].alias = alias ?? changed[place].alias
        } else {
            guard changed.count < Self.capacity else {
                throw Refusal(
                    reason: "\(Self.capacity) beacons are approved already; more belong into the configuration file")
            }
            changed.append(Beacon(identity: identity, alias: alias))
        }
        try keep(changed)
    }

    /// Takes a beacon out.
    mutating func disapprove(
        _ text: String, beside configuration: AgentConfiguration, _ names: NameTable
    ) throws(Refusal) {
        var changed = beacons
        guard let place = place(of: text) else {
            let identity = formats.identity(text)
            if configuration.beacons.contains(where: { names[$0.alias] == text || $0.identity == identity }) {
                throw Refusal(reason: "the configuration file names this beacon; take it out there, and reload")
            }
            guard !beacons.isEmpty else { throw Refusal(reason: "no beacon is approved") }
            throw Refusal(
                reason: Suggestion.complaint(
                    about: text, kind: "beacon", in: beacons.map { $0.alias ?? formats.text(of: $0.identity) }))
        }
        changed.remove(at: place)
        try keep(changed)
    }

    /// Writes the file as a whole and has it on the disk before anybody is told. That takes as long as the disk does,
    /// which for something that a person does now and then is no harm.
    private mutating func keep(_ changed: [Beacon]) throws(Refusal) {
        guard let path else {
            throw Refusal(reason: "there is no \"state_directory\" to keep it in; put it into the configuration file")
        }
        if let trouble { throw Refusal(reason: "mend or remove the file first: \(trouble)") }
        guard changed != beacons else { return }
        var writer = JSONWriter()
        write(changed, into: &writer)
        writer.newline()
        do { try FileDescriptor.replace(path, with: writer.bytes) } catch {
            throw Refusal(reason: "it could not be kept: \(error)")
        }
        beacons = changed
    }

    private func write(_ beacons: [Beacon], into writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("beacons")
        writer.beginArray()
        for beacon in beacons {
            writer.beginObject()
            write(beacon, into: &writer)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }

    /// Writes the members of one.
    func write(_ beacon: Beacon, into writer: inout JSONWriter) {
        if let alias = beacon.alias {
            writer.key("alias")
            writer.string(alias)
        }
        formats.write(beacon.identity, into: &writer)
    }
}
