// SPDX-License-Identifier: Apache-2.0

import Agent
import Configuration
import Foundation
import SinkKit
import TestSupport
import Testing

/// The schema and the reader accept and refuse the same files, but for the bad ones that are named
/// `*.beyond-schema.json`: those the schema must accept, so that the list of what it cannot express stays exact.
@Suite struct SchemaTests {
    private struct Judgement: Decodable {
        let file: String
        let accepted: Bool
        let problems: [String]
    }

    @Test func agreesWithTheReader() throws {
        let files = FixtureFiles.good + FixtureFiles.bad
        let schema = Schema.json(for: TestDeclaration.section, title: "plugins.json")
        let judgements = try judge(files.map { FixtureFiles.path($0) }, by: schema)
        try #require(judgements.count == files.count)
        for (file, judgement) in zip(files, judgements) {
            let expected = file.hasPrefix("good/") || file.hasSuffix(".beyond-schema.json")
            #expect(judgement.accepted == expected, "\(file): \(judgement.problems)")
        }
    }

    @Test func acceptsTheExampleAndTheSample() throws {
        let folder = try TemporaryFolder()
        let sample = folder.path("sample.json")
        try Data(Sample.text(for: TestDeclaration.section, introduction: "A sample.")).write(to: URL(filePath: sample))
        let schema = Schema.json(for: TestDeclaration.section, title: "plugins.json")
        let example = Fixtures.repository.appending(path: "plugins.json").path
        for judgement in try judge([sample, example], by: schema) {
            #expect(judgement.accepted, "\(judgement.file): \(judgement.problems)")
        }
    }

    @Test func isASchemaWithoutAnySink() throws {
        let section = AgentConfiguration.section(formats: TestDeclaration.formats, sinks: SinkRegistry([]))
        let empty = FixtureFiles.path("good/empty-object.json")
        #expect(try judge([empty], by: Schema.json(for: section, title: "t")).map(\.accepted) == [true])
    }

    private func judge(_ files: [String], by schema: [UInt8]) throws -> [Judgement] {
        let folder = try TemporaryFolder()
        let schemaPath = folder.path("schema.json")
        try Data(schema).write(to: URL(filePath: schemaPath))
        let repository = Fixtures.repository
        _ = try run(repository.appending(path: ".ci/venv").path, [])
        let harness = repository.appending(path: "Tests/Harness/check_schema.py").path
        let output = try run(repository.appending(path: ".cache/venv/bin/python").path, [harness, schemaPath] + files)
        return try output.split(separator: "\n").map {
            try JSONDecoder().decode(Judgement.self, from: Data($0.utf8))
        }
    }

    private func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(program) failed: \(text)")
        return text
    }
}
