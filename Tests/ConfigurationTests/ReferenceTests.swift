// SPDX-License-Identifier: Apache-2.0

import Agent
import Configuration
import Foundation
import SinkKit
import TestSupport
import Testing

/// What is made from the declarations for people.
@Suite struct ReferenceTests {
    @Test func tablesHaveEveryPlugin() {
        let text = Reference.markdown(for: TestDeclaration.section)
        #expect(text.contains("### `sinks[].config` of kind `mqtt`"))
        #expect(text.contains("| `host` | text of at most 1024 bytes | required | The broker's host. |"))
        #expect(
            text.contains("| `keep_alive` | a length of time from 5s to 1h | `\"20s\"` | Time between two pings. |"))
        #expect(text.contains("### `sinks[].config` of kind `stdout`"))
    }

    @Test(arguments: [nil, ["mqtt"], ["stdout"], []])
    func sampleIsAccepted(_ kinds: [String]?) throws {
        let sample = Sample.text(for: TestDeclaration.section, introduction: "A sample.", kinds: kinds)
        let configuration = try TestDeclaration.load(sample, file: "sample.json")
        #expect(configuration.sinks.map(\.kind) == kinds ?? ["stdout", "mqtt"])
        #expect(configuration.beacons.count == 1)
        #expect(configuration.regions.count == 2)
    }

    @Test func sampleShowsDefaultsAndComments() {
        let text = String(
            decoding: Sample.text(for: TestDeclaration.section, introduction: "A sample."), as: UTF8.self)
        #expect(text.hasPrefix("{\n  \"//\": \"A sample.\",\n"))
        #expect(text.contains("    \"enter_gap\": \"30s\",\n"))
        #expect(text.contains("\"// host\": \"The broker's host. Expected: text of at most 1024 bytes. Required.\""))
        #expect(text.contains("\"host\": \"localhost\""))
        #expect(text.contains("\"// password\": \"The password. Expected: text of at most 32 bytes. Optional.\""))
        #expect(!text.contains("\"password\":"))
    }

    @Test(arguments: [
        (#"{}"#, "{}\n"), (#"[]"#, "[]\n"), (#"[1,"a,b",[2]]"#, "[\n  1,\n  \"a,b\",\n  [2]\n]\n"),
        (#"{"a":{},"b":[1,2],"c":"x\"{:"}"#, "{\n  \"a\": {},\n  \"b\": [1, 2],\n  \"c\": \"x\\\"{:\"\n}\n"),
        (#"[{"a":1}]"#, "[\n  {\n    \"a\": 1\n  }\n]\n"),
    ])
    func layout(_ compact: String, _ expected: String) {
        #expect(String(decoding: JSONLayout.indent(Array(compact.utf8)), as: UTF8.self) == expected)
    }
}
