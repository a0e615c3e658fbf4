// SPDX-License-Identifier: Apache-2.0

import BeaconModel
public import Configuration
import Glibc
import LinuxIO
public import SinkKit

/// Writes events to the standard output: for a person when that is a terminal, as JSON lines otherwise.
public struct StdoutSink: ~Copyable, Sink {
    private static let format = Key<String>.choice(
        "format", default: "auto", of: ["auto", "text", "json"],
        "How events are written: columns for a person, JSON lines, or whichever fits the standard output.")

    public static let descriptor = SinkDescriptor(
        kind: "stdout", summary: "Writes events to the standard output, for a person or as JSON lines.",
        section: Section([format.declaration]))

    /// Longest wait before a reader that does not read is asked about again, and with it the end of the program.
    private static let patience: Int32 = 200

    private let target: Int32
    private let context: SinkContext
    private let encoder: EventEncoder
    private let formatter: TextFormatter
    private let isText: Bool
    private var writer = JSONWriter()
    private var lines = LineBuffer()
    /// The rest of a line of which the reader has the beginning.
    private var rest: [UInt8] = []

    public init(_ configuration: Values, context: SinkContext) throws(SinkError) {
        self.init(configuration, context: context, target: STDOUT_FILENO)
    }

    /// - Parameter target: the descriptor to write to; it is never closed here.
    init(_ configuration: Values, context: SinkContext, target: Int32) {
        self.target = target
        self.context = context
        encoder = EventEncoder(gateway: context.gateway, vocabulary: context.vocabulary)
        formatter = TextFormatter(vocabulary: context.vocabulary)
        isText =
            switch configuration[Self.format] {
            case "text": true
            case "json": false
            default: isatty(target) == 1
            }
    }

    public mutating func open() throws(SinkError) {
        guard fcntl(target, F_GETFD) >= 0 else { throw SinkError(.finished, "open", "the standard output is closed") }
    }

    public mutating func write(_ batch: borrowing EventBatch) throws(SinkError) {
        lines.removeAll()
        for delivery in batch.deliveries {
            if isText {
                lines.append(formatter.line(delivery.event))
            } else {
                writer.reset()
                encoder.encode(delivery, stream: batch.stream, into: &writer)
                lines.append(writer.bytes)
            }
        }
        var written = 0
        do throws(SystemError) {
            try complete()
            try write(lines.bytes, &written)
        } catch {
            throw failure(error, written: written)
        }
    }

    public mutating func close(isFinal: Bool) {}

    /// Ends the line that was begun before anything else.
    private mutating func complete() throws(SystemError) {
        guard !rest.isEmpty else { return }
        var written = 0
        defer { rest.removeFirst(written) }
        try write(rest, &written)
    }

    /// Writes all bytes, waiting for a reader that is slow; `written` counts them as they go.
    private func write(_ bytes: [UInt8], _ written: inout Int) throws(SystemError) {
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { bytes in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
                return retryingOnInterrupt { unsafe Glibc.write(target, rest.baseAddress, rest.count) }
            }
            if count >= 0 {
                written += count
            } else if errno == EAGAIN, !context.isStopping() {
                var descriptor = pollfd(fd: target, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&descriptor, 1, Self.patience)
            } else {
                throw SystemError("write", "the standard output")
            }
        }
    }

    private mutating func failure(_ error: SystemError, written: Int) -> SinkError {
        // A closed pipe, or a terminal that hung up: there is nobody to write for.
        if error.code == EPIPE || error.code == EIO && !isRegularFile {
            return SinkError(.finished, "write", error.description)
        }
        // Nobody can take back the beginning of a line from a reader, so the line is as good as written: its rest goes
        // out before anything else.
        let missing = lines.missing(in: written)
        let accepted = lines.wholeLines(in: written) + (missing.isEmpty ? 0 : 1)
        rest.append(contentsOf: missing)
        return SinkError(.retry(accepted: accepted), "write", error.description)
    }

    private var isRegularFile: Bool {
        var status = stat()
        return unsafe fstat(target, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }
}
