// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import SinkKit

/// Does what the requests in a ``CommandInbox`` ask, and answers them: at once, or when the time of the verb is over.
final class CommandAnswers {
    /// Answers that may be due later: each holds a scan.
    static let awaitedCapacity = 8

    private struct Awaited {
        var lines: () -> [(inout JSONWriter) -> Void]
        var id: Int64?
        var due: MonotonicTime
        var answer: CommandReceiver.Answer
    }

    private let inbox: CommandInbox
    private let gateway: String
    private var awaited: [Awaited] = []

    init(_ inbox: CommandInbox, gateway: String) {
        self.inbox = inbox
        self.gateway = gateway
    }

    /// When ``advance(to:)`` is due, on the machine's clock.
    var nextDeadline: MonotonicTime { awaited.reduce(.distantFuture) { min($0, $1.due) } }

    /// Does what waits.
    func answer(with verbs: VerbTable) {
        for request in inbox.take() { answer(request, with: verbs) }
    }

    private func answer(_ request: CommandInbox.Request, with verbs: VerbTable) {
        // Before it is begun: a scan that nobody is told of would hold the radios all the same.
        guard awaited.count < Self.awaitedCapacity else {
            let reason = "\(Self.awaitedCapacity) commands are being done already; try again later"
            return request.answer(refusal(nil, reason))
        }
        let taken = verbs.answer(request.octets)
        switch taken.answer {
        case .lines(let lines): request.answer(answer(taken.id, lines))
        case .failed(let reason): request.answer(refusal(taken.id, reason))
        case .later(let time, let lines):
            awaited.append(
                Awaited(lines: lines, id: taken.id, due: Clock.now + time, answer: request.answer))
        case .events:
            request.answer(refusal(taken.id, "this verb sends events, which only the control socket can"))
        }
    }

    /// Answers what was to be answered by now.
    func advance(to now: MonotonicTime) {
        let due = awaited.filter { $0.due <= now }
        guard !due.isEmpty else { return }
        awaited.removeAll { $0.due <= now }
        for request in due { request.answer(answer(request.id, request.lines())) }
    }

    // MARK: Spelling

    private func answer(_ id: Int64?, _ lines: [(inout JSONWriter) -> Void]) -> [UInt8] {
        spell(id, isFine: true) { writer in
            writer.key("answer")
            writer.beginArray()
            for line in lines {
                writer.beginObject()
                line(&writer)
                writer.endObject()
            }
            writer.endArray()
        }
    }

    private func refusal(_ id: Int64?, _ reason: String) -> [UInt8] {
        inbox.noteRefusal()
        return spell(id, isFine: false) { writer in
            writer.key("error")
            writer.string(reason)
        }
    }

    private func spell(_ id: Int64?, isFine: Bool, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        if let id {
            writer.key("id")
            writer.integer(id)
        }
        writer.key("gateway")
        writer.string(gateway)
        writer.key("ok")
        writer.boolean(isFine)
        body(&writer)
        writer.endObject()
        return writer.bytes
    }
}
