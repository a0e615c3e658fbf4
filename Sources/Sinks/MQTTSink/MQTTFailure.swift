// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc

/// Why the connection, or one message on it, failed.
enum MQTTFailure: Error {
    /// The broker answered CONNECT with this code.
    case refused(code: Int32)
    /// The broker took the CONNECT packet and hung up without an answer, as some do on a version that they do not know.
    case hungUp
    /// There is no connection, or no longer.
    case lost(String)
    /// The broker's certificate was not accepted.
    case untrusted(String)
    /// This message can never be sent.
    case unsendable(String)
    /// The program ends, and the answer did not come in the time that is left.
    case stopping

    /// A broker that may well speak the older version.
    var suggestsOlderVersion: Bool {
        switch self {
        case .refused(let code): Self.refusesVersion(code)
        case .hungUp: true
        case .lost, .untrusted, .unsendable, .stopping: false
        }
    }

    /// CONNACK says that the version of the protocol is not spoken: 1 in 3.1.1, 132 in MQTT 5.
    static func refusesVersion(_ code: Int32) -> Bool { code == 1 || code == 132 }

    var reason: String {
        switch self {
        case .refused(let code): Self.codeText(code)
        case .hungUp: "the broker closed the connection instead of accepting it"
        case .lost(let reason), .untrusted(let reason), .unsendable(let reason): reason
        case .stopping: "the program ends before the broker has answered"
        }
    }

    /// - Parameter code: an error of the library, with `errno` in `systemCode`.
    static func lost(_ code: mosq_err_t, systemCode: Int32) -> MQTTFailure {
        switch code {
        case MOSQ_ERR_ERRNO: .lost(errorText(systemCode))
        case MOSQ_ERR_CONN_LOST, MOSQ_ERR_NO_CONN: .lost("the connection was closed")
        case MOSQ_ERR_KEEPALIVE: .lost("the broker does not answer")
        case MOSQ_ERR_EAI: .lost("the name of the host cannot be resolved: check `host` and the name server")
        default: .lost(libraryText(code))
        }
    }

    /// - Parameter code: a reason code with which the broker ended the connection.
    static func ended(code: Int32) -> MQTTFailure {
        code == Int32(MQTT_RC_SESSION_TAKEN_OVER.rawValue)
            ? .lost(takenOver)
            : .lost("the broker ended the connection: \(codeText(code))")
    }

    static let takenOver = "another gateway uses this id: give each gateway an id of its own"

    static func libraryText(_ code: mosq_err_t) -> String { unsafe String(cString: mosquitto_strerror(code.rawValue)) }

    /// The words for a code of the protocol, in lower case as the middle of a sentence.
    static func codeText(_ code: Int32) -> String {
        let text = unsafe String(cString: code < 128 ? mosquitto_connack_string(code) : mosquitto_reason_string(code))
        let words = text.last == "." ? String(text.dropLast()) : text
        return "\(words.lowercased()) (code \(code))"
    }
}
