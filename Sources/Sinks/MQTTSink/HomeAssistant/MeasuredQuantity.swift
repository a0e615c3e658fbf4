// SPDX-License-Identifier: Apache-2.0

/// Something that a frame measures, as Home Assistant shows it: a member of the payload of a sighting, its name, and the
/// classes and units that go together there (its `sensor/const.py` and `binary_sensor`).
///
/// `µ` is the micro sign, U+00B5: older releases know no other, newer ones take it for theirs. Where a class is younger
/// than 2024.3, or needs a state class that would be wrong, there is none.
struct MeasuredQuantity {
    enum Place {
        /// A member of the payload itself.
        case top
        /// One of the three numbers of such a member.
        case axis(Int)
        /// A member of `values`, of BTHome.
        case values
        /// A member of `binary`, of BTHome.
        case binary
    }

    /// Unique among all; the end of the unique id.
    var key: String
    /// The end of the id that the entity has at first.
    var slug: String
    var name: String
    /// The member of the payload.
    var member: String
    var place: Place
    var deviceClass: String?
    var unit: String?
    var stateClass: String? = "measurement"
    var isDiagnostic = false
    var isEnabled = true

    var component: DiscoveryEntity.Component {
        if case .binary = place { return .binarySensor }
        return key == "calibrating" ? .binarySensor : .sensor
    }

    /// What is missing in a payload renders as nothing, which is ignored, and null as `None`, which is unknown.
    var template: String {
        let flags = "{true: 'ON', false: 'OFF'}"
        return switch place {
        case .top where component == .binarySensor: "{{ \(flags).get(value_json.get('\(member)'), '') }}"
        // No voltage is none that was measured.
        case .top where member == "battery_mv":
            "{{ value_json.get('battery_mv', '') or ('None' if value_json.get('battery_mv') == 0 else '') }}"
        case .top: "{{ value_json.get('\(member)', '') }}"
        case .axis(let index): "{{ value_json['\(member)'][\(index)] if '\(member)' in value_json else '' }}"
        case .values: "{{ value_json.get('values', {}).get('\(member)', '') }}"
        case .binary: "{{ \(flags).get(value_json.get('binary', {}).get('\(member)'), '') }}"
        }
    }

    /// The quantity of a key; that of one of several alike has a number behind it, `temperature_2`.
    static func named(_ key: String) -> MeasuredQuantity? {
        if let quantity = table[key] { return quantity }
        guard let end = key.utf8.lastIndex(of: UInt8(ascii: "_")),
            let number = UInt8(key[key.index(after: end)...]), number > 0,
            var quantity = table[String(key[..<end])]
        else { return nil }
        switch quantity.place {
        case .top, .axis: return nil
        case .values, .binary: break
        }
        quantity.key = key
        quantity.slug += "_\(number)"
        quantity.member += "_\(number)"
        quantity.name += " \(number)"
        return quantity
    }

    /// The keys of what a member of a payload measures.
    static func keys(top member: String) -> [String] {
        member == "accel_g" ? ["accel_x", "accel_y", "accel_z"] : table[member].map { $0.isTop ? [$0.key] : [] } ?? []
    }

    static func key(values member: String) -> String? {
        // The distance of the beacon itself is another one.
        let key = member.hasPrefix("distance") ? "measured_\(member)" : member
        guard case .values = named(key)?.place else { return nil }
        return key
    }

    static func key(binary member: String) -> String? { named("flag_\(member)")?.key }

    private var isTop: Bool { if case .top = place { true } else { false } }

    /// All names, none of which a name of a device may begin.
    static let names: [String] = table.values.map(\.name)

    private static let table: [String: MeasuredQuantity] = {
        var table: [String: MeasuredQuantity] = [:]
        for quantity in top + axes + values + flags { table[quantity.key] = quantity }
        return table
    }()

    private static func top(
        _ member: String, _ slug: String, _ name: String, _ deviceClass: String?, _ unit: String?,
        stateClass: String? = "measurement", isDiagnostic: Bool = false
    ) -> Self {
        Self(
            key: member, slug: slug, name: name, member: member, place: .top, deviceClass: deviceClass, unit: unit,
            stateClass: stateClass, isDiagnostic: isDiagnostic)
    }

    private static let top = [
        top("temperature_c", "temperature", "Temperature", "temperature", "°C"),
        top("humidity_percent", "humidity", "Humidity", "humidity", "%"),
        top("pressure_pa", "pressure", "Pressure", "atmospheric_pressure", "Pa"),
        top("battery_v", "battery_voltage", "Battery voltage", "voltage", "V", isDiagnostic: true),
        top("battery_mv", "battery_voltage", "Battery voltage", "voltage", "mV", isDiagnostic: true),
        top("movement", "movement", "Movements", nil, nil, stateClass: "total_increasing"),
        top("pm1_ug_m3", "pm1", "PM1", "pm1", "µg/m³"),
        top("pm2_5_ug_m3", "pm25", "PM2.5", "pm25", "µg/m³"),
        top("pm4_ug_m3", "pm4", "PM4", nil, "µg/m³"),
        top("pm10_ug_m3", "pm10", "PM10", "pm10", "µg/m³"),
        top("co2_ppm", "co2", "CO2", "carbon_dioxide", "ppm"),
        top("voc_index", "voc_index", "VOC index", nil, nil),
        top("nox_index", "nox_index", "NOx index", nil, nil),
        top("luminosity_lux", "illuminance", "Illuminance", "illuminance", "lx"),
        top("calibrating", "calibrating", "Calibrating", nil, nil, stateClass: nil, isDiagnostic: true),
    ]

    /// They change with every sighting.
    private static let axes = ["x", "y", "z"].enumerated().map { index, axis in
        Self(
            key: "accel_\(axis)", slug: "acceleration_\(axis)", name: "Acceleration \(axis)", member: "accel_g",
            place: .axis(index), unit: "g", isEnabled: false)
    }

    private static func value(
        _ member: String, _ name: String, _ deviceClass: String? = nil, _ unit: String? = nil,
        stateClass: String? = "measurement", isDiagnostic: Bool = false
    ) -> Self {
        let key = member == "distance" ? "measured_distance" : member
        return Self(
            key: key, slug: key, name: name, member: member, place: .values, deviceClass: deviceClass, unit: unit,
            stateClass: stateClass, isDiagnostic: isDiagnostic)
    }

    /// BTHome. Two objects of different units share the members `mass`, `distance` and `volume`, which have none here.
    private static let values = [
        value("battery", "Battery", "battery", "%", isDiagnostic: true),
        value("temperature", "Temperature", "temperature", "°C"),
        value("humidity", "Humidity", "humidity", "%"),
        value("pressure", "Pressure", "atmospheric_pressure", "hPa"),
        value("illuminance", "Illuminance", "illuminance", "lx"),
        value("mass", "Mass"),
        value("dew_point", "Dew point", "temperature", "°C"),
        value("count", "Count"),
        value("energy", "Energy", "energy", "kWh", stateClass: "total_increasing"),
        value("power", "Power", "power", "W"),
        value("voltage", "Voltage", "voltage", "V"),
        value("pm25", "PM2.5", "pm25", "µg/m³"),
        value("pm10", "PM10", "pm10", "µg/m³"),
        value("carbon_dioxide", "CO2", "carbon_dioxide", "ppm"),
        value("volatile_organic_compounds", "VOC", "volatile_organic_compounds", "µg/m³"),
        value("moisture", "Moisture", "moisture", "%"),
        value("rotation", "Rotation", nil, "°"),
        value("distance", "Measured distance"),
        value("duration", "Duration", "duration", "s"),
        value("current", "Current", "current", "A"),
        value("speed", "Speed", "speed", "m/s"),
        value("uv_index", "UV index"),
        value("volume", "Volume"),
        value("volume_flow_rate", "Volume flow rate", "volume_flow_rate", "m³/h"),
        value("gas", "Gas", "gas", "m³", stateClass: "total_increasing"),
        value("water", "Water", "water", "L", stateClass: "total_increasing"),
        value("volume_storage", "Stored volume", "volume_storage", "L"),
        value("acceleration", "Acceleration", nil, "m/s²"),
        value("gyroscope", "Gyroscope", nil, "°/s"),
        value("conductivity", "Conductivity", nil, "µS/cm"),
        value("direction", "Direction", nil, "°"),
        value("precipitation", "Precipitation", "precipitation", "mm"),
        value("rotational_speed", "Rotational speed", nil, "rpm"),
        value("light_level", "Light level"),
    ]

    private static func flag(_ member: String, _ name: String, hasClass: Bool = true) -> Self {
        Self(
            key: "flag_\(member)", slug: member, name: name, member: member, place: .binary,
            deviceClass: hasClass ? member : nil, stateClass: nil, isDiagnostic: member == "battery")
    }

    private static let flags = [
        flag("generic", "State", hasClass: false), flag("power", "Powered"), flag("opening", "Opening"),
        flag("battery", "Battery low"), flag("battery_charging", "Charging"),
        flag("carbon_monoxide", "Carbon monoxide"), flag("cold", "Cold"), flag("connectivity", "Connectivity"),
        flag("door", "Door"), flag("garage_door", "Garage door"), flag("gas", "Gas detected"), flag("heat", "Heat"),
        flag("light", "Light"), flag("lock", "Lock"), flag("moisture", "Wet"), flag("motion", "Motion"),
        flag("moving", "Moving"), flag("occupancy", "Occupancy"), flag("plug", "Plug"),
        flag("presence", "Detected presence"), flag("problem", "Problem"), flag("running", "Running"),
        flag("safety", "Safety"), flag("smoke", "Smoke"), flag("sound", "Sound"), flag("tamper", "Tamper"),
        flag("vibration", "Vibration"), flag("window", "Window"),
    ]
}
