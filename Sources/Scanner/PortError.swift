// SPDX-License-Identifier: Apache-2.0

/// Why a controller cannot be opened: cause and cure in one line.
public struct PortError: Error, CustomStringConvertible {
    public enum Cause: Sendable {
        /// It is not there, and may come.
        case missing
        /// It is there and switched off, in use or unreachable, which may change.
        case unusable
        /// Its radio switch (rfkill) is off, which may change.
        case blocked
        /// Not permitted, which will not change while the program runs.
        case forbidden
        /// The kernel knows no Bluetooth.
        case noBluetooth
    }

    public var cause: Cause
    public var description: String

    public init(_ cause: Cause, _ description: String) {
        self.cause = cause
        self.description = description
    }

    /// Whether there is no such radio, as against one that may not be used.
    public var isMissing: Bool { cause == .missing || cause == .noBluetooth }
    /// Whether waiting will not help.
    public var isHopeless: Bool { cause == .forbidden || cause == .noBluetooth }
}
