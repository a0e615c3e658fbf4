// SPDX-License-Identifier: Apache-2.0

import Configuration

/// The `home_assistant` object of an `mqtt` sink.
struct HomeAssistantConfiguration {
    static let enabled = Key.boolean("enabled", default: true, "Announce.")

    static let discoveryPrefix = Key.text(
        "discovery_prefix", default: "homeassistant",
        .init(
            maximumBytes: 256, pattern: "^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$",
            expected: "topic levels of letters, digits, '_', '-' and '.', separated by '/'",
            check: MQTTConfiguration.isTopicPrefix),
        "First levels of the topics that Home Assistant finds devices under, as it is configured there.")

    static let release = Key.text(
        "release", default: HomeAssistantRelease.current,
        .init(
            maximumBytes: 16, pattern: "^2[0-9]{3}\\.([1-9]|1[0-2])$",
            expected: "a year and a month, such as \"2026.7\""
        ) { HomeAssistantRelease($0) != nil },
        "The oldest release of Home Assistant that reads the announcements; their form follows from it.")

    static let trackers = Key.texts(
        "trackers", .init(maximumBytes: 256), count: 0...1000, example: "[\"me\"]",
        "Regions that are announced as a device tracker, too: a person who carries several beacons.")

    static let signalSensors = Key.boolean(
        "signal_sensors", default: false,
        "Have the sensors that change with every sighting enabled from the start: signal strength and distance.")

    static let section = Section([
        enabled.declaration, discoveryPrefix.declaration, release.declaration, trackers.declaration,
        signalSensors.declaration,
    ])

    /// First levels of the topics of discovery.
    var prefix: String
    var release: HomeAssistantRelease
    /// Names of regions.
    var trackers: Set<String>
    var showsSignals: Bool

    /// nil when nothing shall be announced.
    init?(_ values: Values) {
        guard values[Self.enabled], let release = HomeAssistantRelease(values[Self.release]) else { return nil }
        prefix = values[Self.discoveryPrefix]
        self.release = release
        trackers = Set(values[Self.trackers])
        showsSignals = values[Self.signalSensors]
    }
}
