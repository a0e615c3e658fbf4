// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// One client of the control socket, as the daemon sees it.
final class ControlSocketClient {
    /// Longest request in bytes: more than any verb has to say.
    static let maximumLine = 1 << 16
    /// Bytes of a stream of events that may wait for a client, some seconds of a busy room. A client that falls behind
    /// further is dropped: it must not cost the daemon its memory.
    static let maximumWaiting = 1 << 20

    enum Ending: Error { case closed, tooSlow, lineTooLong, failed }

    private let socket: FileDescriptor
    /// What the owner of the loop keeps here.
    var token: UInt64 = 0
    var isWatchedForWriting = false
    private var incoming: [UInt8] = []
    private var outgoing: [UInt8] = []
    private var sent = 0
    private var buffer = [UInt8](repeating: 0, count: 1 << 14)
    /// What it watches, and until when.
    var watch: (wish: EventWish, id: Int64?, end: MonotonicTime)?
    /// The answer that it waits for, and when it is due.
    var awaited: (lines: () -> [(inout JSONWriter) -> Void], id: Int64?, due: MonotonicTime)?

    init(_ socket: consuming FileDescriptor) { self.socket = socket }

    var descriptor: Int32 { socket.number }
    var isWaitingToWrite: Bool { sent < outgoing.count }

    /// Reads what has come; nil at a pause. A request waits in the kernel until the answer to the one before it is gone,
    /// so that a client cannot pile up answers here.
    func nextRequest() throws(Ending) -> [UInt8]? {
        while true {
            guard !isWaitingToWrite else { return nil }
            if let newline = incoming.firstIndex(of: UInt8(ascii: "\n")) {
                guard newline <= Self.maximumLine else { throw .lineTooLong }
                let line = Array(incoming[..<newline])
                incoming.removeSubrange(...newline)
                return line
            }
            guard incoming.count <= Self.maximumLine else { throw .lineTooLong }
            let count: Int?
            do { count = try socket.read(into: &buffer) } catch { throw .failed }
            guard let count else { return nil }
            guard count > 0 else { throw .closed }
            incoming += buffer[..<count]
        }
    }

    /// Sends a part of a stream; one that comes too slowly is an end.
    func stream(_ line: [UInt8]) throws(Ending) {
        guard outgoing.count - sent + line.count <= Self.maximumWaiting else { throw .tooSlow }
        try send(line)
    }

    /// Sends an answer, whatever its length.
    func send(_ octets: [UInt8]) throws(Ending) {
        outgoing += octets
        try flush()
    }

    func flush() throws(Ending) {
        while sent < outgoing.count {
            let count: Int?
            do { count = try socket.write(outgoing, from: sent) } catch { throw .failed }
            guard let count else { break }
            sent += count
        }
        if sent == outgoing.count {
            outgoing.removeAll(keepingCapacity: outgoing.count <= Self.maximumLine)
            sent = 0
        } else if sent > Self.maximumLine {
            outgoing.removeFirst(sent)
            sent = 0
        }
    }
}
