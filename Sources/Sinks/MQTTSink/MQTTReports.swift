// SPDX-License-Identifier: Apache-2.0

import CMosquitto

/// What libmosquitto reported through its callbacks, for the connection to read after each call into the library.
///
/// Callbacks run inside those calls, on the same thread, and only take notes: a call back into the library from there
/// would be deferred by it.
final class MQTTReports {
    struct Acknowledgement {
        var message: Int32
        /// MQTT 5 reason code; 0 with 3.1.1, which cannot refuse.
        var code: Int32
    }

    struct Status {
        var payload: [UInt8]
        /// It was there before the subscription.
        var isRetained: Bool
    }

    /// Code of the CONNACK, once it came.
    var connectCode: Int32?
    /// Why the connection ended, once it did: an MQTT 5 reason code from 128 up, else an error of the library.
    var endCode: Int32?
    var acknowledgements: [Acknowledgement] = []
    /// A subscription was refused with this code.
    var subscriptionRefusal: Int32?
    /// What came on the gateway's own status topic, the only one that is subscribed to.
    var statuses: [Status] = []

    /// Registers the callbacks of a handle that was made with this object as its context.
    func register(with handle: OpaquePointer) {
        unsafe mosquitto_connect_v5_callback_set(handle) { _, context, code, _, _ in
            unsafe MQTTReports.of(context)?.connectCode = code
        }
        unsafe mosquitto_disconnect_v5_callback_set(handle) { _, context, code, _ in
            unsafe MQTTReports.of(context)?.endCode = code
        }
        unsafe mosquitto_publish_v5_callback_set(handle) { _, context, message, code, _ in
            unsafe MQTTReports.of(context)?.acknowledgements.append(Acknowledgement(message: message, code: code))
        }
        unsafe mosquitto_subscribe_v5_callback_set(handle) { _, context, _, count, granted, _ in
            guard count > 0, let granted = unsafe granted, unsafe granted.pointee >= 128 else { return }
            unsafe MQTTReports.of(context)?.subscriptionRefusal = unsafe granted.pointee
        }
        unsafe mosquitto_message_v5_callback_set(handle) { _, context, message, _ in
            guard let message = unsafe message?.pointee else { return }
            let payload = unsafe UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
            unsafe MQTTReports.of(context)?.statuses.append(
                Status(payload: Array(unsafe payload), isRetained: unsafe message.retain))
        }
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> MQTTReports? {
        unsafe context.map { unsafe Unmanaged<MQTTReports>.fromOpaque($0).takeUnretainedValue() }
    }
}
