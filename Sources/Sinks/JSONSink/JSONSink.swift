// SPDX-License-Identifier: Apache-2.0

import BeaconModel
public import Configuration
import Glibc
import LinuxIO
public import SinkKit

/// Appends events to a file as JSON lines.
public struct JSONSink: ~Copyable, Sink {
    private static let path = Key<String>.text(
        "path", default: LineFile.standardOutput,
        .init(maximumBytes: 4095, expected: "the path of a file", check: { !$0.utf8.contains(0) }),
        "The file to append to, made when it is not there (its folder is not); - is the standard output.")

    public static let descriptor = SinkDescriptor(
        kind: "json", summary: "Appends events to a file as JSON lines.", section: Section([path.declaration]))

    private let encoder: EventEncoder
    private var file: LineFile
    private var writer = JSONWriter()
    private var lines = LineBuffer()

    public init(_ configuration: Values, context: SinkContext) throws(SinkError) {
        file = LineFile(path: configuration[Self.path])
        encoder = EventEncoder(gateway: context.gateway, vocabulary: context.vocabulary)
    }

    public mutating func open() throws(SinkError) {
        do throws(SystemError) {
            try file.open()
        } catch {
            throw SinkError(.disconnected(accepted: 0), "open", Self.explanation(error))
        }
    }

    public mutating func write(_ batch: borrowing EventBatch) throws(SinkError) {
        lines.removeAll()
        for delivery in batch.deliveries {
            writer.reset()
            encoder.encode(delivery, stream: batch.stream, into: &writer)
            lines.append(writer.bytes)
        }
        do throws(LineFile.Failure) {
            try file.append(lines)
        } catch {
            // The file is still the right one when the disk is full or failing; any other error asks for a new look.
            let accepted = error.wholeLines
            // A closed pipe: there is nobody to write for.
            if error.cause.code == EPIPE { throw SinkError(.finished, "write", error.cause.description) }
            let isDisk = [ENOSPC, EDQUOT, EIO].contains(error.cause.code)
            throw SinkError(
                isDisk ? .retry(accepted: accepted) : .disconnected(accepted: accepted), "write",
                Self.explanation(error.cause))
        }
    }

    public mutating func reopen() throws(SinkError) {
        file.close()
        try open()
    }

    public mutating func close(isFinal: Bool) {
        file.close()
    }

    /// What happened and, where one is known, the cure.
    private static func explanation(_ error: SystemError) -> String {
        switch error.code {
        case ENOENT: "\(error); its folder must exist"
        case EACCES, EPERM, EROFS: "\(error); the user of this program must be allowed to write there"
        case ELOOP: "\(error); a symbolic link is not followed, name the file itself"
        case ENOSPC: "\(error); free some space, nothing is lost meanwhile but what does not fit into the queue"
        case EDQUOT: "\(error); raise the quota or move the file"
        case ENOTSUP: "\(error.object) is not a file"
        default: error.description
        }
    }
}
