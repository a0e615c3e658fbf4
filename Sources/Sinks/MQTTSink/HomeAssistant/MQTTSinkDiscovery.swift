// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit

/// Home Assistant at the sink: its messages go out beside those of batches, a few at a time.
extension MQTTSink {
    /// Asks for what was announced, and for the birth of Home Assistant.
    mutating func beginDiscovery(_ connection: MQTTConnection) throws(MQTTFailure) {
        guard let filters = discovery?.filters else { return }
        for filter in filters { try connection.subscribe(filter) }
        discovery?.begin(at: context.now())
    }

    /// Publishes what is due, as far as there is room. Never waits.
    mutating func tendDiscovery(_ connection: MQTTConnection) throws(MQTTFailure) {
        guard let filter = discovery?.filterToEnd, !context.isStopping() else { return }
        // What was announced comes back otherwise.
        if discovery?.look(at: context.now()) == true { try connection.unsubscribe(filter) }
        while window.hasRoomBeside, !connection.hasUnsentBytes, let message = discovery?.next() {
            do throws(MQTTFailure) {
                window.sendBeside(
                    try connection.publish(
                        Array(message.topic.utf8CString), message.payload, .atLeastOnce, retain: message.isRetained,
                        properties))
            } catch {
                guard case .unsendable(let reason) = error else { throw error }
                context.log(.warning, "cannot publish to \(message.topic): \(reason)")
            }
        }
    }
}
