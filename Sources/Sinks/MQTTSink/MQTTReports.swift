// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc

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

    struct Message {
        var topic: String
        var payload: [UInt8]
        /// It was there before the subscription.
        var isRetained: Bool
        /// MQTT 5: where the sender wants the answer, and what it wants to see in it.
        var responseTopic: String?
        var correlation: [UInt8]?
    }

    /// Code of the CONNACK, once it came.
    var connectCode: Int32?
    /// Why the connection ended, once it did: an MQTT 5 reason code from 128 up, else an error of the library.
    var endCode: Int32?
    var acknowledgements: [Acknowledgement] = []
    /// Subscriptions that were refused, by the number of the packet, and the code.
    var refusedSubscriptions: [(message: Int32, code: Int32)] = []
    /// What came on the gateway's own status topic and on those of commands.
    var messages: [Message] = []
    /// What OpenSSL said first.
    var tlsTrouble: String?
    /// That was about the broker's certificate.
    var isUntrusted = false

    /// Registers the callbacks of a handle that was made with this object as its context.
    func register(with handle: OpaquePointer) {
        unsafe mosquitto_connect_v5_callback_set(handle) { handle, context, code, _, _ in
            unsafe MQTTReports.of(context)?.connectCode = code
            // TLS has succeeded. The library would go on to print a line for each message, a twentieth of the CPU
            // time of publishing.
            if code == 0 { unsafe mosquitto_log_callback_set(handle, nil) }
        }
        unsafe mosquitto_disconnect_v5_callback_set(handle) { _, context, code, _ in
            unsafe MQTTReports.of(context)?.endCode = code
        }
        unsafe mosquitto_publish_v5_callback_set(handle) { _, context, message, code, _ in
            unsafe MQTTReports.of(context)?.acknowledgements.append(Acknowledgement(message: message, code: code))
        }
        unsafe mosquitto_subscribe_v5_callback_set(handle) { _, context, message, count, granted, _ in
            guard count > 0, let granted = unsafe granted, unsafe granted.pointee >= 128 else { return }
            unsafe MQTTReports.of(context)?.refusedSubscriptions.append((message, unsafe granted.pointee))
        }
        unsafe mosquitto_message_v5_callback_set(handle) { _, context, message, properties in
            guard let message = unsafe message?.pointee, let topic = unsafe message.topic else { return }
            let payload = unsafe UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
            unsafe MQTTReports.of(context)?.messages.append(
                Message(
                    topic: String(cString: topic), payload: Array(payload), isRetained: message.retain,
                    responseTopic: MQTTReports.responseTopic(properties),
                    correlation: MQTTReports.correlation(properties)))
        }
        unsafe mosquitto_log_callback_set(handle) { _, context, level, text in
            guard level == MOSQ_LOG_ERR, let text = unsafe text.map({ unsafe String(cString: $0) }) else { return }
            // The other lines are told by the codes of the calls.
            guard text.hasPrefix("OpenSSL Error") || text.hasPrefix("Error: ") else { return }
            unsafe MQTTReports.of(context)?.note(tlsTrouble: text)
        }
    }

    /// The first one is the cause.
    private func note(tlsTrouble text: String) {
        guard tlsTrouble == nil else { return }
        // "OpenSSL Error[0]: error:0A000086:SSL routines::certificate verify failed"
        let reason = text.split(separator: ":").last.map { String($0.drop { $0 == " " }) } ?? text
        let cure = ": check `ca_file`, the name in the broker's certificate and the clock of this machine"
        isUntrusted = reason.hasSuffix("verify failed")
        tlsTrouble = isUntrusted ? reason + cure : reason
    }

    private static func responseTopic(_ properties: OpaquePointer?) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard
            unsafe mosquitto_property_read_string(
                properties, Int32(MQTT_PROP_RESPONSE_TOPIC.rawValue), &text, false) != nil
        else { return nil }
        defer { unsafe free(text) }
        return unsafe text.map { unsafe String(cString: $0) }
    }

    private static func correlation(_ properties: OpaquePointer?) -> [UInt8]? {
        var data: UnsafeMutableRawPointer?
        var count: UInt16 = 0
        guard
            unsafe mosquitto_property_read_binary(
                properties, Int32(MQTT_PROP_CORRELATION_DATA.rawValue), &data, &count, false) != nil
        else { return nil }
        defer { unsafe free(data) }
        return unsafe Array(UnsafeRawBufferPointer(start: data, count: Int(count)))
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> MQTTReports? {
        unsafe context.map { unsafe Unmanaged<MQTTReports>.fromOpaque($0).takeUnretainedValue() }
    }
}
