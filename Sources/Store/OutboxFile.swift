// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import LinuxIO

/// Opens the outbox of a file, whatever is in it.
enum OutboxFile {
    /// A database that is damaged or from a newer version of the program is renamed to `<path>.damaged-<time>` or
    /// `<path>.newer-<time>` (milliseconds since 1970), and a new one is made; the records of a damaged one that are
    /// whole go into it.
    static func open(
        path: String, limits: Outbox.Limits, machine: String, vocabulary: Vocabulary, log: (LogLevel, String) -> Void
    ) throws(StoreError) -> Outbox {
        let aside: String
        let trouble: String
        let isDamaged: Bool
        do throws(StoreError) {
            return try Outbox(path: path, limits: limits, machine: machine, vocabulary: vocabulary)
        } catch {
            let word: String
            switch error.cause {
            case .damaged: word = "damaged"
            case .newer: word = "newer"
            case .failed, .busy, .full, .closed: throw cannotOpen(path, error)
            }
            aside = "\(path).\(word)-\(Clock.wall.milliseconds)"
            try setAside(path, aside)
            trouble = "the outbox \(path) is \(word) (\(error)): it was set aside as \(aside) and a new one was made"
            isDamaged = error.cause == .damaged
        }
        do throws(StoreError) {
            let outbox = try Outbox(path: path, limits: limits, machine: machine, vocabulary: vocabulary)
            let saved = isDamaged ? (try? outbox.salvage(path: aside)) ?? 0 : 0
            log(
                .error,
                saved > 0
                    ? "\(trouble) under a new stream; \(saved) records were whole and go on in it"
                    : "\(trouble); what it held will not be sent")
            return outbox
        } catch {
            throw cannotOpen(path, error)
        }
    }

    private static func setAside(_ path: String, _ aside: String) throws(StoreError) {
        // The database last: while it is there, the next start finds it and sets aside what is left.
        for suffix in ["-shm", "-wal", ""] {
            let code = unsafe rename(path + suffix, aside + suffix)
            if code != 0, suffix.isEmpty || errno != ENOENT {
                let error = SystemError("rename", path + suffix)
                throw StoreError(
                    .failed, "cannot set aside the outbox: \(error); move it away or give write access to its folder")
            }
        }
    }

    private static func cannotOpen(_ path: String, _ error: StoreError) -> StoreError {
        let cure =
            error.cause == .busy
            ? "another process uses it: end that one, or give each gateway a \"state_directory\" of its own"
            : "its folder must exist and be writable for this user"
        return StoreError(error.cause, "cannot use the outbox \(path): \(error); \(cure)")
    }
}
