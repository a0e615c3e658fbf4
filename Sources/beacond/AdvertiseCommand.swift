// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import HCI
import LinuxIO
import Scanner

/// `beacond advertise`: this machine acts as a beacon.
enum AdvertiseCommand {
    static let command = Command(
        name: "advertise", operands: "", operandCount: 0...0,
        summary: "Makes this machine an iBeacon until it is ended.",
        options: [
            Option("--uuid", "UUID", "the proximity UUID; must be given"),
            Option("--major", "NUMBER", "0 to 65535; must be given"),
            Option("--minor", "NUMBER", "0 to 65535; must be given"),
            Option("--measured-power", "DBM", "the strength at 1 m that it claims, -127 to 20; -59 unless given"),
            Option("--interval", "TIME", "between two advertisements, 20ms to 10.24s; 100ms unless given"),
            Option("--source", "SOURCE", "the adapter, by index or address; hci:0 unless given"),
            Option("--duration", "TIME", "ends by itself after this time"),
        ],
        details: """
            It sends legacy advertisements to which nobody can connect, as beacons do, and needs
            the capability CAP_NET_RAW. Ctrl-C and signals end it, and the adapter's advertising is
            turned off again; after SIGKILL it goes on until the adapter is reset. It may run on an
            adapter with which beacond scans.

            Example:
              sudo beacond advertise --uuid fda50693-a4e2-4fb1-afcf-c6eb07647825 --major 1 --minor 2
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        guard let uuid = try arguments.uuid("--uuid"), let major = try arguments.number("--major", UInt16.self),
            let minor = try arguments.number("--minor", UInt16.self)
        else { throw arguments.usage("--uuid, --major and --minor must be given") }
        let power = try arguments.number("--measured-power", Int8.self) ?? -59
        guard (-127...20).contains(power) else {
            throw arguments.usage("--measured-power \(power): expected -127 to 20 dBm")
        }
        let interval = try arguments.interval("--interval") ?? .milliseconds(100)
        // Core 5.4, Vol 4, Part E, 7.8.5: 0x0020 to 0x4000 times 0.625 ms.
        guard (TimeInterval.milliseconds(20) ... .milliseconds(10_240)).contains(interval) else {
            throw arguments.usage("--interval: expected 20ms to 10.24s")
        }
        let duration = try arguments.interval("--duration")
        let (source, adapter) = try source(arguments)
        guard let beacon = IBeaconAdvertisement(uuid: uuid, major: major, minor: minor, measuredPower: power),
            let parameters = AdvertisingParameters(nanoseconds: interval.nanoseconds, data: beacon.data)
        else { throw arguments.usage("--uuid: expected 16 octets") }
        let locks: AdapterLocks
        do { locks = try AdapterLocks([source.description], for: .advertising) } catch { throw CommandError(error) }
        defer { withExtendedLifetime(locks) {} }
        let advertiser: Advertiser
        do { advertiser = Advertiser(try AdapterSocket(adapter), parameters: parameters) } catch {
            throw CommandError(.noRadio, error.description)
        }
        if let failure = try advertise(advertiser, duration) {
            throw CommandError(.noRadio, "\(source.name): \(failure)")
        }
        return .success
    }

    /// An adapter; a source of another kind cannot advertise.
    private static func source(
        _ arguments: Arguments
    ) throws(CommandError) -> (ControllerSpecification, ControllerSpecification.Adapter) {
        let text = arguments["--source"] ?? "hci:0"
        do {
            if case .controller(.raw(let adapter)) = try SourceSpecification(text) { return (.raw(adapter), adapter) }
        } catch { throw arguments.usage("--source \(error)") }
        throw arguments.usage("--source \(text): only an adapter such as hci:0 can advertise")
    }

    /// Until a signal or the end of the time, and then until the controller has said that it stopped.
    ///
    /// - Returns: what went wrong; nil when nothing did.
    private static func advertise(
        _ advertiser: Advertiser, _ duration: TimeInterval?
    ) throws(CommandError) -> String? {
        let loop = try CommandLoop(duration: duration)
        var failure: String?
        var isEnding = false
        var isOver = false
        func changed(_ change: Advertiser.Change) {
            switch change {
            case .advertising:
                let kind = advertiser.usesExtendedCommands ? "extended" : "legacy"
                StandardError.print("advertising (\(kind) commands); Ctrl-C ends it\n")
            case .failed(let reason):
                failure = failure ?? reason
                // What was begun is taken back, once.
                if isEnding {
                    isOver = true
                    return
                }
                isEnding = true
                advertiser.stop(at: Clock.now, changed)
            case .stopped(let problem):
                failure = failure ?? problem
                isOver = true
            }
        }
        do {
            _ = try loop.loop.add(advertiser.descriptor) { advertiser.receive(at: Clock.now, changed) }
        } catch { throw CommandError(.failure, error.description) }
        advertiser.start(at: Clock.now, changed)
        try loop.run(
            deadline: { isOver ? .zero : advertiser.deadline },
            due: {
                advertiser.timerFired(at: Clock.now, changed)
                if isOver { loop.stop() }
            },
            onEnd: {
                isEnding = true
                advertiser.stop(at: Clock.now, changed)
                return true
            })
        return failure
    }
}
