// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import SinkKit
import Synchronization

/// Requests that came in through sinks, on their way from the sinks' threads to the loop's.
final class CommandInbox: Sendable {
    /// Requests that may wait: the loop takes them within milliseconds, and each sink lets through one a second.
    private static let capacity = 32

    private struct Request {
        var octets: [UInt8]
        var answer: CommandReceiver.Answer
    }

    private let waiting = Mutex<[Request]>([])
    private let wake: EventDescriptor

    init() throws(SystemError) { wake = try EventDescriptor() }

    /// Readable while a request waits.
    var descriptor: Int32 { wake.number }

    /// What sinks are given.
    var receiver: CommandReceiver {
        CommandReceiver { [self] octets, answer in
            let isTaken = waiting.withLock { waiting in
                guard waiting.count < Self.capacity else { return false }
                waiting.append(Request(octets: octets, answer: answer))
                return true
            }
            if isTaken { wake.signal() }
            return isTaken
        }
    }

    /// Does what waits, on the loop's thread.
    func answer(with verbs: VerbTable, gateway: String) {
        wake.clear()
        let requests = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for request in requests { request.answer(Self.spell(verbs.answer(request.octets), gateway)) }
    }

    private static func spell(_ request: VerbTable.Request, _ gateway: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        if let id = request.id {
            writer.key("id")
            writer.integer(id)
        }
        writer.key("gateway")
        writer.string(gateway)
        writer.key("ok")
        switch request.answer {
        case .lines(let bodies):
            writer.boolean(true)
            writer.key("answer")
            writer.beginArray()
            for body in bodies {
                writer.beginObject()
                body(&writer)
                writer.endObject()
            }
            writer.endArray()
        case .failed(let reason): refuse(reason, &writer)
        default: refuse("this verb answers over time, which only the control socket can", &writer)
        }
        writer.endObject()
        return writer.bytes
    }

    private static func refuse(_ reason: String, _ writer: inout JSONWriter) {
        writer.boolean(false)
        writer.key("error")
        writer.string(reason)
    }
}
