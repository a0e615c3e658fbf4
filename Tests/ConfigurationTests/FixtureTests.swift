// SPDX-License-Identifier: Apache-2.0

import Configuration
import Foundation
import TestSupport
import Testing

/// Good files are accepted; bad files give exactly the messages in the file `.expected` beside them.
@Suite struct FixtureTests {
    @Test func thereAreFixtures() {
        #expect(FixtureFiles.good.count >= 4)
        #expect(FixtureFiles.bad.count >= 30)
    }

    @Test(arguments: FixtureFiles.good)
    func isAccepted(_ name: String) throws {
        _ = try TestDeclaration.load(try FixtureFiles.bytes(name), file: name)
    }

    /// `BEACOND_RECORD=1` writes the messages down anew; read them before committing them.
    @Test(arguments: FixtureFiles.bad)
    func isRefused(_ name: String) throws {
        let expected = name.replacing(".json", with: ".expected")
        let file = String(name.dropFirst("bad/".count))
        let error = try #require(throws: ConfigurationError.self) {
            try TestDeclaration.load(try FixtureFiles.bytes(name), file: file)
        }
        if ProcessInfo.processInfo.environment["BEACOND_RECORD"] == "1" {
            try Data("\(error)\n".utf8).write(to: URL(filePath: FixtureFiles.path(expected)))
        }
        #expect("\(error)\n" == String(decoding: try FixtureFiles.bytes(expected), as: UTF8.self))
    }
}
