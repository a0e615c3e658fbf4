// SPDX-License-Identifier: Apache-2.0

/// Why the store could not do what it was asked: what happened and, where one is known, the cure.
public struct StoreError: Error, CustomStringConvertible {
    public enum Cause: Sendable {
        /// The database is not what this program wrote.
        case damaged
        /// A newer version of the program wrote the database.
        case newer
        /// The system refused: no such folder, no permission.
        case failed
        /// Another process has it open.
        case busy
        /// There is no room on the disk.
        case full
        /// The store was closed.
        case closed
    }

    public var cause: Cause
    public var description: String

    init(_ cause: Cause, _ description: String) {
        self.cause = cause
        self.description = description
    }
}
