// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import Configuration

/// One destination of events. Driven by one thread; `write` is never called before `open` has succeeded or after
/// `close`, so an implementation needs no locks.
///
/// A sink has no queue, no retry and no reconnect logic of its own: the runtime batches, waits and tries again. It
/// says what became of a batch, exactly:
/// - ``write(_:)`` returns when the destination *has* the batch. A file has it after `write(2)`, a broker when it has
///   acknowledged the last message that it acknowledges at all;
/// - it throws ``SinkError`` otherwise, with how many deliveries were accepted from the front of the batch.
///
/// `SinkTestKit` holds an implementation to this contract; `docs/writing-a-sink.md` shows how one is
/// added.
public protocol Sink: ~Copyable, SendableMetatype {
    static var descriptor: SinkDescriptor { get }

    /// Makes a sink that is not open yet. Touches nothing outside the process.
    init(_ configuration: Values, context: SinkContext) throws(SinkError)

    /// Reaches the destination. Called again after every ``close()``; a throw leads to another try after a wait.
    mutating func open() throws(SinkError)

    /// Hands the batch to the destination, in order, and returns when it has it.
    mutating func write(_ batch: borrowing EventBatch) throws(SinkError)

    /// Called instead of `write` while there is nothing to write, for a sink that keeps a connection alive. Returns at
    /// `deadline`, or as soon as `wake` becomes readable (poll it, never read it). Only called when the descriptor
    /// says `servicesConnection`.
    mutating func idle(wake: Int32, until deadline: MonotonicTime) throws(SinkError)

    /// SIGUSR1: close and open files again, for log rotation. A throw means that the connection is lost.
    mutating func reopen() throws(SinkError)

    /// Lets go of the destination. `isFinal` when the program ends: say good-bye as the protocol wants it. Also called
    /// after an `open` that failed, when nothing is open, and twice.
    mutating func close(isFinal: Bool)
}

extension Sink where Self: ~Copyable {
    public mutating func idle(wake: Int32, until deadline: MonotonicTime) throws(SinkError) {}
    public mutating func reopen() throws(SinkError) {}
}

/// What the host must know of a kind of sink before it makes one.
public struct SinkDescriptor: Sendable {
    /// `mqtt`: `lower_snake_case`, the value of `kind` in the configuration.
    public let kind: String
    /// One sentence that ends in a period.
    public let summary: String
    /// The keys of its `config` object.
    public let section: Section
    /// What it wants to be given.
    public let roles: DeliveryRoles
    /// Transitions come from the outbox, with stream and sequence number, and are remembered until they are written.
    public let isDurable: Bool
    /// Beacons that the configuration does not name are given too. A debugging sink shows everything.
    public let showsUnknown: @Sendable (Values) -> Bool
    /// ``Sink/idle(wake:until:)`` wants to be called.
    public let servicesConnection: Bool

    public init(
        kind: String, summary: String, section: Section, roles: DeliveryRoles = [.transitions, .sightings],
        isDurable: Bool = false, showsUnknown: @escaping @Sendable (Values) -> Bool = { _ in true },
        servicesConnection: Bool = false
    ) {
        self.kind = kind
        self.summary = summary
        self.section = section
        self.roles = roles
        self.isDurable = isDurable
        self.showsUnknown = showsUnknown
        self.servicesConnection = servicesConnection
    }
}

/// The classes of delivery.
public struct DeliveryRoles: OptionSet, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The newest transition of each beacon and region, as state: all of them after each `open`, then what changed.
    public static let states = DeliveryRoles(rawValue: 1)
    /// Every transition, in order.
    public static let transitions = DeliveryRoles(rawValue: 2)
    /// Sightings, newest only under pressure.
    public static let sightings = DeliveryRoles(rawValue: 4)
}

/// What a sink may use of its host.
public struct SinkContext: Sendable {
    /// The name of this instance in the configuration.
    public let name: String
    /// The gateway's id, valid as one level of a topic.
    public let gateway: String
    public let vocabulary: Vocabulary
    /// Version of the program, for a birth message.
    public let version: String
    /// Writes a line to the log; the host puts the name of the sink in front.
    public let log: @Sendable (LogLevel, String) -> Void
    /// Whether the program ends and the time to deliver what waits is over: a wait for an answer must be cut short.
    public let isStopping: @Sendable () -> Bool
    /// Seconds to nanoseconds of the clock that deadlines are on.
    public let now: @Sendable () -> MonotonicTime
    /// Where requests from outside go; nil when this host takes none.
    public let commands: CommandReceiver?
    /// What the configuration names; empty from a host that has none.
    public let inventory: InventoryBoard
    /// What the host has done for this sink until now; nil when it keeps no account. Asked on the sink's thread, and it
    /// may wait for the disk.
    public let counters: (@Sendable () -> SinkHostCounters)?

    public init(
        name: String, gateway: String, vocabulary: Vocabulary, version: String,
        log: @escaping @Sendable (LogLevel, String) -> Void, isStopping: @escaping @Sendable () -> Bool,
        now: @escaping @Sendable () -> MonotonicTime, commands: CommandReceiver? = nil,
        inventory: InventoryBoard = InventoryBoard(), counters: (@Sendable () -> SinkHostCounters)? = nil
    ) {
        self.name = name
        self.gateway = gateway
        self.vocabulary = vocabulary
        self.version = version
        self.log = log
        self.isStopping = isStopping
        self.now = now
        self.commands = commands
        self.inventory = inventory
        self.counters = counters
    }
}

/// Why a sink could not do what it was asked.
public struct SinkError: Error, CustomStringConvertible {
    public enum Disposition: Sendable, Equatable {
        /// Try the rest again after a wait; `accepted` deliveries from the front of the batch are with the
        /// destination.
        case retry(accepted: Int)
        /// Nothing is wrong, but the destination takes no more for now: what is left are sightings, and newer ones may take
        /// their place before the next try.
        case busy(accepted: Int)
        /// The delivery behind the first `accepted` ones can never be written; go on with the one after it.
        case reject(accepted: Int)
        /// The connection is gone: close, wait, open, and go on behind the first `accepted` deliveries.
        case disconnected(accepted: Int)
        /// The reader is gone for good and the program has nobody left to speak to (a closed pipe): end quietly.
        case finished
    }

    public var disposition: Disposition
    /// What was tried: `connect`, `write`.
    public var operation: String
    /// What happened, and the cure where one is known.
    public var reason: String
    /// The next try comes no later than this; nil when the wait may grow as usual.
    public var longestWait: TimeInterval?

    public init(
        _ disposition: Disposition, _ operation: String, _ reason: String, longestWait: TimeInterval? = nil
    ) {
        self.disposition = disposition
        self.operation = operation
        self.reason = reason
        self.longestWait = longestWait
    }

    public var description: String { "\(operation): \(reason)" }
}
