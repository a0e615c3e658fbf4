// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import SinkKit

/// The payloads of the gateway's status topic.
struct GatewayStatus {
    enum State: String, CaseIterable {
        case online, offline
    }

    let gateway: String
    let version: String

    /// The birth: this gateway is there, since now.
    func online() -> [UInt8] { payload(.online, time: Self.now()) }

    /// The planned good-bye where the broker cannot say it.
    func offline() -> [UInt8] { payload(.offline, time: Self.now()) }

    /// The will. It holds no time: the broker publishes it at a moment that nobody knows beforehand.
    func will() -> [UInt8] { payload(.offline, time: nil) }

    /// The state that a payload tells, when beacond spelled it.
    static func state(of payload: [UInt8]) -> State? {
        State.allCases.first { payload.starts(with: "{\"state\":\"\($0.rawValue)\"".utf8) }
    }

    private func payload(_ state: State, time: WallTime?) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("state")
        writer.string(state.rawValue)
        if let time {
            writer.key("time")
            writer.time(time)
        }
        writer.key("v")
        writer.integer(EventEncoder.version)
        writer.key("gateway")
        writer.string(gateway)
        writer.key("version")
        writer.string(version)
        writer.endObject()
        return writer.bytes
    }

    private static func now() -> WallTime {
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        return WallTime(milliseconds: Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000)
    }
}
