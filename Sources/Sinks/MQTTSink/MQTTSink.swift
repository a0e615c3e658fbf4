// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import CMosquitto
public import Configuration
public import SinkKit

/// Publishes to an MQTT broker: states retained, transitions acknowledged and in order, sightings as they come.
///
/// See the README beside this file.
public struct MQTTSink: ~Copyable, Sink {
    public static let descriptor = SinkDescriptor(
        kind: "mqtt", summary: "Publishes presence, events and sightings to an MQTT broker.",
        section: MQTTConfiguration.section, roles: [.states, .transitions, .sightings], isDurable: true,
        showsUnknown: { $0[MQTTConfiguration.publishUnknown] }, servicesConnection: true)

    let configuration: MQTTConfiguration
    let context: SinkContext
    let limits: MQTTLimits
    let status: GatewayStatus
    let encoder: EventEncoder

    let properties: MQTTProperties
    let sightingProperties: MQTTProperties

    var connection: MQTTConnection?
    /// The version that the broker asked for by refusing the other one.
    var agreedVersion: MQTTVersion?
    var hasWarnedOfExposure = false
    /// The births of this connection and of the one before it; empty until there was one.
    var birth: [UInt8] = []
    var lastBirth: [UInt8] = []

    var topics: MQTTTopics
    var writer = JSONWriter()
    var desk: CommandDesk
    /// nil when nothing is announced to Home Assistant.
    var discovery: DiscoveryDesk?
    var sweep: RetainedSweep
    var window: DeliveryWindow
    var rounds = RangingRounds()
    var strangers: StrangerLimit
    var presets: Presets
    var health: HealthDocument
    var nextHealth = MonotonicTime.zero
    /// When a wait was first found to delay the end of the program.
    var stoppingSince: MonotonicTime?

    public init(_ configuration: Values, context: SinkContext) throws(SinkError) {
        self.init(configuration, context: context, limits: MQTTLimits())
    }

    init(_ configuration: Values, context: SinkContext, limits: MQTTLimits) {
        self.configuration = MQTTConfiguration(configuration, gateway: context.gateway)
        self.context = context
        self.limits = limits
        status = GatewayStatus(gateway: context.gateway, version: context.version)
        encoder = EventEncoder(gateway: context.gateway, vocabulary: context.vocabulary)
        topics = MQTTTopics(
            prefix: self.configuration.topicPrefix, gateway: context.gateway, vocabulary: context.vocabulary,
            templates: self.configuration.templates)
        desk = CommandDesk(
            allowed: self.configuration.commands, gateway: context.gateway, root: topics.root,
            territories: topics.territories, receiver: context.commands)
        sweep = RetainedSweep(topics, gateway: context.gateway, vocabulary: context.vocabulary)
        if let announcements = self.configuration.homeAssistant {
            discovery = DiscoveryDesk(
                DiscoveryDocuments(
                    announcements, gateway: context.gateway, version: context.version, vocabulary: context.vocabulary,
                    topics: topics),
                context: context, limits: limits)
        }
        let user = [(name: "gateway", value: context.gateway), (name: "v", value: "\(EventEncoder.version)")]
        properties = MQTTProperties(user: user)
        sightingProperties = MQTTProperties(user: user, expiry: limits.sightingExpiry)
        window = DeliveryWindow(capacity: limits.window)
        strangers = StrangerLimit(self.configuration.strangersPerHour)
        presets = Presets(self.configuration, context: context)
        health = HealthDocument(
            gateway: context.gateway, version: context.version, names: context.vocabulary.names)
    }

    // MARK: Sink

    public mutating func open() throws(SinkError) {
        close(isFinal: false)
        let login = try readLogin()
        do throws(MQTTFailure) {
            try connect(login)
            try announce()
        } catch {
            close(isFinal: false)
            throw SinkError(
                .disconnected(accepted: 0), "connect to \(configuration.place)", words(for: error),
                longestWait: longestWait(after: error))
        }
    }

    public mutating func write(_ batch: borrowing EventBatch) throws(SinkError) {
        window.begin()
        stoppingSince = nil
        let isComplete: Bool
        do throws(MQTTFailure) {
            try step(for: .zero)
            isComplete = try send(batch)
            try current().release()
            while !window.isSettled { try step(for: limits.slice) }
        } catch {
            let accepted = window.accepted
            if case .stopping = error { throw SinkError(.retry(accepted: accepted), "publish", error.reason) }
            throw SinkError(.disconnected(accepted: accepted), "publish", error.reason)
        }
        if let refusal = window.refusal {
            health.sent.refused += 1
            spellTopic(of: batch.deliveries[refusal.index])
            guard !refusal.isTemporary else {
                throw SinkError(.retry(accepted: refusal.index), "publish to \(topics.text)", refusal.reason)
            }
            throw SinkError(.reject(accepted: refusal.index), "publish to \(topics.text)", refusal.reason)
        }
        if !isComplete {
            throw SinkError(
                .busy(accepted: window.accepted), "publish", "the broker takes sightings more slowly than they come")
        }
        do throws(MQTTFailure) {
            try tellHealth(after: batch)
            try tendDiscovery(try current())
            try tendSweep(try current())
        } catch {
            throw SinkError(.disconnected(accepted: batch.count), "publish", error.reason)
        }
    }

    public mutating func idle(wake: Int32, until deadline: MonotonicTime) throws(SinkError) {
        do throws(MQTTFailure) {
            let connection = try current()
            var isWoken = false
            repeat {
                // The library looks at its keepalive when it is called, which it wants once a second.
                isWoken = try connection.service(
                    for: min(min(deadline, discovery?.nextTime ?? deadline) - context.now(), .seconds(1)), wake: wake,
                    alsoFor: desk.descriptor)
                bookAnswers(connection)
                try attend(connection)
                try tendDiscovery(connection)
                try tendSweep(connection)
                if !health.isEmpty, health.isChanged || context.now() >= nextHealth { try publishHealth(connection) }
            } while !isWoken && context.now() < deadline
        } catch {
            throw SinkError(.disconnected(accepted: 0), "keep the connection", error.reason)
        }
    }

    public mutating func close(isFinal: Bool) {
        if isFinal, let connection, connection.isAccepted, connection.isOpen {
            // A good-bye that fails leaves the will, which says the same.
            do throws(MQTTFailure) { try sayGoodbye(connection) } catch {}
        }
        connection = nil
    }

    // MARK: Connecting

    /// What is read anew at each connection, because it may have been corrected.
    private struct Login {
        var username: [CChar]?
        var password: [CChar]?
    }

    private mutating func readLogin() throws(SinkError) -> Login {
        var login = Login()
        if let username = configuration.username {
            login.username =
                if let secret = Secret(username) { try read(secret, "username") } else { Array(username.utf8CString) }
        }
        if let password = configuration.password { login.password = try read(password, "password") }
        return login
    }

    private mutating func read(_ secret: Secret, _ key: String) throws(SinkError) -> [CChar] {
        do throws(Secret.Failure) {
            let (text, exposedFile) = try secret.read()
            if let exposedFile, !hasWarnedOfExposure {
                hasWarnedOfExposure = true
                context.log(.warning, "every user of this machine can read \(exposedFile) (`\(key)`): chmod 600")
            }
            return text
        } catch {
            throw SinkError(.disconnected(accepted: 0), "connect", "`\(key)`: \(error.reason)")
        }
    }

    private mutating func connect(_ login: Login) throws(MQTTFailure) {
        let first = configuration.version ?? agreedVersion ?? .v5
        let refusal: MQTTFailure
        do throws(MQTTFailure) {
            return try connect(first, login)
        } catch {
            guard configuration.version == nil, error.suggestsOlderVersion else { throw error }
            agreedVersion = nil
            guard first == .v5 else { throw error }
            refusal = error
        }
        try connect(.v311, login)
        // A broker that merely hung up may have been ending: it is asked for MQTT 5 again the next time.
        if case .refused = refusal { agreedVersion = .v311 }
        context.log(.notice, "the broker does not accept MQTT 5, using 3.1.1")
    }

    private mutating func connect(_ version: MQTTVersion, _ login: Login) throws(MQTTFailure) {
        connection = nil
        let connection = try MQTTConnection(
            .init(
                host: configuration.host, port: configuration.port, clientID: configuration.clientID,
                keepalive: configuration.keepalive, username: login.username, password: login.password,
                tls: configuration.tls, version: version, willTopic: topics.status, will: status.will(),
                willDelay: limits.willDelay,
                sendBuffer: limits.sendBuffer, userTimeout: limits.userTimeout))
        let deadline = context.now() + limits.connectTime
        while !connection.isAccepted {
            guard !context.isStopping() else { throw .stopping }
            guard context.now() < deadline else {
                throw .lost("no answer within \(limits.connectTime.seconds) s: is there a broker?")
            }
            try connection.service(for: limits.slice)
        }
        self.connection = connection
    }

    /// Listens to what is said of this gateway, and publishes the birth.
    private mutating func announce() throws(MQTTFailure) {
        let connection = try current()
        window.reset()
        stoppingSince = nil
        // In this order, so that what the broker retained is heard before the birth replaces it.
        try connection.subscribe(topics.status)
        if let filter = desk.filter { try connection.subscribe(filter) }
        try beginDiscovery(connection)
        try beginSweep(connection)
        lastBirth = birth
        birth = status.online()
        window.send(try publishStatus(birth, connection), at: context.now())
        try presets.publishStatus(isOnline: true, connection)
        health.sent.connections += 1
        if !health.isEmpty { try publishHealth(connection) }
        while !window.isSettled { try step(for: limits.slice) }
        if let refusal = window.refusal {
            context.log(.warning, "publish to \(topics.status): \(refusal.reason)")
        }
    }

    private func longestWait(after failure: MQTTFailure) -> TimeInterval? {
        guard case .untrusted = failure, !limits.isClockSynchronized() else { return nil }
        return limits.clockWait
    }

    private func words(for failure: MQTTFailure) -> String {
        guard case .refused(let code) = failure else { return failure.reason }
        let cure: String? =
            switch code {
            // Bad user name or password, and not authorised, as 3.1.1 and as MQTT 5 count them.
            case 4, 5, 134, 135:
                configuration.username == nil
                    ? "set `username` and `password`, or let the broker accept this gateway without them"
                    : "check `username`, `password`, and what the broker permits this user"
            case 2, 133: "set `client_id`; it is \(configuration.clientID)"
            case 1, 132: "set `protocol` to what the broker speaks"
            default: nil
            }
        return "the broker refuses: \(failure.reason)\(cure.map { ": \($0)" } ?? "")"
    }

    // MARK: Writing

    /// Sends as much of the batch as it may: up to the first delivery that can never be sent, or the first sighting
    /// for which the socket has no room.
    ///
    /// - Returns: whether nothing was left for want of room.
    private mutating func send(_ batch: borrowing EventBatch) throws(MQTTFailure) -> Bool {
        let connection = try current()
        while window.next < batch.count, window.refusal == nil {
            let delivery = batch.deliveries[window.next]
            guard isWanted(delivery.event) else {
                window.handOver()
                continue
            }
            if delivery.role == .sightings {
                guard try waitForRoom(connection) else { return false }
            } else {
                // One answer at a time would make a segment of each message, too.
                if window.isFull { while !window.isRoomy { try step(for: limits.slice) } }
                guard window.refusal == nil else { break }
            }
            connection.gather()
            do throws(MQTTFailure) {
                try send(delivery, stream: batch.stream, connection)
            } catch {
                guard case .unsendable(let reason) = error else { throw error }
                window.refuseNext(reason)
            }
        }
        return true
    }

    private mutating func send(
        _ delivery: borrowing Delivery, stream: String, _ connection: MQTTConnection
    ) throws(MQTTFailure) {
        spellTopic(of: delivery)
        writer.reset()
        switch delivery.role {
        case .states:
            health.sent.states += 1
            for identifier in try presets.publishExit(delivery.event, connection, properties) {
                window.sendBeside(identifier)
            }
            // Nothing: the broker drops what it retains of a beacon or a region that the configuration has no more.
            if !isGone(delivery.event) { encoder.encodeState(delivery.event, into: &writer) }
            window.send(
                try connection.publish(topics.topic, writer.bytes, .atLeastOnce, retain: true, properties),
                at: context.now())
        case .sightings:
            discovery?.note(delivery.event)
            if delivery.event.kind == .ranging {
                let round = rounds.add(delivery.event)
                guard !round.isEmpty else { return window.handOver() }
                encoder.encodeRanging(round, into: &writer)
            } else if configuration.sendsCompactSightings {
                CompactSighting.write(delivery.event, context.vocabulary.formats, into: &writer)
            } else {
                encoder.encode(delivery, stream: stream, into: &writer)
            }
            health.sent.sightings += 1
            _ = try connection.publish(topics.topic, writer.bytes, .atMostOnce, retain: false, sightingProperties)
            try presets.publishSighting(delivery.event, connection, sightingProperties)
            window.handOver()
        default:
            health.note(delivery, stream: stream)
            health.sent.events += 1
            encoder.encode(delivery, stream: stream, into: &writer)
            window.send(
                try connection.publish(topics.topic, writer.bytes, .atLeastOnce, retain: false, properties),
                at: context.now())
        }
    }

    /// Of beacons that the configuration does not name, nothing but sightings is published, and those only on demand:
    /// every passer-by would leave a retained topic at the broker for ever. The outbox may hold their transitions for
    /// other sinks.
    private mutating func isWanted(_ event: borrowing Event) -> Bool {
        switch event.kind {
        case .sighting: event.isConfigured ? true : isWantedStranger(event)
        case .enter, .exit, .unknown, .known, .proximity, .ranging, .clone: event.isConfigured
        case .regionEnter, .regionExit, .regionUnknown, .regionKnown, .adapter, .gap, .health, .flood: true
        }
    }

    private mutating func isWantedStranger(_ event: borrowing Event) -> Bool {
        guard configuration.strangersPerHour > 0, let identity = event.identity else { return false }
        guard !strangers.admits(identity, at: context.now()) else { return true }
        health.sent.withheld += 1
        return false
    }

    private func isGone(_ event: borrowing Event) -> Bool {
        guard event.exitReason == .removed else { return false }
        // A region that lost its last beacon to the configuration is still there.
        let (kind, isConfigured) = (event.kind, event.isConfigured)
        return kind == .exit || kind == .regionExit && !isConfigured
    }

    private mutating func spellTopic(of delivery: borrowing Delivery) {
        switch delivery.role {
        case .states: topics.spell(delivery.event, .presence)
        case .sightings: topics.spell(delivery.event, delivery.event.kind == .ranging ? .ranging : .sighting)
        default: topics.spell(delivery.event, .event)
        }
    }

    /// Whether the socket has taken everything before this sighting, after a short wait if need be. What is sent before
    /// that would only lengthen the way of a transition.
    private mutating func waitForRoom(_ connection: MQTTConnection) throws(MQTTFailure) -> Bool {
        guard connection.hasUnsentBytes else { return true }
        let deadline = context.now() + limits.sightingPatience
        repeat {
            try step(for: min(limits.slice, deadline - context.now()))
        } while connection.hasUnsentBytes
            && context.now() < deadline
        return !connection.hasUnsentBytes
    }

    /// Drives the connection once and books the answers; throws when the broker owes one for too long, or when the
    /// program ends and has waited long enough.
    private mutating func step(for time: TimeInterval) throws(MQTTFailure) {
        let connection = try current()
        let failure: MQTTFailure?
        do throws(MQTTFailure) {
            try connection.service(for: time)
            failure = nil
        } catch {
            failure = error
        }
        bookAnswers(connection)
        if let failure { throw failure }
        try attend(connection)

        let now = context.now()
        if !window.isSettled, now - window.lastProgress > limits.acknowledgementTime {
            throw .lost("the broker has acknowledged nothing for \(limits.acknowledgementTime.seconds) s")
        }
        if context.isStopping() {
            let since = stoppingSince ?? now
            stoppingSince = since
            if now - since > limits.stoppingGrace { throw .stopping }
        }
    }

    mutating func bookAnswers(_ connection: MQTTConnection) {
        let now = context.now()
        connection.takeAcknowledgements { answer in
            let refusal = answer.code < 128 ? nil : "the broker refuses: \(MQTTFailure.codeText(answer.code))"
            // Room that is used up comes back; a permission or a format does not by itself.
            let isTemporary = answer.code == Int32(MQTT_RC_QUOTA_EXCEEDED.rawValue)
            window.answer(answer.message, refusal: refusal, isTemporary: isTemporary, at: now)
        }
        if let reason = window.takeRefusalBeside() {
            context.log(.warning, "an announcement, or a message of a preset, was not taken: \(reason)")
        }
    }
}
