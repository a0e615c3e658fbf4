// SPDX-License-Identifier: Apache-2.0

/// A release of Home Assistant, `2026.7`, and what it understands.
struct HomeAssistantRelease: Comparable {
    /// The one that has every form that is written here.
    static let current = "2026.7"

    let year: Int
    /// 1 to 12.
    let month: Int

    /// nil for what is no release.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let year = Int(parts[0]), (2000...2999).contains(year), let month = Int(parts[1]),
            (1...12).contains(month), parts[1].utf8.first != UInt8(ascii: "0")
        else { return nil }
        self.init(year: year, month: month)
    }

    private init(year: Int, month: Int) {
        self.year = year
        self.month = month
    }

    static func < (left: Self, right: Self) -> Bool { (left.year, left.month) < (right.year, right.month) }

    /// One document for all entities of a device (core pull request 118757, taken back before 2024.6 and released with
    /// 2024.12).
    var readsDeviceDocuments: Bool { self >= Self(year: 2024, month: 12) }

    /// `default_entity_id` took the place of `object_id` in 2025.10; 2026.4 no longer reads the old one.
    var readsDefaultEntityID: Bool { self >= Self(year: 2025, month: 10) }
}
