// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import Presence

/// `beacond plan`: what a scan profile costs, and how soon it hears a beacon.
enum PlanCommand {
    static let command = Command(
        name: "plan", operands: "", operandCount: 0...0,
        summary: "Tells what a scan profile costs and how soon it hears a beacon.",
        options: [
            Option("--profile", "NAME", "one profile instead of all"),
            Option("--window", "TIME", "with --interval: a profile that has no name"),
            Option("--interval", "TIME", "the scan interval, from the start of one window to the next"),
            Option("--burst", "ON/OFF", "with them: scans for ON, pauses for OFF, as in 10s/50s"),
            Option("--advertising-interval", "TIME", "that of the beacons, instead of the usual ones"),
            Option("--loss", "SHARE", "packets that are lost for another reason than the time, 0 unless given"),
            Option("--false-exits", "RATE", "that the proposed exit time keeps, for each beacon; 1/day unless given"),
            Option("--config", "FILE", "the configuration with your own profiles"),
            Option("--simulate", nil, "also simulates the beacons and shows the times beside"),
            Option("--seed", "NUMBER", "of the simulation, 1 unless given"),
            Option("--json", nil, "prints a JSON line for each profile and advertising interval"),
        ],
        details: """
            "heard" is the share of advertisements that are heard, "reports" how many a second and
            beacon; the times are those after which 50 %, 95 % and 99 % of beacons that came were
            heard. "beat" compares the last of them with a radio whose windows come without any
            order: from 2 on the intervals beat. "exit" is the shortest exit time, in listening
            time, that keeps the rate of false exits as far as the schedules of radio and beacon
            are the cause. docs/plan.md explains the model and its limits.

            Examples:
              beacond plan --profile economy
              beacond plan --window 102.5ms --interval 1024ms --advertising-interval 1022.5ms --simulate
            """,
        run: run)

    /// What the process takes for a report, from the descriptor to presence, on one core: a wake-up for each, as it is
    /// when reports do not come in crowds. `docs/plan.md` has the measurement.
    private static let processorTimePerReport = TimeInterval(nanoseconds: 47_000)

    private struct Request {
        var profiles: [ScanProfile]
        var intervals: [TimeInterval]
        var loss: Double
        var falseExits: FalseExitRate
        var falseExitsText: String
        /// nil not to simulate.
        var seed: UInt64?
    }

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let request = try request(arguments)
        var output = StandardOutput()
        for profile in request.profiles {
            if !arguments.has("--json") { try StandardOutput.print(heading(profile)) }
            var table = PlanTable(isSimulated: request.seed != nil)
            var beating: [TimeInterval] = []
            for interval in request.intervals {
                let plan = ScanProfilePlan(
                    profile, advertisingInterval: interval, loss: request.loss,
                    falseExits: request.falseExits.perSecond)
                let simulated = request.seed.map { plan.simulate(seed: $0) }
                if arguments.has("--json") {
                    write(plan, request, simulated, &output.writer)
                    try output.endLine()
                    try output.flush()
                    continue
                }
                table.add(plan, processor: processorShare(plan), simulated?.times)
                if plan.beats { beating.append(interval) }
            }
            if !arguments.has("--json") {
                try StandardOutput.print(table.text + footing(beating, request))
            }
        }
        return .success
    }

    private static func processorShare(_ plan: ScanProfilePlan) -> Double {
        plan.reportsPerSecond * processorTimePerReport.seconds
    }

    // MARK: The request

    private static func request(_ arguments: Arguments) throws(CommandError) -> Request {
        let loss = arguments["--loss"].map { Double($0) } ?? 0
        guard let loss, (0..<1).contains(loss) else {
            throw arguments.usage("--loss \(arguments["--loss"] ?? ""): expected a share such as 0.1, less than 1")
        }
        let rate = arguments["--false-exits"] ?? "1/day"
        guard let falseExits = FalseExitRate(rate) else {
            throw arguments.usage("--false-exits \(rate): expected a rate such as 1/day; hour, day, week or month")
        }
        let seed = arguments["--seed"] ?? "1"
        guard let seed = UInt64(seed) else { throw arguments.usage("--seed \(seed): expected a whole number") }
        var intervals = ScanProfilePlan.usualIntervals
        if arguments.has("--advertising-interval") {
            intervals = [
                try time(arguments, "--advertising-interval", in: .milliseconds(20) ... .milliseconds(10_240))
            ]
        }
        return Request(
            profiles: try profiles(arguments), intervals: intervals, loss: loss, falseExits: falseExits,
            falseExitsText: rate,
            seed: arguments.has("--simulate") ? seed : nil)
    }

    private static func profiles(_ arguments: Arguments) throws(CommandError) -> [ScanProfile] {
        let timing = ["--window", "--interval", "--burst"].filter(arguments.has)
        if let name = timing.first {
            for other in ["--profile", "--config"] where arguments.has(other) {
                throw arguments.usage("\(name) does not go with \(other)")
            }
            return [try unnamedProfile(arguments)]
        }
        var scan = AgentConfiguration.Scan()
        if let path = arguments["--config"] {
            scan = try ConfigurationLoading.load(path: path, names: NameTable()).scan
        }
        guard let name = arguments["--profile"] else { return scan.profiles }
        guard let profile = scan[name] else {
            let names = scan.profiles.map(\.name)
            let hint = Suggestion.nearest(to: name, in: names).map { "; did you mean \"\($0)\"?" } ?? ""
            throw arguments.usage(
                "--profile \(name): unknown profile\(hint) The profiles are \(names.joined(separator: ", ")).")
        }
        return [profile]
    }

    private static func unnamedProfile(_ arguments: Arguments) throws(CommandError) -> ScanProfile {
        for name in ["--window", "--interval"] where !arguments.has(name) {
            throw arguments.usage("--window and --interval belong together; \(name) is missing")
        }
        let window = try time(arguments, "--window", in: ScanProfile.times)
        let interval = try time(arguments, "--interval", in: ScanProfile.times)
        guard window <= interval else { throw arguments.usage("--window must not be longer than --interval") }
        guard let text = arguments["--burst"] else {
            return ScanProfile(name: "", window: window, interval: interval)
        }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).map {
            DurationText.interval(String($0))
        }
        guard parts.count == 2, let on = parts[0], let off = parts[1], ScanProfile.burstTimes.contains(on),
            ScanProfile.burstTimes.contains(off)
        else {
            throw arguments.usage(
                "--burst \(text): expected two times from \(DurationText.text(ScanProfile.burstTimes.lowerBound)) to "
                    + "\(DurationText.text(ScanProfile.burstTimes.upperBound)), as in 10s/50s")
        }
        return ScanProfile(name: "", window: window, interval: interval, burst: .init(on: on, off: off))
    }

    private static func time(
        _ arguments: Arguments, _ name: String, in range: ClosedRange<TimeInterval>
    ) throws(CommandError) -> TimeInterval {
        let text = arguments[name] ?? ""
        guard let time = DurationText.interval(text), range.contains(time) else {
            throw arguments.usage(
                "\(name) \(text): expected a time from \(DurationText.text(range.lowerBound)) to "
                    + "\(DurationText.text(range.upperBound)), as in 100ms")
        }
        return time
    }

    // MARK: Text

    private static func heading(_ profile: ScanProfile) -> String {
        let pattern = profile.pattern
        var text = profile.name.isEmpty ? "" : "\(profile.name): "
        text += "listens \(DurationText.text(pattern.window)) of every \(DurationText.text(pattern.interval))"
        if let burst = pattern.burst {
            text += " for \(DurationText.text(burst.on)), then pauses \(DurationText.text(burst.off))"
        }
        text += profile.isActive ? ", active" : ", passive"
        return "\(text); the radio is on \(PlanTable.decimal(pattern.duty * 100, 1)) % of the time\n"
    }

    private static func footing(_ beating: [TimeInterval], _ request: Request) -> String {
        var text = "Exit times keep false exits of a beacon below \(request.falseExitsText).\n"
        let names = beating.map { DurationText.text($0) }.joined(separator: ", ")
        text += beating.isEmpty ? "It beats with none of these intervals.\n" : "It beats with \(names).\n"
        return text + "\n"
    }

    // MARK: JSON

    private static func write(
        _ plan: ScanProfilePlan, _ request: Request, _ simulated: (times: ScanProfilePlan.Times, count: Int)?,
        _ writer: inout JSONWriter
    ) {
        func time(_ key: String, _ value: TimeInterval?) {
            writer.key(key)
            if let value { writer.decimal(value.seconds, decimals: 6) } else { writer.null() }
        }
        func times(_ key: String, _ times: ScanProfilePlan.Times) {
            writer.key(key)
            writer.beginObject()
            time("median", times.median)
            time("p95", times.most)
            time("p99", times.nearlyAll)
            writer.endObject()
        }
        func number(_ key: String, _ value: Double?) {
            writer.key(key)
            if let value { writer.decimal(value, decimals: 6) } else { writer.null() }
        }
        let pattern = plan.profile.pattern
        writer.beginObject()
        writer.key("profile")
        if plan.profile.name.isEmpty { writer.null() } else { writer.string(plan.profile.name) }
        time("window", pattern.window)
        time("interval", pattern.interval)
        time("burst_on", pattern.burst?.on)
        time("burst_off", pattern.burst?.off)
        number("duty", pattern.duty)
        time("advertising_interval", plan.interval)
        number("loss", request.loss)
        number("heard", plan.chance)
        number("reports_per_second", plan.reportsPerSecond)
        number("processor_share", processorShare(plan))
        times("first_heard", plan.firstHeard)
        if let simulated {
            times("simulated", simulated.times)
            writer.key("simulated_beacons")
            writer.integer(simulated.count)
        }
        number("beat", plan.beatFactor)
        writer.key("beats")
        writer.boolean(plan.beats)
        time("exit_time", plan.exitTime)
        writer.key("limits")
        writer.beginArray()
        for limit in plan.limits { writer.string(limit.rawValue) }
        writer.endArray()
        writer.endObject()
    }
}
