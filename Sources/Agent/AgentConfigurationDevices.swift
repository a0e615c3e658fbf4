// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Configuration
import Crypto

// The keys by which a file adds formats, and those that tell one device from another.

extension AgentConfigurationKeys {
    enum Format {
        static let name = Key<String>.requiredText(
            "name",
            .init(
                maximumBytes: 32, pattern: "^[a-z0-9]+(-[a-z0-9]+)*$",
                expected: "lower-case letters, digits and single dashes between them",
                check: { name in
                    name.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).allSatisfy { word in
                        !word.isEmpty
                            && word.allSatisfy { character in
                                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character)
                                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character)
                            }
                    }
                }), example: "\"asset-tag\"", "The name of the format in events, topics and \"format\".")
        static let layout = Key<String>.requiredText(
            "layout", .init(maximumBytes: 255, expected: "a layout string"),
            example: "\"m:2-3=beac,i:4-19,i:20-21,i:22-23,p:24-24\"",
            "Where things stand in a frame, as a layout string of the AltBeacon library.")
        static let companyID = Key<Int64?>.optionalInteger(
            "company_id", in: 0...65_535,
            "The company whose manufacturer data it is; any company unless it or the layout says so.")

        static func section(builtin: FormatCatalog) -> Section {
            Section(
                [name.declaration, layout.declaration, companyID.declaration],
                checks: [
                    .init([name.declaration]) { values, complaints in
                        guard builtin.id(named: values[name]) != nil else { return }
                        complaints.add("name", "\"\(values[name])\" is a built-in format; choose another name")
                    },
                    .init([layout.declaration]) { values, complaints in
                        do throws(LayoutError) { _ = try LayoutString(values[layout]) } catch {
                            complaints.add("layout", error.description)
                        }
                    },
                    .init([layout.declaration, companyID.declaration]) { checkCompany($0, &$1) },
                ])
        }

        private static func checkCompany(_ values: Values, _ complaints: inout Complaints) {
            guard let company = values[companyID], let layout = try? LayoutString(values[layout]) else { return }
            if !layout.isManufacturerData {
                complaints.add("company_id", "belongs to manufacturer data, but the layout is of service data")
            } else if let fixed = layout.companyID, Int64(fixed) != company {
                complaints.add("company_id", "the layout is of company \(fixed)")
            }
        }
    }

    /// A key of 128 bits, in the file or beside it.
    enum Secret {
        static let key = Key<String?>.optionalText(
            "key",
            .init(
                maximumBytes: 32, pattern: "^[0-9A-Fa-f]{32}$", expected: KeyText.expected,
                check: { KeyText.key($0) != nil }), "The key, most significant octet first.")
        static let keyFile = Key<String?>.optionalText(
            "key_file", .init(maximumBytes: 4095, expected: "the path of a file"),
            "A file that holds the key and nothing else, instead of \"key\".")
        static let declarations = [key.declaration, keyFile.declaration]

        static let check = Section.Check(declarations) { values, complaints in
            switch (values[key], values[keyFile]) {
            case (nil, nil): complaints.add(nil, "needs \"key\" or \"key_file\"")
            case (.some, .some): complaints.add("key_file", "stands instead of \"key\"; give one of them")
            case (nil, let path?):
                do throws(KeyText.Failure) { _ = try KeyText.contents(of: path) } catch {
                    complaints.add("key_file", error.description)
                }
            case (.some, nil): break
            }
        }

        static func octets(_ values: Values) -> [16 of UInt8]? {
            if let text = values[key] { return KeyText.key(text) }
            return values[keyFile].flatMap { try? KeyText.contents(of: $0) }
        }
    }

    enum Decryption {
        static let address = Key<String>.requiredText(
            "address",
            .init(
                maximumBytes: 17, pattern: "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$",
                expected: "an address such as \"c4:7c:8d:6a:11:22\"",
                check: { DeviceAddress(text: $0, kind: .publicDevice) != nil }), example: "\"c4:7c:8d:6a:11:22\"",
            "The address of the device.")

        static let section = Section(
            [address.declaration] + Secret.declarations + [Beacon.alias.declaration], checks: [Secret.check])

        static func address(_ values: Values) -> DeviceAddress? {
            DeviceAddress(text: values[address], kind: .publicDevice)
        }
    }

    enum Resolution {
        static let alias = Key<String>.requiredText(
            "alias", nameRule, example: "\"phone\"", "The name that people know the device by.")

        static let section = Section(
            [alias.declaration] + Secret.declarations + Beacon.rules, checks: [Secret.check])
    }

    static let bindKeys = Key<[Values]>.sections(
        "bind_keys", of: Decryption.section, count: 0...1000,
        "Keys of devices that encrypt what they send, such as BTHome sensors.")
    static let identityResolvingKeys = Key<[Values]>.sections(
        "identity_resolving_keys", of: Resolution.section, count: 0...1000,
        "Keys of devices that change their address, such as phones; each is a beacon of format \"irk\".")
}

// MARK: From values

extension IdentityKeys {
    /// The identity of a device with an address; nil when the catalog has no such format.
    func device(_ address: DeviceAddress) -> BeaconIdentity? {
        formats.id(named: FormatDefinition.device.format.name).map { BeaconIdentity(address: address, format: $0) }
    }

    /// The key of an entry of `identity_resolving_keys`.
    func deviceKey(_ entry: Values) -> DeviceKey? {
        guard let octets = AgentConfigurationKeys.Secret.octets(entry),
            let format = formats.id(named: FormatDefinition.irk.format.name)
        else { return nil }
        return DeviceKey(octets, format: format)
    }
}

// MARK: Checks across keys

extension AgentConfigurationKeys {
    static func checkFormatNames(_ entries: [Values], _ complaints: inout Complaints) {
        checkUnique(
            entries.enumerated().map { (["formats", .index($0), "name"], $1[Format.name], $1.line) }, "name",
            &complaints)
    }

    /// Each beacon and each alias once, wherever it is named, and one key for a device.
    static func checkDevices(
        _ values: Values, _ beacons: Key<[Values]>, _ identities: IdentityKeys, _ complaints: inout Complaints
    ) {
        var named: [BeaconIdentity: Int] = [:]
        var keyed: [BeaconIdentity: Int] = [:]
        var aliases: [(path: [PathStep], name: String?, line: Int)] = []
        func once(
            _ identity: BeaconIdentity?, _ what: String, _ list: Key<[Values]>, _ index: Int, _ line: Int,
            in lines: inout [BeaconIdentity: Int]
        ) {
            guard let identity else { return }
            if let first = lines[identity] {
                complaints.add(
                    at: [.key(list.declaration.name), .index(index)], "the same \(what) as on line \(first)")
            } else {
                lines[identity] = line
            }
        }
        for (index, entry) in values[beacons].enumerated() {
            once(identities.identity(entry), "beacon", beacons, index, entry.line, in: &named)
            aliases.append((["beacons", .index(index), "alias"], entry[Beacon.alias], entry.line))
        }
        for (index, entry) in values[bindKeys].enumerated() {
            let identity = Decryption.address(entry).flatMap(identities.device)
            once(identity, "device", bindKeys, index, entry.line, in: &keyed)
            guard let alias = entry[Beacon.alias] else { continue }
            once(identity, "beacon", bindKeys, index, entry.line, in: &named)
            aliases.append((["bind_keys", .index(index), "alias"], alias, entry.line))
        }
        for (index, entry) in values[identityResolvingKeys].enumerated() {
            let key = identities.deviceKey(entry)
            once(key?.identity, "beacon", identityResolvingKeys, index, entry.line, in: &named)
            aliases.append((["identity_resolving_keys", .index(index), "alias"], entry[Resolution.alias], entry.line))
        }
        checkUnique(aliases, "alias", &complaints)
    }

    static func checkUnique(
        _ names: [(path: [PathStep], name: String?, line: Int)], _ key: String, _ complaints: inout Complaints
    ) {
        var lines: [String: Int] = [:]
        for entry in names {
            guard let name = entry.name else { continue }
            if let line = lines[name] {
                complaints.add(at: entry.path, "\"\(name)\" is already the \(key) of the entry on line \(line)")
            } else {
                lines[name] = entry.line
            }
        }
    }
}
