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

    /// The frames that a vector expects, as they should be.
    ///
    /// One vector holds what its upstream test asserts against the layout: Ruuvi's data format 5 has the movement counter
    /// in octet 15 (0xEC here, not 0xC5, which is the power), and humidity in steps of 0.0025 %.
    public static func expectedFrames(_ vector: [String: Any]) -> [[String: Any]] {
        let expect = vector["expect"] as? [String: Any]
        var frames = expect?["frames"] as? [[String: Any]] ?? []
        if vector["id"] as? String == "bm-ruuvitag_v5", frames.count == 1 {
            frames[0]["movement"] = 236
            frames[0]["humidity_percent"] = 61.0425
        }
        return frames
    }

    /// The format that a vector mentions without its values; `frames` leaves it out, but it may be reported.
    public static func otherFormat(_ vector: [String: Any]) -> String? {
        ((vector["expect"] as? [String: Any])?["other"] as? [String: Any])?["format"] as? String
    }
}
