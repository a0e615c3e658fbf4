// SPDX-License-Identifier: Apache-2.0

import BeaconModel
public import Configuration
public import Simulation

/// A scenario of the simulated radio as a JSON file: its keys, and what they mean.
///
/// `docs/simulation.md` describes the model behind them.
public enum ScenarioFile {
    private typealias Text = Shape.TextRule

    /// A year: longer than any scenario that somebody waits for.
    private static let anyTime = TimeInterval.zero ... .seconds(365 * 86_400)
    /// More than a hall full of beacons; a limit only so that a mistake is one.
    private static let manyEntries = 0...10_000

    // MARK: Periods and places

    private static let from = Key.duration("from", default: .zero, in: anyTime, "When it begins.")
    private static let to = Key.optionalDuration(
        "to", in: anyTime, example: #""12s""#, "When it is over; if not given, at the end.")
    private static let periodSection = Section([from.declaration, to.declaration], check: checkPeriod)

    static func checkPeriod(_ values: Values, _ complaints: inout Complaints) {
        if let to = values[to], to <= values[from] { complaints.add("to", "is not later than \"from\"") }
    }

    private static let at = Key.duration("at", default: .zero, in: anyTime, "When the beacon is at this distance.")
    private static let distance = Key.number("distance", default: 1, in: 0...1000, "Metres from the radios.")
    private static let waypointSection = Section([at.declaration, distance.declaration])

    private static let beyond = Key.number(
        "beyond", default: 0, in: 0...1000, "Metres from the radios; beacons farther away are behind the wall.")
    private static let attenuation = Key.number(
        "attenuation", default: 6, in: 0...120, "How much weaker it makes what comes from behind it, in dB.")
    private static let wallSection = Section(
        [beyond.declaration, attenuation.declaration, from.declaration, to.declaration], check: checkPeriod)

    // MARK: Radios

    private static let radioName = Key.text(
        "name", default: "sim0", Text(maximumBytes: 32), "The name of the adapter in events.")
    private static let scanTimes = TimeInterval(nanoseconds: 2_500_000) ... .milliseconds(10_240)
    private static let window = Key.duration(
        "window", default: .milliseconds(100), in: scanTimes, "How long it listens out of every interval.")
    private static let scanInterval = Key.duration(
        "interval", default: .milliseconds(100), in: scanTimes,
        "The scan interval; each one uses the next of the three channels.")
    private static let extended = Key.boolean(
        "extended", default: false, "Report with LE Extended Advertising Report instead of LE Advertising Report.")
    private static let sensitivity = Key.number(
        "sensitivity", default: -95, in: -127...0, "The weakest strength that is received, in dBm.")
    private static let blind = Key.sections(
        "blind", of: periodSection, count: manyEntries, example: #"[{ "from": "10s", "to": "20s" }]"#,
        "When the radio should listen and cannot.")
    private static let burstTimes = TimeInterval.milliseconds(1) ... .seconds(86_400)
    private static let on = Key.duration("on", default: .seconds(10), in: burstTimes, "How long it scans.")
    private static let off = Key.duration("off", default: .seconds(50), in: burstTimes, "How long it then pauses.")
    private static let burst = Key.section(
        "burst", Section([on.declaration, off.declaration]),
        "Scan for a while, pause for a while, and repeat; if not given, it never pauses.")
    private static let radioSection = Section(
        [
            radioName.declaration, window.declaration, scanInterval.declaration, extended.declaration,
            sensitivity.declaration, blind.declaration, burst.declaration,
        ], check: checkRadio)

    static func checkRadio(_ values: Values, _ complaints: inout Complaints) {
        if values[window] > values[scanInterval] { complaints.add("window", "is longer than \"interval\"") }
    }

    // MARK: Beacons

    private static let alias = Key.text(
        "alias", default: "", Text(maximumBytes: 64, mayBeEmpty: true),
        "What to call it when the simulation is compared with what was received.")
    private static let format = Key.choice(
        "format", default: "ibeacon", of: ["ibeacon", "altbeacon", "eddystone-uid"],
        "What it advertises, unless a payload is given.")
    private static let uuidRule = Text(
        maximumBytes: 36, pattern: "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$", expected: "a UUID",
        check: { $0.utf8.count == 36 && UUIDText.octets($0) != nil })
    private static let identifier = Int64(0)...Int64(UInt16.max)
    private static let uuid = Key.optionalText(
        "uuid", uuidRule, example: #""f7826da6-4fa2-4e98-8024-bc5b71e0893e""#, "The UUID of an iBeacon.")
    private static let major = Key.integer("major", default: 0, in: identifier, "The major of an iBeacon.")
    private static let minor = Key.integer("minor", default: 0, in: identifier, "The minor of an iBeacon.")
    private static let id1 = Key.optionalText(
        "id1", uuidRule, example: #""2f234454-cf6d-4a0f-adf2-f4911ba9ffa6""#,
        "The first 16 octets of the id of an AltBeacon.")
    private static let id2 = Key.integer("id2", default: 0, in: identifier, "Octets 17 and 18 of it.")
    private static let id3 = Key.integer("id3", default: 0, in: identifier, "Octets 19 and 20 of it.")
    private static let namespace = Key.optionalText(
        "namespace", hexadecimal(10...10), example: #""edd1ebeac04e5defa017""#,
        "The namespace of an Eddystone UID.")
    private static let instance = Key.optionalText(
        "instance", hexadecimal(6...6), example: #""0123456789ab""#, "The instance of an Eddystone UID.")
    private static let payload = Key.optionalText(
        "payload", hexadecimal(0...Advertisement.capacity), example: #""0201060303aafe""#,
        "The whole advertising data, at most 31 octets, instead of a format.")

    /// The keys that spell an identity, each with the format that it belongs to.
    private static let identityKeys = [
        IdentityKey(uuid, of: "ibeacon", isRequired: true), IdentityKey(major, of: "ibeacon"),
        IdentityKey(minor, of: "ibeacon"),
        IdentityKey(id1, of: "altbeacon", isRequired: true), IdentityKey(id2, of: "altbeacon"),
        IdentityKey(id3, of: "altbeacon"),
        IdentityKey(namespace, of: "eddystone-uid", isRequired: true),
        IdentityKey(instance, of: "eddystone-uid", isRequired: true),
    ]

    private struct IdentityKey: Sendable {
        let declaration: AnyKey
        let format: String
        let isRequired: Bool
        let isGiven: @Sendable (Values) -> Bool

        init<Content>(_ key: Key<Content>, of format: String, isRequired: Bool = false) {
            declaration = key.declaration
            self.format = format
            self.isRequired = isRequired
            isGiven = { $0.isGiven(key) }
        }
    }

    private static let address = Key.optionalText(
        "address",
        Text(
            maximumBytes: 17, pattern: "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$", expected: "an address",
            check: { DeviceAddress(text: $0, kind: .randomDevice) != nil }),
        example: #""C3:00:00:12:34:56""#, "Its address; if not given, a random static one that follows from the seed.")
    private static let addressKind = Key.choice(
        "address_kind", default: "random", of: ["random", "public"], "The kind of the address that is given.")
    private static let rotateAddress = Key.optionalDuration(
        "rotate_address", in: .milliseconds(100) ... .seconds(86_400), example: #""15m""#,
        "How often it takes a new private address.")
    private static let measuredPower = Key.integer(
        "measured_power", default: -59, in: -127...20, "The strength at 1 m in dBm; its frames say the same.")
    private static let advertisingInterval = Key.duration(
        "interval", default: .milliseconds(100), in: .milliseconds(20) ... .milliseconds(10_240),
        "The advertising interval, without the up to 10 ms that are added to each.")
    private static let path = Key.sections(
        "path", of: waypointSection, count: manyEntries,
        example: #"[{ "at": "5s", "distance": 8 }, { "at": "20s", "distance": 0.5 }]"#,
        "Where it is, straight between the points; if not given, 1 m away.")
    private static let visits = Key.sections(
        "visits", of: periodSection, count: manyEntries, example: #"[{ "from": "5s", "to": "12s" }]"#,
        "When it is there at all; if not given, always.")
    private static let silent = Key.sections(
        "silent", of: periodSection, count: manyEntries, example: #"[{ "from": "15s" }]"#,
        "When it is there and does not advertise.")
    private static let loss = Key.number(
        "loss", default: 0, in: 0...1, "The share of its packets that is lost for no other reason.")

    private static let beaconSection = Section(
        [alias.declaration, format.declaration] + identityKeys.map(\.declaration) + [
            payload.declaration, address.declaration, addressKind.declaration, rotateAddress.declaration,
            measuredPower.declaration, advertisingInterval.declaration, path.declaration, visits.declaration,
            silent.declaration, loss.declaration,
        ], check: checkBeacon)

    static func checkBeacon(_ values: Values, _ complaints: inout Complaints) {
        let chosen = values.isGiven(payload) ? nil : values[format]
        if chosen == nil, values.isGiven(format) { complaints.add("format", "does not go with \"payload\"") }
        for key in identityKeys {
            let name = key.declaration.name
            if key.format == chosen {
                if key.isRequired, !key.isGiven(values) {
                    complaints.add(nil, "the format \"\(key.format)\" needs \"\(name)\"")
                }
            } else if key.isGiven(values) {
                complaints.add(name, "belongs to the format \"\(key.format)\"")
            }
        }
        if values.isGiven(rotateAddress), values.isGiven(address) {
            complaints.add("rotate_address", "does not go with \"address\"")
        }
        let times = values[path].map { $0[at] }
        if zip(times, times.dropFirst()).contains(where: { $0 >= $1 }) {
            complaints.add("path", "its points are not in the order of time")
        }
    }

    // MARK: The file

    private static let seed = Key.integer(
        "seed", default: 1, in: 0 ... .max, "Everything random follows from it: the same seed, the same packets.")
    private static let duration = Key.duration(
        "duration", default: .seconds(60), in: .milliseconds(1)...anyTime.upperBound, "When the simulation ends.")
    private static let pathLossExponent = Key.number(
        "path_loss_exponent", default: 2, in: 0...10,
        "How fast the strength falls with the distance: 2 in free space, up to 4 in buildings.")
    private static let noise = Key.number(
        "noise", default: 4, in: 0...40, "Standard deviation of the strength from packet to packet, in dB.")
    private static let walls = Key.sections(
        "walls", of: wallSection, count: manyEntries, example: #"[{ "beyond": 5, "attenuation": 8 }]"#,
        "What weakens the beacons behind it.")
    private static let radios = Key.sections(
        "radios", of: radioSection, count: 0...64, example: #"[{ "name": "sim0" }]"#,
        "The radios, all in one place; if not given, one that listens all the time.")
    private static let beacons = Key.sections(
        "beacons", of: beaconSection, count: manyEntries,
        example: #"[{ "uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1, "minor": 2 }]"#,
        "Who advertises.")

    /// The keys of the file.
    public static let section = Section(
        [
            seed.declaration, duration.declaration, pathLossExponent.declaration, noise.declaration,
            walls.declaration, radios.declaration, beacons.declaration,
        ], check: checkFile)

    static func checkFile(_ values: Values, _ complaints: inout Complaints) {
        let names = values[radios].map { $0[radioName] }
        if Set(names).count < names.count { complaints.add("radios", "two radios have the same \"name\"") }
    }

    private static func hexadecimal(_ octets: ClosedRange<Int>) -> Text {
        let digits = octets.lowerBound * 2...octets.upperBound * 2
        let isExact = octets.lowerBound == octets.upperBound
        return Text(
            maximumBytes: digits.upperBound, mayBeEmpty: octets.lowerBound == 0,
            pattern: "^([0-9A-Fa-f]{2}){\(octets.lowerBound),\(octets.upperBound)}$",
            expected: isExact
                ? "\(digits.upperBound) hexadecimal digits"
                : "up to \(digits.upperBound) hexadecimal digits, two an octet",
            check: { Hexadecimal.octets($0).map { octets.contains($0.count) } ?? false })
    }
}

extension Scenario {
    /// The scenario that a file describes.
    ///
    /// - Parameter values: read through ``ScenarioFile/section``, which has checked them.
    public init(_ values: Values) {
        self = ScenarioFile.scenario(values)
    }
}

extension ScenarioFile {
    fileprivate static func scenario(_ values: Values) -> Scenario {
        let radios = values[radios].map(radio)
        return Scenario(
            seed: UInt64(values[seed].magnitude), duration: values[duration],
            radios: radios.isEmpty ? [radio(Values())] : radios, beacons: values[beacons].map(beacon),
            pathLossExponent: values[pathLossExponent], noise: values[noise],
            walls: values[walls].map {
                Scenario.Wall(distance: $0[beyond], attenuation: $0[attenuation], period: period($0))
            })
    }

    private static func radio(_ values: Values) -> Scenario.Radio {
        var radio = Scenario.Radio(
            name: values[radioName], window: values[window], interval: values[scanInterval],
            isExtended: values[extended], sensitivity: values[sensitivity], blind: values[blind].map(period),
            burst: values.isGiven(burst)
                ? Scenario.Burst(on: values[burst][on], off: values[burst][off]) : nil)
        radio.isDirected = !values.isGiven(window) && !values.isGiven(scanInterval) && !values.isGiven(burst)
        return radio
    }

    private static func beacon(_ values: Values) -> Scenario.Beacon {
        let kind: DeviceAddress.Kind = values[addressKind] == "public" ? .publicDevice : .randomDevice
        let everything = [MonotonicTime.zero ..< .distantFuture]
        return Scenario.Beacon(
            alias: values[alias], advertisement: advertisement(values),
            address: values[address].flatMap { DeviceAddress(text: $0, kind: kind) },
            addressRotation: values[rotateAddress],
            measuredPower: Int8(clamping: values[measuredPower]), interval: values[advertisingInterval],
            path: values[path].map { Scenario.Waypoint(time: .zero + $0[at], distance: $0[distance]) },
            visits: values.isGiven(visits) ? values[visits].map(period) : everything,
            silent: values[silent].map(period), loss: values[loss])
    }

    /// An empty advertisement for values that were not checked.
    private static func advertisement(_ values: Values) -> Advertisement {
        if let payload = values[payload] { return .payload(Hexadecimal.octets(payload) ?? []) }
        switch values[format] {
        case "altbeacon":
            guard let id1 = values[id1].flatMap(UUIDText.octets) else { return .payload([]) }
            return .altBeacon(
                id1: id1, id2: UInt16(clamping: values[id2]), id3: UInt16(clamping: values[id3]))
        case "eddystone-uid":
            guard let namespace = values[namespace].flatMap({ Hexadecimal.octets($0) }),
                let instance = values[instance].flatMap({ Hexadecimal.octets($0) })
            else { return .payload([]) }
            return .eddystoneUID(namespace: namespace, instance: instance)
        default:
            guard let uuid = values[uuid].flatMap(UUIDText.octets) else { return .payload([]) }
            return .iBeacon(
                uuid: uuid, major: UInt16(clamping: values[major]), minor: UInt16(clamping: values[minor]))
        }
    }

    /// Empty for values that were not checked and end before they begin.
    private static func period(_ values: Values) -> Range<MonotonicTime> {
        let start = MonotonicTime.zero + values[from]
        return start..<max(start, values[to].map { .zero + $0 } ?? .distantFuture)
    }
}
