// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import SinkKit
import Synchronization

/// Requests that came in through sinks, on their way from the sinks' threads to the loop's.
final class CommandInbox: Sendable {
    /// Requests that may wait: the loop takes them within milliseconds, and each sink lets through one a second.
    private static let capacity = 32

    struct Request {
        var octets: [UInt8]
        var answer: CommandReceiver.Answer
    }

    private let waiting = Mutex<[Request]>([])
    private let refused = Atomic<UInt64>(0)
    private let wake: EventDescriptor

    init() throws(SystemError) { wake = try EventDescriptor() }

    /// Readable while a request waits.
    var descriptor: Int32 { wake.number }

    /// Requests that were refused so far, by the sinks or here.
    var refusals: UInt64 { refused.load(ordering: .relaxed) }

    /// What sinks are given.
    var receiver: CommandReceiver {
        CommandReceiver(
            submit: { [self] octets, answer in
                let isTaken = waiting.withLock { waiting in
                    guard waiting.count < Self.capacity else { return false }
                    waiting.append(Request(octets: octets, answer: answer))
                    return true
                }
                if isTaken { wake.signal() }
                return isTaken
            }, noteRefusal: { [self] in noteRefusal() })
    }

    func noteRefusal() { refused.add(1, ordering: .relaxed) }

    /// The requests that came since the last call.
    func take() -> [Request] {
        wake.clear()
        return waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
    }
}
