// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import CLinuxIO
import Glibc

/// A descriptor by which one thread wakes another (eventfd). Signals that come before it is cleared count as one.
public struct EventDescriptor: ~Copyable, Sendable {
    private let file: FileDescriptor

    public init() throws(SystemError) {
        let number = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard number >= 0 else { throw SystemError("eventfd", "") }
        file = FileDescriptor(owning: number)
    }

    /// For `poll` and `epoll`: readable while it is signalled.
    public var number: Int32 { file.number }

    /// Makes it readable. Never blocks; may be called from any thread.
    public func signal() {
        // The only failure is a full counter, and then it is readable already.
        _ = retryingOnInterrupt { eventfd_write(number, 1) }
    }

    /// Makes it unreadable until the next ``signal()``.
    public func clear() {
        var count: UInt64 = 0
        _ = retryingOnInterrupt { unsafe eventfd_read(number, &count) }
    }

    /// Waits for a signal and clears it; false when `deadline` passed without one. It may return up to a millisecond
    /// late, never early.
    public func wait(until deadline: MonotonicTime) -> Bool {
        while true {
            let left = deadline - Clock.now
            let milliseconds = left <= .zero ? 0 : Int32(clamping: (left.nanoseconds - 1) / 1_000_000 + 1)
            var descriptor = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
            let count = unsafe poll(&descriptor, 1, milliseconds)
            if count > 0 {
                clear()
                return true
            }
            if count == 0 || errno != EINTR { return false }
        }
    }
}
