// SPDX-License-Identifier: Apache-2.0

/// What an object id of BTHome v2 stands for (bthome.io, "Format"). Numbers are little-endian.
struct BTHomeObject {
    /// Where it is spelled.
    enum Section { case values, binary, events }

    enum Form {
        /// An unsigned number of so many octets, times `step`, in units of 10^-`decimals`.
        case unsigned(octets: Int, step: Int = 1, decimals: Int = 0)
        /// The same in two's complement.
        case signed(octets: Int, step: Int = 1, decimals: Int = 0)
        /// One octet, 0 or 1.
        case flag
        /// Seconds since 1970, four octets.
        case timestamp
        /// A version of so many octets, the last one first.
        case version(octets: Int)
        /// A length, then UTF-8.
        case text
        /// A length, then octets.
        case raw
        /// One octet: what was done to a button.
        case button
        /// Two octets: which way, how many steps.
        case dimmer
        /// The length of the argument in five bits, the command, the argument.
        case command
    }

    let key: String
    let form: Form

    var section: Section {
        switch form {
        case .unsigned, .signed, .timestamp, .version, .text, .raw: .values
        case .flag: .binary
        case .button, .dimmer, .command: .events
        }
    }

    /// How many octets follow the object id, given what does; nil when the object does not fit.
    func length(in octets: Span<UInt8>) -> Int? {
        let length: Int
        switch form {
        case .unsigned(let octets, _, _), .signed(let octets, _, _), .version(let octets): length = octets
        case .flag, .button: length = 1
        case .dimmer: length = 2
        case .timestamp: length = 4
        case .text, .raw:
            guard octets.count >= 1 else { return nil }
            length = 1 + Int(octets[0])
        case .command:
            guard octets.count >= 1 else { return nil }
            length = 2 + Int(octets[0] & 0x1F)
        }
        return length <= octets.count ? length : nil
    }

    /// The object of an id; nil for one that this version does not know.
    static subscript(id: UInt8) -> BTHomeObject? { table[Int(id)] }

    /// Several objects have one key and differ in unit or resolution. `docs/formats.md` lists the units.
    private static let table: [BTHomeObject?] = {
        var table = [BTHomeObject?](repeating: nil, count: 256)
        for (id, key, form) in objects { table[id] = BTHomeObject(key: key, form: form) }
        return table
    }()

    private static let objects: [(id: Int, key: String, form: Form)] = [
        (0x00, "packet_id", .unsigned(octets: 1)),
        (0x01, "battery", .unsigned(octets: 1)),
        (0x02, "temperature", .signed(octets: 2, decimals: 2)),
        (0x03, "humidity", .unsigned(octets: 2, decimals: 2)),
        (0x04, "pressure", .unsigned(octets: 3, decimals: 2)),
        (0x05, "illuminance", .unsigned(octets: 3, decimals: 2)),
        (0x06, "mass", .unsigned(octets: 2, decimals: 2)),
        (0x07, "mass", .unsigned(octets: 2, decimals: 2)),
        (0x08, "dew_point", .signed(octets: 2, decimals: 2)),
        (0x09, "count", .unsigned(octets: 1)),
        (0x0A, "energy", .unsigned(octets: 3, decimals: 3)),
        (0x0B, "power", .unsigned(octets: 3, decimals: 2)),
        (0x0C, "voltage", .unsigned(octets: 2, decimals: 3)),
        (0x0D, "pm25", .unsigned(octets: 2)),
        (0x0E, "pm10", .unsigned(octets: 2)),
        (0x0F, "generic", .flag),
        (0x10, "power", .flag),
        (0x11, "opening", .flag),
        (0x12, "carbon_dioxide", .unsigned(octets: 2)),
        (0x13, "volatile_organic_compounds", .unsigned(octets: 2)),
        (0x14, "moisture", .unsigned(octets: 2, decimals: 2)),
        (0x15, "battery", .flag),
        (0x16, "battery_charging", .flag),
        (0x17, "carbon_monoxide", .flag),
        (0x18, "cold", .flag),
        (0x19, "connectivity", .flag),
        (0x1A, "door", .flag),
        (0x1B, "garage_door", .flag),
        (0x1C, "gas", .flag),
        (0x1D, "heat", .flag),
        (0x1E, "light", .flag),
        (0x1F, "lock", .flag),
        (0x20, "moisture", .flag),
        (0x21, "motion", .flag),
        (0x22, "moving", .flag),
        (0x23, "occupancy", .flag),
        (0x24, "plug", .flag),
        (0x25, "presence", .flag),
        (0x26, "problem", .flag),
        (0x27, "running", .flag),
        (0x28, "safety", .flag),
        (0x29, "smoke", .flag),
        (0x2A, "sound", .flag),
        (0x2B, "tamper", .flag),
        (0x2C, "vibration", .flag),
        (0x2D, "window", .flag),
        (0x2E, "humidity", .unsigned(octets: 1)),
        (0x2F, "moisture", .unsigned(octets: 1)),
        (0x3A, "button", .button),
        (0x3B, "command", .command),
        (0x3C, "dimmer", .dimmer),
        (0x3D, "count", .unsigned(octets: 2)),
        (0x3E, "count", .unsigned(octets: 4)),
        (0x3F, "rotation", .signed(octets: 2, decimals: 1)),
        (0x40, "distance", .unsigned(octets: 2)),
        (0x41, "distance", .unsigned(octets: 2, decimals: 1)),
        (0x42, "duration", .unsigned(octets: 3, decimals: 3)),
        (0x43, "current", .unsigned(octets: 2, decimals: 3)),
        (0x44, "speed", .unsigned(octets: 2, decimals: 2)),
        (0x45, "temperature", .signed(octets: 2, decimals: 1)),
        (0x46, "uv_index", .unsigned(octets: 1, decimals: 1)),
        (0x47, "volume", .unsigned(octets: 2, decimals: 1)),
        (0x48, "volume", .unsigned(octets: 2)),
        (0x49, "volume_flow_rate", .unsigned(octets: 2, decimals: 3)),
        (0x4A, "voltage", .unsigned(octets: 2, decimals: 1)),
        (0x4B, "gas", .unsigned(octets: 3, decimals: 3)),
        (0x4C, "gas", .unsigned(octets: 4, decimals: 3)),
        (0x4D, "energy", .unsigned(octets: 4, decimals: 3)),
        (0x4E, "volume", .unsigned(octets: 4, decimals: 3)),
        (0x4F, "water", .unsigned(octets: 4, decimals: 3)),
        (0x50, "timestamp", .timestamp),
        (0x51, "acceleration", .unsigned(octets: 2, decimals: 3)),
        (0x52, "gyroscope", .unsigned(octets: 2, decimals: 3)),
        (0x53, "text", .text),
        (0x54, "raw", .raw),
        (0x55, "volume_storage", .unsigned(octets: 4, decimals: 3)),
        (0x56, "conductivity", .unsigned(octets: 2)),
        (0x57, "temperature", .signed(octets: 1)),
        (0x58, "temperature", .signed(octets: 1, step: 35, decimals: 2)),
        (0x59, "count", .signed(octets: 1)),
        (0x5A, "count", .signed(octets: 2)),
        (0x5B, "count", .signed(octets: 4)),
        (0x5C, "power", .signed(octets: 4, decimals: 2)),
        (0x5D, "current", .signed(octets: 2, decimals: 3)),
        (0x5E, "direction", .unsigned(octets: 2, decimals: 2)),
        (0x5F, "precipitation", .unsigned(octets: 2, decimals: 1)),
        (0x60, "channel", .unsigned(octets: 1)),
        (0x61, "rotational_speed", .unsigned(octets: 2)),
        (0x62, "speed", .signed(octets: 4, decimals: 6)),
        (0x63, "acceleration", .signed(octets: 4, decimals: 6)),
        (0x64, "light_level", .unsigned(octets: 1)),
        (0xF0, "device_type_id", .unsigned(octets: 2)),
        (0xF1, "firmware_version", .version(octets: 4)),
        (0xF2, "firmware_version", .version(octets: 3)),
    ]
}
