// SPDX-License-Identifier: Apache-2.0

import CLinuxIO
import Glibc

/// Signals as something to read: blocked in every thread, taken by the loop.
///
/// Make it before any other thread exists, because threads inherit what is blocked.
public struct Signals: ~Copyable {
    public static let terminate = SIGTERM
    public static let interrupt = SIGINT
    public static let hangUp = SIGHUP
    public static let user1 = SIGUSR1
    public static let user2 = SIGUSR2

    private let file: FileDescriptor

    /// Blocks the signals and ignores SIGPIPE: a reader that went away is an error of `write`, not the end.
    public init(_ signals: [Int32]) throws(SystemError) {
        _ = signal(SIGPIPE, SIG_IGN)
        let number = unsafe signals.withUnsafeBufferPointer {
            unsafe clinuxio_signal_descriptor($0.baseAddress, Int32($0.count))
        }
        guard number >= 0 else { throw SystemError("signalfd", "") }
        file = FileDescriptor(owning: number)
    }

    public var descriptor: Int32 { file.number }

    /// The next signal that arrived; nil when there is none.
    public func take() -> Int32? {
        let number = clinuxio_signal_take(file.number)
        return number > 0 ? number : nil
    }
}
