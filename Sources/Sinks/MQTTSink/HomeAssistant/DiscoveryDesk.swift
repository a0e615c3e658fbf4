// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import SinkKit

/// What Home Assistant is told when, and what is taken back.
///
/// The broker is the memory: what this gateway announced is read back after each connection. What is not wanted any
/// more is cleared, what is there already is not sent again, and what a beacon was heard to measure is kept.
struct DiscoveryDesk {
    /// A message to publish; without a payload it takes back what is retained.
    struct Message: Equatable {
        var topic: String
        var payload: [UInt8]
        var isRetained = true
    }

    private enum Job {
        /// Home Assistant shall keep the entities of a topic for the announcement that takes its place.
        case migrate(String)
        case announce(DiscoveryObject, isForced: Bool)
        /// What has no successor, which Home Assistant may be off to see.
        case retire(String)
        case clear(String)
    }

    /// What is at the broker.
    private struct Announced {
        var digest: Int
        var components: [String: String]
    }

    /// The frames of a beacon that were looked at.
    private struct Watch {
        /// Different from that of any frame, at first.
        var shapes = SIMD4<UInt16>(repeating: .max)
        var place = 0
        var nextLook = MonotonicTime.zero

        mutating func note(_ shape: UInt16, isKnown: Bool) {
            guard !isKnown else { return }
            shapes[place] = shape
            place = (place + 1) % 4
        }
    }

    /// Topics that are remembered; beyond that others' retained messages would fill the memory.
    private static let capacity = 50_000
    /// Octets of a document that is read back.
    private static let longestDocument = 262_144
    /// From one look at frames of a shape to the next: one may hold other values.
    private static let lookInterval = TimeInterval.seconds(60)

    private let delay: TimeInterval
    private let jitter: TimeInterval
    private let farewellDelay: TimeInterval
    private let board: InventoryBoard
    private let formats: FormatCatalog
    private var documents: DiscoveryDocuments
    private var version: UInt64 = 0

    private var announced: [String: Announced] = [:]
    private var measured: [BeaconIdentity: Set<String>] = [:]
    private var watches: [BeaconIdentity: Watch] = [:]

    private var jobs: [Job] = []
    private var nextJob = 0
    private var outgoing: [Message] = []

    /// When what the broker retains has been read; nil when it has.
    private var readingEnd: MonotonicTime?
    private var longestReadingEnd = MonotonicTime.zero
    private var birthTime: MonotonicTime?
    /// Beacons that were heard to measure more, and when to tell.
    private var changed: Set<BeaconIdentity> = []
    private var changeTime: MonotonicTime?
    private var farewell = DiscoveryFarewell()
    /// When what Home Assistant was shown once more is taken back.
    private var farewellTime: MonotonicTime?

    init(_ documents: DiscoveryDocuments, context: SinkContext, limits: MQTTLimits) {
        self.documents = documents
        board = context.inventory
        formats = context.vocabulary.formats
        delay = limits.discoveryDelay
        jitter = limits.discoveryJitter
        farewellDelay = limits.discoveryFarewell
    }

    /// What to subscribe to at each connection.
    var filters: [String] { [documents.birthTopic, documents.filter] }
    /// What is only wanted until it was read.
    var filterToEnd: String { documents.filter }
    var isReading: Bool { readingEnd != nil }

    /// A connection stands, and the filters are subscribed to.
    mutating func begin(at now: MonotonicTime) {
        takeInventory()
        announced = [:]
        jobs = []
        nextJob = 0
        outgoing = []
        birthTime = nil
        readingEnd = now + delay
        longestReadingEnd = now + delay + delay + delay + delay + delay
    }

    /// Takes what is heard on the topics of discovery; false for any other.
    mutating func take(_ message: MQTTReports.Message, at now: MonotonicTime) -> Bool {
        if message.topic == documents.birthTopic {
            // A retained one is older than this connection, at which everything is announced anyway.
            if !message.isRetained, message.payload.elementsEqual("online".utf8) {
                birthTime = now + TimeInterval(nanoseconds: Int64.random(in: 0...max(0, jitter.nanoseconds)))
            }
            return true
        }
        let levels = message.topic.split(separator: "/", omittingEmptySubsequences: false)
        guard message.topic.hasPrefix("\(documents.configuration.prefix)/"), levels.count >= 4,
            levels[levels.count - 3] == documents.node[...], levels.last == "config"
        else { return false }
        if message.isRetained, readingEnd != nil {
            readBack(message, component: levels[levels.count - 4], level: String(levels[levels.count - 2]))
            readingEnd = min(now + delay, longestReadingEnd)
        }
        return true
    }

    /// Looks at what the frame of a sighting measures. Costs a look into a table and a comparison when it was looked at
    /// before.
    mutating func note(_ event: borrowing Event) {
        guard let payload = event.payload, let identity = event.identity,
            let slot = watches.index(forKey: identity)
        else { return }
        let (shape, time) = (payload.shape, event.time)
        let isKnown = any(watches.values[slot].shapes .== shape)
        guard !isKnown || time >= watches.values[slot].nextLook else { return }
        watches.values[slot].note(shape, isKnown: isKnown)
        watches.values[slot].nextLook = time + Self.lookInterval
        learn(FrameMeasurements.keys(in: payload, formats), of: identity)
    }

    private mutating func learn(_ keys: Set<String>, of identity: BeaconIdentity) {
        guard !keys.isSubset(of: measured[identity] ?? []) else { return }
        measured[identity, default: []].formUnion(keys)
        changed.insert(identity)
    }

    // MARK: Telling

    /// When ``next(at:)`` has something to do by itself.
    var nextTime: MonotonicTime {
        var next = MonotonicTime.distantFuture
        for time in [readingEnd, birthTime, changeTime, farewellTime] { next = min(next, time ?? next) }
        return next
    }

    /// Looks at the clock and the inventory.
    ///
    /// - Returns: whether what the broker retains was read just now.
    mutating func look(at now: MonotonicTime) -> Bool {
        if board.version != version {
            takeInventory()
            if !isReading { plan(isForced: false) }
        }
        if let end = readingEnd {
            guard now >= end else { return false }
            readingEnd = nil
            changed = []
            plan(isForced: false)
            return true
        }
        if let time = birthTime, now >= time {
            birthTime = nil
            plan(isForced: true)
            if !farewell.isEmpty {
                outgoing += farewell.placeholders(node: documents.node)
                farewellTime = now + farewellDelay
            }
        }
        if let time = farewellTime, now >= time {
            farewellTime = nil
            outgoing += farewell.clears()
        }
        if let time = changeTime {
            guard now >= time else { return false }
            changeTime = nil
            for identity in changed { jobs.append(.announce(.beacon(identity), isForced: false)) }
            changed = []
        } else if !changed.isEmpty {
            // What a beacon measures may be spread over several frames.
            changeTime = now + delay
        }
        return false
    }

    /// The next message to publish, retained.
    mutating func next() -> Message? {
        while outgoing.isEmpty {
            guard nextJob < jobs.count else {
                jobs = []
                nextJob = 0
                return nil
            }
            nextJob += 1
            work(on: jobs[nextJob - 1])
        }
        return outgoing.removeFirst()
    }

    private mutating func takeInventory() {
        let (version, inventory) = board.current
        self.version = version
        documents.use(inventory)
        let identities = Set(inventory.beacons.map(\.identity))
        measured = measured.filter { identities.contains($0.key) }
        watches = watches.filter { identities.contains($0.key) }
        for identity in identities where watches[identity] == nil { watches[identity] = Watch() }
    }

    /// Everything is looked at again: what is not wanted any more goes, and what is new or different comes.
    private mutating func plan(isForced: Bool) {
        var wanted: Set<String> = []
        for object in documents.order { wanted.formUnion(documents.topics(of: object, measuring: keys(of: object))) }
        let stale = announced.keys.filter { !wanted.contains($0) }.sorted()
        let hasSuccessor = documents.configuration.release.readsDeviceDocuments
        let moved = hasSuccessor ? stale.filter { object(of: $0) != nil } : []
        let announcements = documents.order.map { Job.announce($0, isForced: isForced) }
        // A unique id must not be there twice, except from an announcement that has made room.
        let gone = stale.filter { !moved.contains($0) }.map { Job.retire($0) }
        jobs = gone + moved.map { .migrate($0) } + announcements + moved.map { .clear($0) }
        nextJob = 0
    }

    private mutating func work(on job: Job) {
        switch job {
        case .migrate(let topic): outgoing.append(Message(topic: topic, payload: Self.migration))
        case .retire(let topic):
            farewell.remember(topic, announced[topic]?.components ?? [:])
            announced[topic] = nil
            outgoing.append(Message(topic: topic, payload: []))
        case .clear(let topic):
            announced[topic] = nil
            outgoing.append(Message(topic: topic, payload: []))
        case .announce(let object, let isForced):
            for document in documents.documents(of: object, measuring: keys(of: object)) {
                farewell.forget(document.topic)
                let last = announced[document.topic]
                let digest = document.payload.hashValue
                guard isForced || last?.digest != digest else { continue }
                let gone = (last?.components ?? [:]).filter { document.components[$0.key] == nil }
                if !gone.isEmpty {
                    outgoing += documents.documents(of: object, measuring: keys(of: object), gone: gone).map {
                        Message(topic: $0.topic, payload: $0.payload)
                    }
                }
                outgoing.append(Message(topic: document.topic, payload: document.payload))
                announced[document.topic] = Announced(digest: digest, components: document.components)
            }
        }
    }

    /// What Home Assistant wants at the old topic before a device document takes over its entity (documentation of its
    /// MQTT integration, "Migration from single component to device-based discovery").
    private static let migration = Array("{\"migrate_discovery\":true}".utf8)

    private func keys(of object: DiscoveryObject) -> Set<String> {
        guard case .beacon(let identity) = object else { return [] }
        return measured[identity] ?? []
    }

    // MARK: Reading back

    private mutating func readBack(_ message: MQTTReports.Message, component: Substring, level: String) {
        guard announced.count < Self.capacity, message.payload.count <= Self.longestDocument,
            let document = try? Document(message.payload).root
        else { return }
        guard case .text(DiscoveryDocuments.origin) = document["origin"]?["name"]?.content else {
            // Left in the middle of a migration.
            if message.payload == Self.migration { announced[message.topic] = Announced(digest: 0, components: [:]) }
            return
        }
        var components: [String: String] = [:]
        if case .object(let members) = document["components"]?.content {
            for member in members {
                guard case .text(let platform) = member.value["platform"]?.content else { continue }
                components[member.key] = platform
            }
        }
        announced[message.topic] = Announced(digest: message.payload.hashValue, components: components)
        if component == "device" {
            if case .beacon(let identity) = documents.objects[level] {
                remember(components.keys.filter { MeasuredQuantity.named($0) != nil }, of: identity)
            }
        } else if let (object, key) = entity(of: level), case .beacon(let identity) = object,
            MeasuredQuantity.named(key) != nil
        {
            remember([key], of: identity)
        }
    }

    private mutating func remember(_ keys: [String], of identity: BeaconIdentity) {
        if !keys.isEmpty { measured[identity, default: []].formUnion(keys) }
    }

    /// The device of a topic, if it is announced still.
    private func object(of topic: String) -> DiscoveryObject? {
        let levels = topic.split(separator: "/")
        guard levels.count >= 2 else { return nil }
        return entity(of: String(levels[levels.count - 2]))?.object
    }

    /// The device and the key of the level of one entity. Names are escaped so that there is one way at most to read it.
    private func entity(of level: String) -> (object: DiscoveryObject, key: String)? {
        for index in level.utf8.indices where level.utf8[index] == UInt8(ascii: "_") {
            if let object = documents.objects[String(level[..<index])] {
                return (object, String(level[level.index(after: index)...]))
            }
        }
        return nil
    }
}
