// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The folder in which a running daemon can be found: its control socket and the locks of its adapters.
public enum RuntimeFolder {
    /// Where to look, the first one first: what the service manager made, the system's, the user's.
    public static var candidates: [String] {
        var folders: [String] = []
        // A service manager may give several, separated by colons.
        if let given = variable("RUNTIME_DIRECTORY")?.split(separator: ":").first { folders.append(String(given)) }
        folders.append("/run/beacond")
        if let user = variable("XDG_RUNTIME_DIR") { folders.append("\(user)/beacond") }
        return folders
    }

    /// The first of the candidates in which files can be made, made itself where it was missing; nil when there is none.
    public static func make() -> String? {
        candidates.first { folder in
            _ = unsafe mkdir(folder, 0o755)
            return unsafe access(folder, W_OK | X_OK) == 0
        }
    }

    private static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        let text = unsafe String(cString: value)
        return text.hasPrefix("/") ? text : nil
    }
}
