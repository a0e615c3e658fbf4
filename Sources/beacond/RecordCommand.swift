// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Glibc
import HCI
import LinuxIO

/// `beacond record`: what a source delivers, into a btsnoop file.
enum RecordCommand {
    static let command = Command(
        name: "record", operands: "FILE", operandCount: 1...1,
        summary: "Writes what a radio hears into a btsnoop file, for replay and for other tools.",
        options: [
            Option("--source", "SOURCE", "what to record; hci:0 unless given"),
            Option("--duration", "TIME", "how long; until Ctrl-C unless given"),
            Option("--force", nil, "replaces a file that is there"),
        ],
        details: """
            The file (btsnoop, H4) holds the advertising reports with their times; beacond replay,
            btmon -r, tshark and Wireshark read it. What was heard is written at least once a
            second. An adapter that the daemon uses cannot be recorded at the same time.

            Example:
              sudo beacond record walk.btsnoop --duration 5m && beacond replay walk.btsnoop
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let duration = try arguments.interval("--duration")
        let names = NameTable()
        var configuration = try ConfigurationLoading.defaults(names: names)
        configuration.sources = [arguments["--source"] ?? "hci:0"]
        // The source first: no empty file is left where there is no radio.
        let loop = try CommandLoop(duration: duration, tickEvery: .seconds(1))
        let recording = Recording(path: arguments.operands[0])
        let session: SourceSession
        do throws(AgentError) {
            session = try SourceSession(
                configuration, names: names,
                .packets { packet, microseconds in recording.append(packet, at: microseconds) })
        } catch { throw CommandError(error) }
        defer { session.stop() }
        try recording.open(replaces: arguments.has("--force"))
        do { try session.start(in: loop.loop) } catch { throw CommandError(.failure, error.description) }
        try loop.run(
            deadline: { session.hasEnded || recording.failure != nil ? .zero : session.nextDeadline },
            due: {
                session.advance()
                if session.hasEnded || recording.failure != nil { loop.stop() }
            }, tick: { recording.flush() })
        recording.flush()
        if let failure = recording.failure { throw failure }
        StandardError.print("\(recording.count) packets in \(arguments.operands[0])\n")
        if let failure = session.failure { throw CommandError(.noRadio, failure) }
        return .success
    }
}

/// The file of a recording.
private final class Recording {
    /// Gathered before a write: what half a second of a busy room brings.
    private static let capacity = 1 << 16

    private let path: String
    private var file: OpenFile?
    private var waiting = Btsnoop.uartHeader
    private(set) var count = 0
    private(set) var failure: CommandError?

    private final class OpenFile {
        let descriptor: FileDescriptor
        init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }
    }

    init(path: String) { self.path = path }

    func open(replaces: Bool) throws(CommandError) {
        let flags = O_WRONLY | O_CREAT | (replaces ? O_TRUNC : O_EXCL)
        do { file = OpenFile(try FileDescriptor.open(path, flags, mode: 0o644)) } catch {
            let cure = error.code == EEXIST ? "; --force replaces it" : ""
            throw CommandError(.inputOutput, "\(error)\(cure)")
        }
    }

    func append(_ packet: Span<UInt8>, at microseconds: Int64) {
        Btsnoop.append(packet, at: microseconds, to: &waiting)
        count += 1
        if waiting.count >= Self.capacity { flush() }
    }

    func flush() {
        guard let file, failure == nil else { return }
        var written = 0
        while written < waiting.count {
            do { written += try file.descriptor.write(waiting, from: written) ?? 0 } catch {
                failure = CommandError(.inputOutput, "\(path): \(SystemError.text(error.code))")
                break
            }
        }
        waiting.removeAll(keepingCapacity: true)
    }
}
