// SPDX-License-Identifier: Apache-2.0

import CMosquitto

/// Properties of a PUBLISH packet of MQTT 5, made once and sent with many.
@safe final class MQTTProperties {
    private(set) var list: OpaquePointer?

    /// - Parameters:
    ///   - user: names and values that a consumer can choose by without reading the payload.
    ///   - expiry: seconds after which the broker delivers the message to nobody.
    ///   - correlation: what the sender of a request wants to see in the answer.
    init(user: [(name: String, value: String)], expiry: UInt32? = nil, correlation: [UInt8]? = nil) {
        // Only an exhausted memory or a text that is not UTF-8 makes these fail; the message then goes without.
        _ = unsafe mosquitto_property_add_byte(&list, Int32(MQTT_PROP_PAYLOAD_FORMAT_INDICATOR.rawValue), 1)
        _ = unsafe mosquitto_property_add_string(&list, Int32(MQTT_PROP_CONTENT_TYPE.rawValue), "application/json")
        if let expiry {
            _ = unsafe mosquitto_property_add_int32(
                &list, Int32(MQTT_PROP_MESSAGE_EXPIRY_INTERVAL.rawValue), expiry)
        }
        if let correlation {
            _ = unsafe mosquitto_property_add_binary(
                &list, Int32(MQTT_PROP_CORRELATION_DATA.rawValue), correlation, UInt16(clamping: correlation.count))
        }
        for (name, value) in user {
            _ = unsafe mosquitto_property_add_string_pair(
                &list, Int32(MQTT_PROP_USER_PROPERTY.rawValue), name, value)
        }
    }

    deinit {
        unsafe mosquitto_property_free_all(&list)
    }
}
