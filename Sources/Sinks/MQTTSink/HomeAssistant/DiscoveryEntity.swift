// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// One entity of a device that is announced.
struct DiscoveryEntity {
    enum Component: String {
        case binarySensor = "binary_sensor"
        case deviceTracker = "device_tracker"
        case sensor
    }

    /// When Home Assistant shows it as unavailable.
    enum Availability {
        /// Never: it says itself that the gateway is away.
        case always
        /// While the gateway is away.
        case gateway
        /// The same, and while the beacon is not present.
        case presence
    }

    /// The end of the unique id.
    var key: String
    /// The end of the id that the entity has at first; nil for the main entity of its kind.
    var slug: String?
    var component: Component
    /// nil for the entity that is the device itself.
    var name: String?
    var availability = Availability.gateway
    var isDiagnostic = false
    var isEnabled = true
    /// Members with text values, in their order.
    var texts: [(key: String, value: String)]
    /// Digits behind the point.
    var precision: Int?
}
