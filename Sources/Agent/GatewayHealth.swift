// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// What was told of the gateway's health, and when to look again.
struct GatewayHealth {
    /// Between two looks at what needs no hurry.
    private static let interval = TimeInterval.seconds(10)
    /// From the trouble of an adapter to the look: several changes in a row are one.
    private static let haste = TimeInterval.seconds(1)

    /// Sentences that become names, which are never forgotten: a bound for texts into which others may put anything.
    private static let capacity = 256

    private var told: [String] = []
    private(set) var nextLook: MonotonicTime
    private let grace: MonotonicTime
    private var reasons: Set<String> = []
    private let names: NameTable

    /// - Parameter beginning: sinks and adapters have until the first look to come up.
    init(_ names: NameTable, at beginning: MonotonicTime) {
        self.names = names
        grace = beginning + Self.interval
        nextLook = grace
    }

    /// An adapter is better or worse.
    mutating func hasten(at time: MonotonicTime) {
        if time >= grace { nextLook = min(nextLook, time + Self.haste) }
    }

    /// Takes what is wrong at a look; the event to tell if that has changed.
    mutating func look(_ troubles: [String], at time: MonotonicTime, eventTime: MonotonicTime) -> Event? {
        nextLook = time + Self.interval
        guard troubles != told else { return nil }
        told = troubles
        var event = Event(kind: .health, time: eventTime)
        event.isHealthy = troubles.isEmpty
        if !troubles.isEmpty { event.trouble = name(troubles.joined(separator: "; ")) }
        return event
    }

    /// A sentence as a name.
    mutating func name(_ sentence: String) -> Name {
        if !reasons.contains(sentence) {
            guard reasons.count < Self.capacity else { return names.intern("see the log of the gateway") }
            reasons.insert(sentence)
        }
        return names.intern(sentence)
    }
}
