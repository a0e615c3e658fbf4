// SPDX-License-Identifier: Apache-2.0

import BeaconModel
public import Configuration
public import SinkKit

/// Takes every event, counts it, and forgets it: for measuring everything before it.
public struct NullSink: ~Copyable, Sink {
    public static let descriptor = SinkDescriptor(
        kind: "null", summary: "Counts events and forgets them.", section: Section([]))

    private let context: SinkContext
    private var counts = [UInt64](repeating: 0, count: Int(UInt8.max) + 1)

    public init(_ configuration: Values, context: SinkContext) throws(SinkError) {
        self.context = context
    }

    public mutating func open() throws(SinkError) {}

    public mutating func write(_ batch: borrowing EventBatch) throws(SinkError) {
        for delivery in batch.deliveries { counts[Int(delivery.event.kind.rawValue)] += 1 }
    }

    public mutating func close(isFinal: Bool) {
        guard isFinal else { return }
        let kinds = Event.Kind.allCases.filter { counts[Int($0.rawValue)] > 0 }
        let words = kinds.map { "\(counts[Int($0.rawValue)]) \($0.word)" }
        context.log(.info, "sink \(context.name): counted \(words.isEmpty ? "nothing" : words.joined(separator: ", "))")
    }
}
