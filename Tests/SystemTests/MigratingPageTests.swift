// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Holds the configurations of `docs/migrating.md` to what the program accepts.
@Suite struct MigratingPageTests {
    @Test func `every configuration of the page is valid`() throws {
        let page = try String(contentsOf: Fixtures.repository.appending(path: "docs/migrating.md"), encoding: .utf8)
        var heading = ""
        var snippet: [Substring]?
        var checked: [String] = []
        let folder = try TemporaryFolder()
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("## ") { heading = String(line.dropFirst(3)) }
            if line == "```json" {
                snippet = []
            } else if line == "```", let lines = snippet {
                let file = try folder.file("\(checked.count).json", lines.joined(separator: "\n"))
                // A key in the file is one of an example; nobody else shall read it all the same.
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
                let outcome = try Program.run("check", file)
                #expect(outcome.status == 0, "\(heading): \(outcome.errors)")
                #expect(outcome.output.hasPrefix("\(file): valid:"), "\(heading): \(outcome.output)")
                checked.append(heading)
                snippet = nil
            } else {
                snippet?.append(line)
            }
        }
        let gateways = page.split(separator: "\n").filter { $0.hasPrefix("## ") }.map { $0.dropFirst(3) }
        let others = ["Side by side, and over", "What is different everywhere", "What we do not do"]
        #expect(checked == gateways.map(String.init).filter { !others.contains($0) })
    }
}
