// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Synchronization

/// What the configuration in force names, for a sink that tells others what there is.
public struct Inventory: Sendable, Equatable {
    public struct Beacon: Sendable, Equatable {
        public var identity: BeaconIdentity
        /// ``Name/none`` for one without.
        public var alias: Name

        public init(identity: BeaconIdentity, alias: Name = .none) {
            self.identity = identity
            self.alias = alias
        }
    }

    public struct Region: Sendable, Equatable {
        public var name: Name
        /// What its beacons match.
        public var patterns: [IdentityPattern]

        public init(name: Name, patterns: [IdentityPattern] = []) {
            self.name = name
            self.patterns = patterns
        }
    }

    /// Each identity once.
    public var beacons: [Beacon]
    /// Each name once.
    public var regions: [Region]
    public var adapters: [Name]

    public init(beacons: [Beacon] = [], regions: [Region] = [], adapters: [Name] = []) {
        self.beacons = beacons
        self.regions = regions
        self.adapters = adapters
    }

    /// Whether a beacon is named, or a region that it belongs to.
    public func names(_ identity: BeaconIdentity) -> Bool {
        beacons.contains { $0.identity == identity }
            || regions.contains { region in region.patterns.contains { $0.matches(identity) } }
    }
}

/// Where the host posts the inventory and sinks read it, each on its own thread.
public final class InventoryBoard: Sendable {
    private let posted: Mutex<(version: UInt64, inventory: Inventory)>
    private let count = Atomic<UInt64>(0)

    public init(_ inventory: Inventory = Inventory()) {
        posted = Mutex((0, inventory))
    }

    /// Grows with each change; cheap enough to be looked at again and again.
    public var version: UInt64 { count.load(ordering: .acquiring) }

    public var current: (version: UInt64, inventory: Inventory) { posted.withLock { $0 } }

    /// Takes another inventory; the same one is no change.
    public func post(_ inventory: Inventory) {
        posted.withLock { posted in
            guard posted.inventory != inventory else { return }
            posted = (posted.version + 1, inventory)
            count.store(posted.version, ordering: .releasing)
        }
    }
}
