// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit

/// What the sink says of the gateway itself, and what it hears of it.
extension MQTTSink {
    /// Looks after what is said of this gateway on its status topic.
    mutating func attend(_ connection: MQTTConnection) throws(MQTTFailure) {
        let reports = connection.reports
        var isCalledOffline = false
        for heard in reports.messages {
            guard heard.topic == topics.status else {
                sweep.take(heard)
                if discovery?.take(heard, at: context.now()) == true { continue }
                // A session that outlived a change of the configuration may have subscriptions of before.
                guard desk.isCommand(heard.topic) else { continue }
                if let reason = desk.take(heard, at: context.now()) {
                    context.log(.warning, "refused a command: \(reason)")
                }
                continue
            }
            switch GatewayStatus.state(of: heard.payload) {
            case .offline where !heard.isRetained: isCalledOffline = true
            case .online where isStrange(heard): context.log(.warning, MQTTFailure.takenOver)
            default: break
            }
        }
        reports.messages.removeAll(keepingCapacity: true)
        try answerCommands(connection)
        // The will of an earlier connection, or somebody's mistake: this gateway is here.
        if isCalledOffline { _ = try publishStatus(birth, connection) }

        for (topic, code) in connection.takeRefusedSubscriptions() {
            let consequence = topic == topics.status ? ", so it cannot correct a wrong status there" : ""
            context.log(
                .warning,
                "the broker does not let this gateway read \(topic)\(consequence): \(MQTTFailure.codeText(code))")
        }
    }

    func answerCommands(_ connection: MQTTConnection) throws(MQTTFailure) {
        for reply in desk.takeReplies() {
            let properties = MQTTProperties(user: [("gateway", context.gateway)], correlation: reply.correlation)
            do throws(MQTTFailure) {
                _ = try connection.publish(
                    Array(reply.topic.utf8CString), reply.payload, .atMostOnce, retain: false, properties)
            } catch {
                guard case .unsendable(let reason) = error else { throw error }
                context.log(.warning, "cannot answer a command on \(reply.topic): \(reason)")
            }
        }
    }

    /// Whether a birth is another gateway's: mosquitto does not tell a client that another one took its session.
    ///
    /// A retained one is, when it is younger than the last one of this process; an older one may come from a broker
    /// that lost its newest state. Births begin alike up to the time, so that their order is that of the times.
    func isStrange(_ heard: MQTTReports.Message) -> Bool {
        heard.isRetained
            ? !lastBirth.isEmpty && lastBirth.lexicographicallyPrecedes(heard.payload) : heard.payload != birth
    }

    /// With MQTT 5 the broker keeps the will, and publishes it if nobody returns; with 3.1.1 a DISCONNECT drops the
    /// will, so the status is said here.
    mutating func sayGoodbye(_ connection: MQTTConnection) throws(MQTTFailure) {
        let deadline = context.now() + limits.stoppingGrace
        try presets.publishStatus(isOnline: false, connection)
        if connection.version == .v311 {
            window.begin()
            window.send(try publishStatus(status.offline(), connection), at: context.now())
            while !window.isSettled {
                guard context.now() < deadline else { return }
                try connection.service(for: limits.slice)
                bookAnswers(connection)
            }
        }
        try connection.disconnect(leavesWill: connection.version == .v5)
        while connection.isOpen, context.now() < deadline { try connection.service(for: limits.slice) }
    }

    /// Publishes how the gateway fares when a batch told something new. While old events come in full batches, newer ones
    /// are behind them: the topic must not go through it all once more.
    mutating func tellHealth(after batch: borrowing EventBatch) throws(MQTTFailure) {
        let last = batch.deliveries.last { $0.role == .transitions }
        if let last, last.sequence > 0 { health.acknowledge(batch.stream, through: last.sequence) }
        guard health.isChanged, !(batch.isFull && last?.isReplayed == true) else { return }
        try publishHealth(try current())
    }

    /// Its answer is not waited for: the next document says more.
    mutating func publishHealth(_ connection: MQTTConnection) throws(MQTTFailure) {
        nextHealth = context.now() + limits.healthInterval
        writer.reset()
        health.tell(context.counters?(), into: &writer)
        _ = try connection.publish(topics.healthTopic, writer.bytes, .atLeastOnce, retain: true, properties)
    }

    func publishStatus(_ payload: [UInt8], _ connection: MQTTConnection) throws(MQTTFailure) -> Int32 {
        try connection.publish(topics.statusTopic, payload, .atLeastOnce, retain: true, properties)
    }

    func current() throws(MQTTFailure) -> MQTTConnection {
        guard let connection else { throw .lost("there is no connection") }
        return connection
    }
}
