// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
public import BeaconModel
import Glibc
import HCI
public import LinuxIO
import Presence
public import SinkKit
import SinkRuntime
import Store

/// The daemon: wires the road, runs the loop, and ends cleanly.
///
/// Everything but the sinks and the store's writer happens on the thread that calls ``run()``.
public final class Agent {
    /// What one run is made of.
    public struct Setup {
        public var configuration: AgentConfiguration
        /// Reads the configuration again, for SIGHUP; nil when it came from no file.
        public var reload: (() throws(AgentConfiguration.LoadError) -> AgentConfiguration)?
        /// Ends by itself after this time; nil to run until it is told to end.
        public var duration: TimeInterval?
        public var version: String

        public init(
            configuration: AgentConfiguration,
            reload: (() throws(AgentConfiguration.LoadError) -> AgentConfiguration)?, duration: TimeInterval?,
            version: String
        ) {
            self.configuration = configuration
            self.reload = reload
            self.duration = duration
            self.version = version
        }
    }

    /// Time for the sinks to write what waits when the program ends; with the good-bye of each it stays below the 5 s
    /// that a person or a service manager waits.
    private static let drainTime = TimeInterval.seconds(2)
    /// Time for the disk to take the last transitions when the program ends.
    private static let flushTime = TimeInterval.seconds(1)
    /// Between two looks at what needs no hurry: the status line of the service.
    private static let housekeepingInterval = TimeInterval.seconds(10)
    /// The store's writer turns at least once a second, and a commit on a tired card takes some seconds; past this it is
    /// stuck, and the watchdog may act.
    private static let storePatience = TimeInterval.seconds(30)

    /// Between a change of how many beacons a region has inside and the state that says so: in a crowd it changes many
    /// times a second.
    private static let regionStateDelay = TimeInterval.seconds(1)

    private let log: Log
    let setup: Setup
    /// The one in force: that of the file with the approved beacons.
    private(set) var configuration: AgentConfiguration
    /// That of the setup until it was read again.
    private(set) var fileConfiguration: AgentConfiguration
    private(set) var approved: ApprovedBeacons
    let gateway: String
    let vocabulary: Vocabulary
    let encoder: EventEncoder
    var road: Road
    let store: Store
    private var memory: PresenceMemory
    let sinks: SinkSet
    let sources: [any PacketSource]
    private let readers: [SourceReader]
    private let inventory = InventoryBoard()
    private let locks: AdapterLocks
    let timeline: Timeline
    /// From the machine's monotonic clock to the clock of decisions, which a capture sets.
    private let clockOffset: TimeInterval
    private let notify = ServiceNotify()
    private let signals: Signals
    private let loop: EventLoop
    private let finished: LoopWake
    let commands: CommandInbox
    private let commandAnswers: CommandAnswers
    /// nil when nobody can ask.
    private let control: ControlSocket?
    private(set) var adapterStates = AdapterStates()
    private(set) var beginning = MonotonicTime.zero

    /// Who wants the radios; looked at again when that may have changed.
    private(set) var demands: ScanDemands
    private var nextDemand = MonotonicTime(nanoseconds: .min)
    private(set) var directive: ScanDemands.Directive?
    private(set) var holdersInForce: [String] = []
    private(set) var ledger = RadioLedger()
    /// Scans for a time that go on, for those who asked.
    private var searches: [BeaconSearch] = []
    private var health: GatewayHealth
    /// What the sources were told to do.
    private var parametersInForce: ScanParameters?

    /// When the radios were last asked for a sign of life, by the clock of decisions.
    private var askedForSign = MonotonicTime(nanoseconds: .min)

    private var end = MonotonicTime.distantFuture
    private var nextRegionStates = MonotonicTime.distantFuture
    private var nextHousekeeping = MonotonicTime.zero
    private var nextWatchdog = MonotonicTime.distantFuture
    private var reportsAtHousekeeping: UInt64 = 0
    private var flood = FloodWatch()

    /// Opens the sources and the store. Blocks signals for this thread and all that it makes.
    public init(
        _ setup: Setup, registry: SinkRegistry, names: NameTable, log: Log
    ) throws(AgentError) {
        self.setup = setup
        self.log = log
        fileConfiguration = setup.configuration
        for warning in fileConfiguration.warnings { log(.warning, warning) }
        vocabulary = Vocabulary(formats: fileConfiguration.decoder.catalog, names: names)
        let directory = Self.stateDirectory(fileConfiguration)
        approved = ApprovedBeacons(directory: directory, formats: vocabulary.formats)
        if let trouble = approved.trouble {
            log(.error, "no beacon is approved until that is mended or removed: \(trouble)")
        }
        let configuration = approved.joined(to: fileConfiguration, names)
        self.configuration = configuration
        log.level = configuration.logLevel
        do {
            signals = try Signals([
                Signals.terminate, Signals.interrupt, Signals.hangUp, Signals.user1, Signals.user2,
            ])
            loop = try EventLoop()
            finished = try LoopWake()
            commands = try CommandInbox()
        } catch { throw .system(error) }

        gateway = if let id = configuration.gatewayID { id } else { try GatewayIdentity.ofThisMachine() }
        encoder = EventEncoder(gateway: gateway, vocabulary: vocabulary)
        commandAnswers = CommandAnswers(commands, gateway: gateway)
        locks = try AdapterLocks(configuration.sources)
        control = try ControlSocket.open(configuration.controlSocket, encoder: encoder, loop: loop, log: log)
        let opened = try OpenSources(configuration, names: names)
        sources = opened.sources
        readers = sources.map { [loop] in SourceReader($0, loop, latency: configuration.scan.latency) }
        timeline = Timeline(origin: opened.captureBeginning == nil ? .system : .capture)
        clockOffset = opened.captureBeginning.map { $0 - Clock.now } ?? .zero

        do {
            store = try Store(
                path: directory.map { "\($0)/outbox.sqlite" }, vocabulary: vocabulary,
                machine: GatewayIdentity.ofMachineID() ?? "",
                maximumOctets: configuration.outboxSize, maximumAge: configuration.outboxAge,
                log: { [log] in log($0, $1) })
        } catch { throw error.cause == .busy ? .busy(error.description) : .store(error.description) }
        let context = SinkSet.Context(
            gateway: gateway, vocabulary: vocabulary, version: setup.version, registry: registry, log: log,
            store: store, commands: commands.receiver, inventory: inventory,
            onFinished: { [finished] in finished.event.signal() })
        sinks = SinkSet(context)
        demands = ScanDemands(configuration)
        // What the sources begin with.
        parametersInForce = configuration.scan.monitoring.parameters
        road = Road(configuration)
        memory = PresenceMemory(store, vocabulary.formats)
        health = GatewayHealth(names, at: Clock.now)
    }

    /// Runs until it is told to end, its time is over, or every source has ended.
    public func run() throws(AgentError) {
        do {
            beginning = Clock.now
            restorePresence()
            try change(configuration)
            try control?.start(verbs)
            try startSources()
            end = setup.duration.map { beginning + $0 } ?? .distantFuture
            nextWatchdog = notify.watchdogInterval.map { beginning + $0 } ?? .distantFuture
            notify.ready()
            try loop.run(
                prepare: {
                    followDemand()
                    keepPresence()
                    tellRegions()
                    return nextDeadline
                }, timer: { timerFired() })
        } catch { throw .system(error) }
        stop()
    }

    /// The clock of decisions.
    var now: MonotonicTime { Clock.now + clockOffset }

    /// Where state is kept: as configured, else where the service manager says (`StateDirectory=` of the unit).
    private static func stateDirectory(_ configuration: AgentConfiguration) -> String? {
        if let configured = configuration.stateDirectory { return configured }
        guard let given = unsafe getenv("STATE_DIRECTORY") else { return nil }
        // Several directories are separated by colons; the first one is ours.
        return unsafe String(cString: given).split(separator: ":").first.map(String.init)
    }

    // MARK: Presence and restarts

    /// A capture has a time of its own: what was present in it is not present now.
    private var remembersPresence: Bool { timeline.origin == .system }

    private func restorePresence() {
        guard remembersPresence else { return }
        let now = self.now
        // Of the same moment, so that what was told of before is told of with the same time.
        memory.restore(&road, at: now, wallTime: timeline.wallTime(of: now))
        changeDemands { demands in road.forEachState(at: now) { demands.follow($0) } }
    }

    private func keepPresence() {
        if remembersPresence { memory.keep(road, at: now) { timeline.wallTime(of: $0) } }
        store.endTurn()
    }

    // MARK: Regions

    /// Has the states of regions say how many beacons are inside, at most once a second: it is no transition.
    private func tellRegions() {
        guard road.hasChangedRegions else { return nextRegionStates = .distantFuture }
        if nextRegionStates == .distantFuture { nextRegionStates = now + Self.regionStateDelay }
        if nextRegionStates <= now { tellRegionsAtOnce() }
    }

    private func tellRegionsAtOnce() {
        nextRegionStates = .distantFuture
        road.takeChangedRegions { event in
            var event = copy event
            timeline.stamp(&event)
            sinks.prime(event)
        }
    }

    // MARK: The loop

    private func startSources() throws(SystemError) {
        _ = try loop.add(signals.descriptor) { [unowned self] in takeSignals() }
        _ = try loop.add(finished.event.number) { [unowned self] in loop.stop() }
        _ = try loop.add(commands.descriptor) { [unowned self] in commandAnswers.answer(with: verbs) }
        for reader in readers {
            reader.source.start(at: now, self)
            try reader.start { [unowned self, unowned reader] in
                reader.woken(at: Clock.now) { reader.source.advance(to: now, self) }
            }
        }
    }

    /// As far as presence may go: what a radio did not hear says nothing of a time in which it may have hung.
    private func proven(at now: MonotonicTime) -> MonotonicTime { sources.reduce(now) { min($0, $1.provenUntil) } }

    private var nextDeadline: MonotonicTime {
        // What was asked about waits for the answer.
        let due = road.nextDeadline
        let isDue = due > askedForSign || due <= proven(at: now)
        var decision = min(isDue ? due : .distantFuture, min(nextDemand, nextRegionStates))
        for source in sources { decision = min(decision, source.nextDeadline) }
        let machine =
            decision == .distantFuture ? decision : decision + TimeInterval(nanoseconds: -clockOffset.nanoseconds)
        let looks = readers.reduce(.distantFuture) { min($0, $1.nextLook) }
        let ours = min(min(end, looks), min(min(health.nextLook, nextHousekeeping), nextWatchdog))
        let asked = min(control?.nextDeadline ?? .distantFuture, commandAnswers.nextDeadline)
        return min(machine, min(ours, asked))
    }

    private func timerFired() {
        let now = self.now
        let machine = Clock.now
        for reader in readers {
            reader.source.advance(to: now, self)
            reader.looked(at: machine)
        }
        road.tick(proven(at: now)) { deliver($0) }
        if road.nextDeadline <= now {
            askedForSign = now
            for source in sources { source.askForSign(at: now, self) }
        }
        control?.advance(to: machine)
        commandAnswers.advance(to: machine)
        if machine >= nextWatchdog { feedWatchdog(machine) }
        if machine >= nextHousekeeping { keepHouse(machine) }
        if machine >= health.nextLook, let event = health.look(troubles, at: machine, eventTime: now) { deliver(event) }
        if machine >= end || sources.allSatisfy(\.hasEnded) { loop.stop() }
    }

    /// Has the radios do what is wanted of them now.
    func followDemand() {
        if let control, control.isWatched != (demands.demand(of: .watching) != nil) {
            changeDemands {
                if control.isWatched { $0.hold(.continuous, for: .watching) } else { $0.release(.watching) }
            }
        }
        let now = self.now
        guard nextDemand <= now else { return }
        searches.removeAll { $0.end < now }
        let directive = demands.directive(at: now)
        nextDemand = directive.until
        let holders = Array(Set(directive.holders.map(word))).sorted()
        if self.directive?.profile != directive.profile || holdersInForce != holders {
            holdersInForce = holders
            ledger.begin(
                directive.profile?.name, holders: holders, at: now, processorTime: Clock.processorTime)
        }
        self.directive = directive
        guard directive.parameters != parametersInForce else { return }
        parametersInForce = directive.parameters
        for source in sources { source.use(directive.parameters, at: now, self) }
    }

    /// Changes who wants the radios; the loop looks before it waits.
    func changeDemands(_ body: (inout ScanDemands) -> Void) {
        body(&demands)
        nextDemand = MonotonicTime(nanoseconds: .min)
    }

    /// Counts what passed until now.
    func settledAccounts() -> RadioLedger {
        ledger.settle(at: now, processorTime: Clock.processorTime)
        return ledger
    }

    /// Begins to note what is heard, with a demand that ends by itself.
    func search(_ profile: ScanProfile, for duration: TimeInterval, onlyStrangers: Bool) -> BeaconSearch {
        let search = BeaconSearch(at: now, for: duration, onlyStrangers: onlyStrangers)
        searches.append(search)
        changeDemands { _ = $0.holdTimed(profile, until: search.end) }
        return search
    }

    /// Fed while the loop turns, which it does as this is called, and the store's writer does. A dead broker or a dead
    /// radio is a matter of health: a restart would not cure it.
    private func feedWatchdog(_ machine: MonotonicTime) {
        nextWatchdog = machine + (notify.watchdogInterval ?? .seconds(1))
        if storeIsAlive {
            notify.watchdog()
        } else {
            log(.error, "the store's writer is stuck (a disk that does not answer?); the watchdog is not fed")
        }
    }

    var storeIsAlive: Bool { Clock.now - store.heartbeat < Self.storePatience }

    private func keepHouse(_ machine: MonotonicTime) {
        let reports = road.reportCount - reportsAtHousekeeping
        let rate = reports / UInt64(Self.housekeepingInterval.milliseconds / 1000)
        reportsAtHousekeeping = road.reportCount
        nextHousekeeping = machine + Self.housekeepingInterval
        if let event = flood.look(at: machine, road.crowded, tracked: road.trackedCount, eventTime: now) {
            deliver(event)
        }
        notify.status("\(rate) adv/s, \(road.presentCount) present, \(sinks.summary)")
    }

    private func takeSignals() {
        while let signal = signals.take() {
            switch signal {
            case Signals.hangUp: _ = reload()
            case Signals.user1: sinks.reopen()
            case Signals.user2:
                log.level = log.level == .debug ? setup.configuration.logLevel : .debug
                log(.notice, "log level \(log.level.word)")
            default: loop.stop()
            }
        }
    }

    /// Reads the configuration again. A bad file changes nothing; a sink whose configuration is the same goes on
    /// undisturbed.
    func reload() -> ReloadOutcome {
        guard let load = setup.reload else {
            let reason = "there is no configuration file to read again"
            log(.notice, reason)
            return .failed(reason)
        }
        notify.reloading()
        defer { notify.ready() }
        do {
            let configuration = try load()
            // A beacon's identity has the number of its format, which others would have now.
            guard configuration.formats == setup.configuration.formats else {
                let reason = "the formats have changed, which needs a restart; the old configuration goes on as a whole"
                log(.error, reason)
                return .failed(reason)
            }
            let approved = ApprovedBeacons(
                directory: Self.stateDirectory(setup.configuration), formats: vocabulary.formats)
            if let trouble = approved.trouble { throw ApprovedBeacons.Refusal(reason: trouble) }
            for warning in configuration.warnings { log(.warning, warning) }
            log.level = configuration.logLevel
            fileConfiguration = configuration
            self.approved = approved
            try adopt(approved.joined(to: configuration, vocabulary.names))
            if configuration.sources != setup.configuration.sources {
                log(.warning, "the sources have changed; they are opened at the next start")
            }
            if configuration.controlSocket != setup.configuration.controlSocket {
                log(.warning, "control_socket has changed; it is used at the next start")
            }
            log(.notice, "the configuration was read again")
            return .done
        } catch {
            let reason = "the configuration was not read again, the old one goes on:\n\(error)"
            log(.error, reason)
            return .failed(reason)
        }
    }

    /// Changes what is approved, and keeps that.
    func changeApproved(
        _ body: (inout ApprovedBeacons) throws(ApprovedBeacons.Refusal) -> Void
    ) throws(ApprovedBeacons.Refusal) {
        let before = approved.beacons
        try body(&approved)
        guard approved.beacons != before else { return }
        do throws(SystemError) { try adopt(approved.joined(to: fileConfiguration, vocabulary.names)) } catch {
            throw ApprovedBeacons.Refusal(reason: "it is kept, but not in force before the next start: \(error)")
        }
    }

    /// Goes on with another configuration.
    private func adopt(_ configuration: AgentConfiguration) throws(SystemError) {
        road.reconfigure(configuration, at: now) { deliver($0) }
        try change(configuration)
        for var event in configuration.droppedStates(of: self.configuration, at: now) {
            timeline.stamp(&event)
            sinks.prime(event)
        }
        self.configuration = configuration
        for reader in readers { reader.latency = configuration.scan.latency }
        changeDemands { demands in
            demands.reconfigure(configuration)
            road.forEachState(at: now) { demands.follow($0) }
        }
    }

    /// Has the sinks follow the configuration; new ones are told the present states.
    private func change(_ configuration: AgentConfiguration) throws(SystemError) {
        inventory.post(configuration.inventory(adapters: sources.flatMap(\.adapters)))
        try sinks.change(to: configuration.sinks.filter(\.isEnabled)) { body in
            road.forEachState(at: now) { event in
                var event = copy event
                timeline.stamp(&event)
                body(event)
            }
        }
    }

    // MARK: The way out

    private func deliver(_ event: borrowing Event) {
        var event = copy event
        timeline.stamp(&event)
        if event.kind == .regionEnter || event.kind == .regionExit {
            // What follows is done when the loop looks, not here: the road is being walked.
            changeDemands { $0.follow(event) }
        }
        for search in searches { search.note(event) }
        memory.note(event)
        sinks.offer(event)
        control?.offer(event)
    }

    private func stop() {
        notify.stopping()
        control?.close()
        for source in sources { source.stop() }
        tellRegionsAtOnce()
        if remembersPresence { memory.keepAll(road, at: now) { timeline.wallTime(of: $0) } }
        store.endTurn()
        // What happened last should still reach the sinks that read the outbox.
        store.flush(until: Clock.now + Self.flushTime)
        sinks.stop(within: Self.drainTime)
        store.close()
    }
}

extension Agent: PacketReceiver {
    func packet(_ packet: Span<UInt8>, at time: MonotonicTime, from adapter: Name) {
        road.receive(packet, at: time, from: adapter) { deliver($0) }
    }

    func activity(_ activity: RadioActivity, at time: MonotonicTime, of adapter: Name) {
        ledger.radio(adapter, activity, at: now, processorTime: Clock.processorTime)
        road.radio(adapter, activity, at: time) { deliver($0) }
    }

    func state(_ state: Event.AdapterState, at time: MonotonicTime, of adapter: Name) {
        var event = Event(kind: .adapter, time: time)
        event.name = adapter
        event.adapterState = state
        adapterStates.note(state, of: adapter)
        if let reason = adapterStates.reason(of: adapter), state != .starting { event.trouble = health.name(reason) }
        health.hasten(at: Clock.now)
        deliver(event)
    }

    func failure(_ reason: String, of adapter: Name) {
        log(.error, reason)
        adapterStates.note(failure: reason, of: adapter)
    }
}

/// What came of reading the configuration again.
enum ReloadOutcome {
    case done
    case failed(String)
}

/// Wakes the loop from another thread.
private final class LoopWake: Sendable {
    let event: EventDescriptor
    init() throws(SystemError) { event = try EventDescriptor() }
}
