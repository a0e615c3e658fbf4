// SPDX-License-Identifier: Apache-2.0

public import Foundation
import LinuxIO

/// The files under `Tests/Fixtures`, found from this file's own place: a resource bundle would bring Foundation into
/// every target that has one.
public enum Fixtures {
    public static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures")

    /// The top of the repository.
    public static let repository = folder.deletingLastPathComponent().deletingLastPathComponent()

    public static func path(_ name: String) -> String { folder.appending(path: name).path }

    public static func bytes(_ name: String) throws -> [UInt8] {
        try FileDescriptor.contents(of: path(name), limit: 1 << 30)
    }

    public static func lines(_ name: String) throws -> [String] {
        String(decoding: try bytes(name), as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
