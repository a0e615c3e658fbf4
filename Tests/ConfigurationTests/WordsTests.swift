// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Testing

/// Units and suggestions.
@Suite struct WordsTests {
    @Test(arguments: [
        ("0s", 0), ("1ms", 1_000_000), ("2.5ms", 2_500_000), ("0.625ms", 625_000), ("1500ms", 1_500_000_000),
        ("1.5s", 1_500_000_000), ("0090s", 90_000_000_000), ("1.05m", 63_000_000_000), ("2h", 7_200_000_000_000),
        ("7d", 604_800_000_000_000), ("0.001d", 86_400_000_000), ("106751d", 9_223_286_400_000_000_000),
        ("106752d", Int64.max), ("99999999999999999999s", Int64.max), ("9223372036.9s", Int64.max),
    ])
    func durations(_ text: String, _ nanoseconds: Int64) {
        #expect(DurationText.interval(text)?.nanoseconds == nanoseconds)
    }

    @Test(arguments: [
        "", "s", "90", "90 s", " 90s", "90s ", "-1s", "+1s", "1e3s", "1.s", ".5s", "1.2345s", "1.2.3s", "90S", "1m30s",
        "9٠s", "1us",
    ])
    func noDurations(_ text: String) {
        #expect(DurationText.interval(text) == nil)
    }

    @Test(arguments: ["0s", "90s", "2m", "1h", "7d", "10.24s", "2.5ms", "1.5s", "999ms", "1000.5ms", "25h"])
    func durationsAreSpelledAsTheyAreRead(_ text: String) throws {
        #expect(DurationText.text(try #require(DurationText.interval(text))) == text)
    }

    @Test(arguments: [
        ("0B", 0), ("512B", 512), ("64KiB", 65_536), ("10MiB", 10_485_760), ("1GiB", 1_073_741_824),
        ("99999999999GiB", Int64.max), ("99999999999999999999B", Int64.max),
    ])
    func sizes(_ text: String, _ bytes: Int64) {
        #expect(SizeText.bytes(text) == bytes)
        if bytes < .max { #expect(SizeText.text(bytes) == text) }
    }

    @Test(arguments: ["", "B", "512", "1.5MiB", "-1B", "64KB", "64kib", "1 MiB", "1TiB"])
    func noSizes(_ text: String) {
        #expect(SizeText.bytes(text) == nil)
    }

    @Test(arguments: [
        ("qoss", "qos"), ("QoS", "qos"), ("clientId", "client_id"), ("client-id", "client_id"), ("hsot", "host"),
        ("prot", "port"), ("keepalive", "keep_alive"), ("pasword", "password"), ("ports", "port"),
    ])
    func suggestions(_ word: String, _ meant: String) {
        let names = ["host", "port", "qos", "client_id", "keep_alive", "password"]
        #expect(Suggestion.nearest(to: word, in: names) == meant)
    }

    @Test(arguments: ["", "x", "pin", "username", "clientidentification", String(repeating: "port", count: 100)])
    func nothingIsNear(_ word: String) {
        #expect(Suggestion.nearest(to: word, in: ["host", "port", "qos", "client_id", "a", ""]) == nil)
    }

    /// Candidates may come from the file, and a message must not steer a terminal.
    @Test func candidatesAreQuoted() {
        #expect(
            Suggestion.complaint(about: "tag", kind: "format", in: ["\u{7F}\u{1B}[2J"])
                == #"unknown format "tag"; expected one of: "\u007f\u001b[2J""#)
    }
}
