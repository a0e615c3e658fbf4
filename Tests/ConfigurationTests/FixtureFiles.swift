// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport

/// The configuration files under `Tests/Fixtures/config`.
enum FixtureFiles {
    static let good = names("good")
    /// What the schema cannot express ends in `.beyond-schema.json`; it accepts those, the reader does not.
    static let bad = names("bad")

    static func bytes(_ name: String) throws -> [UInt8] { try Fixtures.bytes("config/\(name)") }

    static func path(_ name: String) -> String { Fixtures.path("config/\(name)") }

    private static func names(_ folder: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path(folder))) ?? []
        return names.filter { $0.hasSuffix(".json") }.sorted().map { "\(folder)/\($0)" }
    }
}
