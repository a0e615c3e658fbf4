// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Foundation
import Presence
import Testing

@testable import Agent

/// Beacons that are approved while the program runs, and the file that keeps them.
@Suite struct ApprovedBeaconsTests {
    private static let uuid = "fda50693-a4e2-4fb1-afcf-c6eb07647825"

    private let folder: TemporaryFolder
    private let names = NameTable()
    /// The built-in formats, and one of the configuration whose fields have the names of an AltBeacon's.
    private let formats: FormatCatalog
    private let configuration: AgentConfiguration

    init() throws {
        folder = try TemporaryFolder()
        configuration = try AgentConfiguration.load(
            Array(
                """
                {"formats": [{"name": "mine", "layout": "m:2-3=beac,i:4-19,i:20-21,p:24-24"}],
                 "beacons": [{"alias": "keys", "uuid": "\(Self.uuid)", "major": 1, "minor": 1}]}
                """.utf8), file: "plugins.json", formats: FrameDecoder().catalog, sinks: TestDeclaration.sinks,
            names: names)
        formats = configuration.decoder.catalog
    }

    private var file: String { folder.path("approved.json") }

    private func opened() -> ApprovedBeacons { ApprovedBeacons(directory: folder.path(""), formats: formats) }

    private func ibeacon(_ minor: Int) throws -> BeaconIdentity {
        try #require(formats.identity("\(Self.uuid)/7/\(minor)"))
    }

    private func approve(_ approved: inout ApprovedBeacons, _ minor: Int, _ alias: String? = nil) throws {
        try approved.approve(try ibeacon(minor), alias: alias, beside: configuration, names)
    }

    @Test(arguments: [
        "ibeacon fda50693-a4e2-4fb1-afcf-c6eb07647825/10/65535",
        "altbeacon fda50693-a4e2-4fb1-afcf-c6eb07647825/1/2", "eddystone-uid 8b0ca750095477cb3e77/0123456789ab",
        "eddystone-url https://example.com/a/b", "device cb:b8:33:4c:88:4f",
        "mine fda50693-a4e2-4fb1-afcf-c6eb07647825/513",
    ])
    func anIdentityIsWrittenAndReadAsItIsShown(text: String) throws {
        let identity = try #require(formats.identity(text))
        #expect(formats.text(of: identity) == text)
        let alone = try #require(text.split(separator: " ").last.map(String.init))
        for written in [text, alone, alone.uppercased()] { #expect(formats.isText(written, of: identity)) }
        for written in ["", "ibeacon", String(alone.dropLast())] { #expect(!formats.isText(written, of: identity)) }
        #expect(
            formats.identity(text.uppercased().replacing("HTTPS://EXAMPLE.COM/A/B", with: "https://example.com/a/b"))
                == identity)
        var approved = opened()
        try approved.approve(identity, alias: "a \"name\"", beside: configuration, names)
        #expect(opened().beacons == [ApprovedBeacons.Beacon(identity: identity, alias: "a \"name\"")])
        #expect(opened().trouble == nil)
    }

    @Test(arguments: [
        "", "ibeacon", "ibeacon ", "x", "ibeacon fda50693-a4e2-4fb1-afcf-c6eb07647825/10",
        "fda50693-a4e2-4fb1-afcf-c6eb07647825/10/65536", "fda50693-a4e2-4fb1-afcf-c6eb07647825/1/2/3",
        "nothing fda50693-a4e2-4fb1-afcf-c6eb07647825/1/2", "eddystone-uid 8b0ca750095477cb3e77/0123456789", "/", "//",
    ])
    func noIdentity(text: String) {
        #expect(formats.identity(text) == nil)
    }

    @Test func approvedBeaconsStandBehindThoseOfTheFile() throws {
        var approved = opened()
        try approve(&approved, 2, "bag")
        try approve(&approved, 3)
        let joined = approved.joined(to: configuration, names)
        #expect(joined.beacons.dropFirst().map(\.identity) == [try ibeacon(2), try ibeacon(3)])
        #expect(joined.beacons.map { names[$0.alias] } == ["keys", "bag", ""])
        // Afterwards the file names one of them, and gives the alias of the other to somebody else.
        let later = try AgentConfiguration.load(
            Array(
                """
                {"beacons": [{"alias": "mine", "uuid": "\(Self.uuid)", "major": 7, "minor": 3, "exit_time": "9s"},
                             {"alias": "bag", "uuid": "\(Self.uuid)", "major": 1, "minor": 9}]}
                """.utf8), file: "plugins.json", formats: FrameDecoder().catalog, sinks: TestDeclaration.sinks,
            names: names)
        let rules = approved.joined(to: later, names).beacons
        #expect(rules.map { names[$0.alias] } == ["mine", "bag", ""])
        #expect(rules.first?.exitTime == .seconds(9))
    }

    @Test func theSameTwiceIsOneAndAnotherAliasReplacesTheFirst() throws {
        var approved = opened()
        for alias in ["bag", nil, "rucksack", nil] { try approve(&approved, 2, alias) }
        #expect(approved.beacons.map(\.alias) == ["rucksack"])
        #expect(opened().beacons == approved.beacons)
        // What the file names already needs no approval.
        let keys = try #require(configuration.beacons.first?.identity)
        for alias in ["keys", nil] { try approved.approve(keys, alias: alias, beside: configuration, names) }
        #expect(approved.beacons.count == 1)
    }

    @Test func whatIsRefusedChangesNothing() throws {
        var approved = opened()
        try approve(&approved, 2, "bag")
        func refusal(_ body: () throws -> Void) -> String? {
            do { try body() } catch { return "\(error)" }
            return nil
        }
        #expect(refusal { try approve(&approved, 3, "bag") } == "$.alias: another beacon has it")
        #expect(refusal { try approve(&approved, 3, "keys") } == "$.alias: another beacon has it")
        let keys = try #require(configuration.beacons.first?.identity)
        #expect(
            refusal { try approved.approve(keys, alias: "other", beside: configuration, names) }?
                .hasPrefix("the configuration file names this beacon") == true)
        func out(_ text: String) -> String? {
            refusal { try approved.disapprove(text, beside: configuration, names) }
        }
        for text in ["keys", "\(Self.uuid)/1/1", "ibeacon \(Self.uuid)/1/1"] {
            #expect(out(text) == "the configuration file names this beacon; take it out there, and reload")
        }
        #expect(out("bug") == "unknown beacon \"bug\"; did you mean \"bag\"?")
        #expect(opened().beacons.map(\.alias) == ["bag"])
        #expect(out("bag") == nil)
        #expect(out("bag") == "no beacon is approved")
        #expect(opened().beacons.isEmpty)
    }

    @Test(arguments: [
        "bag", "FDA50693-A4E2-4FB1-AFCF-C6EB07647825/7/2", "ibeacon fda50693-a4e2-4fb1-afcf-c6eb07647825/7/2",
    ])
    func oneIsTakenOutByAnyOfItsNames(text: String) throws {
        var approved = opened()
        try approve(&approved, 2, "bag")
        try approve(&approved, 3)
        try approved.disapprove(text, beside: configuration, names)
        #expect(approved.beacons.map(\.identity) == [try ibeacon(3)])
    }

    @Test func thereIsABound() throws {
        var approved = opened()
        for minor in 1...ApprovedBeacons.capacity { try approve(&approved, minor) }
        #expect(throws: ApprovedBeacons.Refusal.self) { try approve(&approved, 101) }
        #expect(opened().beacons.count == ApprovedBeacons.capacity)
        try approve(&approved, 100, "the last")
    }

    @Test(arguments: [
        "", "{", "[]", #"{"beacons": 1}"#, #"{"beacons": [{"uuid": "x"}]}"#, #"{"beacons": [{"format": "gone"}]}"#,
        #"{"beacons": [], "regions": []}"#,
        """
        {"beacons": [{"uuid": "fda50693-a4e2-4fb1-afcf-c6eb07647825", "major": 1, "minor": 1},
                     {"uuid": "fda50693-a4e2-4fb1-afcf-c6eb07647825", "major": 1, "minor": 1}]}
        """,
    ])
    func aFileWithAMistakeIsLeftAsItIsAndNothingIsApproved(text: String) throws {
        try Data(text.utf8).write(to: URL(filePath: file))
        var approved = opened()
        #expect(approved.beacons.isEmpty)
        #expect(approved.trouble?.contains("approved.json") == true)
        #expect(throws: ApprovedBeacons.Refusal.self) { try approve(&approved, 2) }
        #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
        try FileManager.default.removeItem(atPath: file)
        approved = opened()
        try approve(&approved, 2)
    }

    @Test func withoutAPlaceNothingIsApproved() throws {
        for directory in [nil, folder.path("nowhere")] {
            var approved = ApprovedBeacons(directory: directory, formats: formats)
            #expect(approved.trouble == nil)
            #expect(throws: ApprovedBeacons.Refusal.self) { try approve(&approved, 2) }
            #expect(approved.beacons.isEmpty)
        }
    }

    @Test func anIdentityInTheFileIsThatOfTheConfiguration() throws {
        var approved = opened()
        try approve(&approved, 2, "bag")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(
            text == #"{"beacons":[{"alias":"bag","format":"ibeacon","uuid":"\#(Self.uuid)","major":7,"minor":2}]}"#
                + "\n")
        #expect(
            try AgentConfiguration.load(
                Array(text.utf8), file: "plugins.json", formats: FrameDecoder().catalog, sinks: TestDeclaration.sinks,
                names: names
            ).beacons.map(\.identity) == [try ibeacon(2)])
    }
}
