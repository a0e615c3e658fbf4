// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO
import SinkKit
import Synchronization

/// Takes commands that came as messages: which of them are obeyed, and where each answer goes.
///
/// Whoever may publish on the topic is a stranger with a key to one door: what is long, frequent, retained or not named
/// in the configuration is refused, and every refusal is answered.
struct CommandDesk {
    /// An answer that waits to be published.
    struct Reply: Sendable {
        var topic: String
        var payload: [UInt8]
        var correlation: [UInt8]?
    }

    /// Bytes; the longest request of a verb has a tenth of it.
    static let longestRequest = 1024
    /// Bytes; some brokers drop the connection at 256 KiB, nobody's default is lower.
    static let longestAnswer = 250_000
    /// Bytes of a response topic.
    private static let longestTopic = 256
    /// Commands in a row; beyond, one a second.
    private static let burst = 5

    private let allowed: [String]
    private let gateway: String
    /// What stands before `command/`.
    private let root: String
    /// What topics of this gateway begin with.
    private let territories: [String]
    private let receiver: CommandReceiver?
    private let waiting = Waiting()
    private var allowance = CommandDesk.burst
    private var allowanceTime = MonotonicTime.zero

    /// Written to by the loop's thread, which wakes that of the sink.
    private final class Waiting: Sendable {
        let replies = Mutex<[Reply]>([])
        /// nil when the process has no descriptors left: answers then wait for the next look.
        let wake = try? EventDescriptor()

        var descriptor: Int32 {
            switch wake {
            case .some(let wake): wake.number
            case nil: -1
            }
        }

        func add(_ reply: Reply) {
            replies.withLock { $0.append(reply) }
            wake?.signal()
        }

        func take() -> [Reply] {
            wake?.clear()
            return replies.withLock { replies in
                defer { replies = [] }
                return replies
            }
        }
    }

    init(
        allowed: [String], gateway: String, root: String, territories: [String] = [], receiver: CommandReceiver?
    ) {
        self.allowed = allowed
        self.gateway = gateway
        self.root = root
        self.territories = territories + [root]
        self.receiver = receiver
    }

    /// The topics of commands; nil when none is obeyed.
    var filter: String? { allowed.isEmpty ? nil : "\(root)command/+" }

    func isCommand(_ topic: String) -> Bool { filter != nil && topic.hasPrefix("\(root)command/") }

    /// Readable while an answer waits to be published.
    var descriptor: Int32 { waiting.descriptor }

    /// The answers that came since the last call.
    func takeReplies() -> [Reply] { waiting.take() }

    /// Obeys or refuses.
    ///
    /// - Returns: why it was refused; nil when it was not.
    mutating func take(_ message: MQTTReports.Message, at now: MonotonicTime) -> String? {
        let verb = String(message.topic.dropFirst(root.utf8.count + "command/".utf8.count))
        let isSane = message.responseTopic.map(isFree) ?? true
        let topic = isSane ? message.responseTopic : nil
        let reply = Reply(
            topic: topic ?? "\(root)command/\(allowed.contains(verb) ? verb : "unknown")/answer", payload: [],
            correlation: message.correlation)
        let reason: String?
        if message.isRetained {
            reason = "a retained command is not obeyed: it would come again at every connection"
        } else if !isAllowance(at: now) {
            reason = "too many commands: one a second is obeyed"
        } else if message.payload.count > Self.longestRequest {
            reason = "a command is not longer than \(Self.longestRequest) bytes"
        } else if !isSane {
            reason =
                "the response topic must be a topic outside those of this gateway, of at most \(Self.longestTopic) bytes"
        } else if !allowed.contains(verb) {
            reason = "this command is not allowed here: `commands` has \(allowed.joined(separator: ", "))"
        } else if let request = Self.request(verb, message.payload) {
            reason = submit(request, reply)
        } else {
            reason = "expected nothing, or an object with the parameters of \(verb)"
        }
        guard let reason else { return nil }
        receiver?.noteRefusal()
        var refusal = reply
        refusal.payload = spell(reason)
        waiting.add(refusal)
        return reason
    }

    private func submit(_ request: [UInt8], _ reply: Reply) -> String? {
        guard let receiver else { return "this program takes no commands" }
        let tooLong = spell("the answer is longer than \(Self.longestAnswer) bytes: ask for less")
        let isTaken = receiver.submit(request) { [waiting] answer in
            var reply = reply
            reply.payload = answer.count > Self.longestAnswer ? tooLong : answer
            waiting.add(reply)
        }
        return isTaken ? nil : "too many commands wait; try again later"
    }

    /// A bucket that holds a few commands and gets one a second.
    private mutating func isAllowance(at now: MonotonicTime) -> Bool {
        let gained = (now - allowanceTime).milliseconds / 1000
        if gained > 0 {
            allowance = Int(min(Int64(Self.burst), Int64(allowance) + gained))
            allowanceTime = now
        }
        guard allowance > 0 else { return false }
        allowance -= 1
        return true
    }

    /// A topic that an answer may go to: not one of this gateway, lest an answer becomes a command or a state.
    private func isFree(_ topic: String) -> Bool {
        (1...Self.longestTopic).contains(topic.utf8.count) && !topic.hasPrefix("$")
            && !territories.contains { topic.hasPrefix($0) }
            && topic.utf8.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "#") }
    }

    /// The request of the control socket that a payload stands for. An object that names a verb itself has that member
    /// twice then, and is refused where it is read.
    private static func request(_ verb: String, _ payload: [UInt8]) -> [UInt8]? {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        let start = Array("{\"verb\":\"\(verb)\"".utf8)
        let text = payload.drop(while: isSpace)
        guard let first = text.first else { return start + [UInt8(ascii: "}")] }
        guard first == UInt8(ascii: "{") else { return nil }
        let rest = text.dropFirst().drop(while: isSpace)
        return start + (rest.first == UInt8(ascii: "}") ? [] : [UInt8(ascii: ",")]) + rest
    }

    private func spell(_ reason: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("gateway")
        writer.string(gateway)
        writer.key("ok")
        writer.boolean(false)
        writer.key("error")
        writer.string(reason)
        writer.endObject()
        return writer.bytes
    }
}
