// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The program as it was built beside the tests, run as a user runs it.
final class Program {
    struct Outcome {
        var status: Int32
        var output: String
        var errors: String

        var lines: [String] { output.split(separator: "\n").map(String.init) }
    }

    /// The folder of the test bundle is the folder of the program.
    static let path: String = {
        let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
        return URL(filePath: bundle).deletingLastPathComponent().appending(path: "beacond").path
    }()

    let process = Process()
    private let folder: URL

    init(_ arguments: [String], executable: String = Program.path, environment: [String: String] = [:]) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        process.executableURL = URL(filePath: executable)
        process.arguments = arguments
        // A runtime folder of its own: programs of other tests, and a daemon of this machine, have their sockets elsewhere.
        process.environment = ProcessInfo.processInfo.environment.merging(["RUNTIME_DIRECTORY": folder.path]) { $1 }
            .merging(environment) { $1 }
        // Standard output and errors go to files, which a full pipe cannot hold up.
        for name in ["output", "errors"] {
            try Data().write(to: folder.appending(path: name))
        }
        process.standardOutput = try FileHandle(forWritingTo: folder.appending(path: "output"))
        process.standardError = try FileHandle(forWritingTo: folder.appending(path: "errors"))
    }

    func start() throws { try process.run() }

    func finish() throws -> Outcome {
        process.waitUntilExit()
        func text(_ name: String) throws -> String {
            String(decoding: try Data(contentsOf: folder.appending(path: name)), as: UTF8.self)
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        return Outcome(status: process.terminationStatus, output: try text("output"), errors: try text("errors"))
    }

    /// What it has printed so far.
    func outputSoFar() throws -> String {
        String(decoding: try Data(contentsOf: folder.appending(path: "output")), as: UTF8.self)
    }

    /// Runs to the end, with `input` on standard input.
    static func run(_ arguments: String..., input: String = "", environment: [String: String] = [:]) throws -> Outcome {
        let program = try Program(arguments, environment: environment)
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data(input.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        program.process.standardInput = try FileHandle(forReadingFrom: file)
        try program.start()
        return try program.finish()
    }

    /// A line of JSON as a dictionary.
    static func object(_ line: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
    }
}
