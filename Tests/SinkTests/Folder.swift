// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A folder of its own that is removed with everything in it.
final class Folder: Sendable {
    let path: String
    private let isMounted: Bool

    init() throws {
        path = try Self.make()
        isMounted = false
    }

    /// A file system in memory that is full after a few pages; nil where nobody may mount one.
    init?(pages: Int) throws {
        path = try Self.make()
        isMounted = try Self.run("mount", "-t", "tmpfs", "-o", "size=\(pages * 4096)", "tmpfs", path)
        guard isMounted else {
            try? FileManager.default.removeItem(atPath: path)
            return nil
        }
    }

    deinit {
        if isMounted { _ = try? Self.run("umount", path) }
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    func lines(_ name: String) -> [String] {
        let text = (try? String(contentsOfFile: file(name), encoding: .utf8)) ?? ""
        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    private static func make() throws -> String {
        let url = FileManager.default.temporaryDirectory.appending(path: "beacond-sinks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        return url.path
    }

    private static func run(_ arguments: String...) throws -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}

/// A line of JSON as a dictionary; nil when it is not one.
func object(_ line: String) -> [String: Any]? {
    (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: Any]
}
