// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import TestSupport
import Testing

/// The reader on text that no fixture should hold: very large, very deep, cut or changed anywhere.
@Suite struct ReaderTests {
    private func messages(_ text: String) -> [String] {
        do throws(ConfigurationError) {
            _ = try TestDeclaration.load(text)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test func tooLarge() {
        let room = ConfigurationReader.maximumBytes - 2
        #expect(messages("{" + String(repeating: " ", count: room) + "}") == [])
        #expect(messages("{" + String(repeating: " ", count: room + 1) + "}") == ["plugins.json: larger than 4MiB"])
    }

    @Test func farTooDeep() {
        let brackets = String(repeating: "[", count: 100_000)
        #expect(messages(brackets) == ["plugins.json:1:2049: nested too deep"])
    }

    @Test(arguments: ["[", "{\"a\":", "{\"zz\":[{\"b\":"])
    func cutOffAtAnyDepth(_ piece: String) {
        for depth in [1, 20, 64, 65, 700] {
            #expect(messages(String(repeating: piece, count: depth)).count == 1)
        }
    }

    @Test func manyProblemsAreAllNamed() {
        let entries = (1...5000).map { "{\"minro\":\($0)}" }.joined(separator: ",\n")
        let lines = messages("{\"beacons\":[\n\(entries)]}")
        #expect(lines.count == 5000)
        #expect(lines[4999] == "plugins.json:5001: $.beacons[4999].minro: unknown key; did you mean \"minor\"?")
    }

    @Test func aLongKeyIsCutInMessages() {
        let key = String(repeating: "k", count: 1 << 20)
        let lines = messages("{\"\(key)\":1}")
        #expect(lines.count == 1)
        #expect(lines[0].hasPrefix("plugins.json:1: $[\"kkk"))
        #expect(lines[0].utf8.count < 400)
    }

    /// A message may end in a log that others read.
    @Test(arguments: [
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h","password":"S3CRET0S3CRET0S3CRET0S3CRET0S3CRET0"}}]}"#,
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h","password":["S3CRET0"]}}]}"#,
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h","password":S3CRET0}}]}"#,
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h","password":'S3CRET0'}}]}"#,
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h","password":"S3CRET0\x"}}]}"#,
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h","password":"S3CRET0}}]}"#,
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h" "S3CRET0"}}]}"#,
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h","password":{"a":"S3CRET0"}}}]}"#,
        #"{"sinks":[{"kind":"mqtt","config":{"host":"h","pasword":"S3CRET0"}}]}"#,
        #"{"bind_keys":[{"address":"c4:7c:8d:6a:11:22","key":"S3CRET0"}]}"#,
        #"{"bind_keys":[{"address":"c4:7c:8d:6a:11:22","kye":"S3CRET0"}]}"#,
        #"{"identity_resolving_keys":[{"alias":"a","key":"S3CRET0S3CRET0S3CRET0S3CRET0S3CRET0"}]}"#,
        #"{"identity_resolving_keys":[{"alias":"a","key":["S3CRET0"]}]}"#,
    ])
    func textIsNotRepeated(_ text: String) {
        let lines = messages(text)
        #expect(lines.count == 1)
        #expect(!lines.joined().contains("CRET"))
    }

    @Test func aNumberWhereTextIsExpectedIsNotRepeated() {
        let lines = messages(#"{"sinks":[{"kind":"mqtt","config":{"host":"h","password":31415926}}]}"#)
        #expect(
            lines == ["plugins.json:1: $.sinks[0].config.password: expected text of at most 32 bytes, found a number"])
    }

    @Test func aCheckIsLeftOutWhileAKeyThatItNeedsIsWrong() {
        func profile(_ keys: String) -> [String] {
            messages(#"{"scan":{"profiles":[{"name":"night","window":"60ms",\#(keys)}]}}"#)
        }
        #expect(profile(#""interval":"x""#).count == 1)
        #expect(profile(#""intervall":"90ms""#).count == 1)
        #expect(profile(#""interval":"30ms","zz":1"#).count == 2)
    }

    /// Whatever the file holds, the answer is a configuration or a message with a place in the file.
    @Test(arguments: ["good/complete.json", "good/comments.json", "bad/many.json"])
    func everyPrefix(_ name: String) throws {
        let bytes = try FixtureFiles.bytes(name)
        for count in 0...bytes.count { try check(Array(bytes[..<count]), "the first \(count) bytes of \(name)") }
    }

    @Test(arguments: ["good/complete.json", "good/comments.json", "bad/many.json"])
    func everyChangeOfOneByte(_ name: String) throws {
        let bytes = try FixtureFiles.bytes(name)
        // What JSON gives a meaning, what ends a text, and what is no text.
        let replacements: [UInt8] = [
            0x00, 0x0A, 0x20, 0x22, 0x2C, 0x2F, 0x30, 0x39, 0x3A, 0x5C, 0x5D, 0x7B, 0x7D, 0x80, 0xFF,
        ]
        for index in bytes.indices {
            // Three of them, others at each place, and the neighbours of what was there.
            let chosen = (0..<3).map { replacements[(index + $0 * 5) % replacements.count] }
            for replacement in chosen + [bytes[index] &+ 1, bytes[index] ^ 0x20] {
                var changed = bytes
                changed[index] = replacement
                try check(changed, "\(name) with \(replacement) at \(index)")
            }
        }
    }

    private func check(_ bytes: [UInt8], _ what: String) throws {
        let problems: [Problem]
        do throws(ConfigurationError) {
            _ = try TestDeclaration.load(bytes, file: "f")
            return
        } catch {
            problems = error.problems
        }
        let lines = bytes.count { $0 == 0x0A } + 1
        let arePlaced = !problems.isEmpty && problems.allSatisfy { (1...lines).contains($0.line) && !$0.text.isEmpty }
        if !arePlaced || problems.map(\.line) != problems.map(\.line).sorted() {
            Issue.record("\(what): \(problems)")
        }
    }
}
