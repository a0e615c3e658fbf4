// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import CLinuxIO
import Glibc

/// The clocks of the machine.
public enum Clock {
    /// `CLOCK_MONOTONIC`.
    public static var now: MonotonicTime {
        MonotonicTime(nanoseconds: clinuxio_clock(CLOCK_MONOTONIC))
    }

    /// `CLOCK_REALTIME`.
    public static var wall: WallTime {
        WallTime(milliseconds: clinuxio_clock(CLOCK_REALTIME) / 1_000_000)
    }

    /// Processor time of this process, `CLOCK_PROCESS_CPUTIME_ID`.
    public static var processorTime: TimeInterval {
        TimeInterval(nanoseconds: clinuxio_clock(CLOCK_PROCESS_CPUTIME_ID))
    }

    /// How long the machine was suspended since it started: `CLOCK_BOOTTIME` goes on meanwhile, `CLOCK_MONOTONIC` does
    /// not.
    public static var suspendedTime: TimeInterval {
        TimeInterval(nanoseconds: clinuxio_clock(CLOCK_BOOTTIME) - clinuxio_clock(CLOCK_MONOTONIC))
    }

    /// How far `CLOCK_REALTIME` is ahead of ``now`` at this moment.
    public static var wallOffset: TimeInterval {
        TimeInterval(nanoseconds: clinuxio_clock(CLOCK_REALTIME) - clinuxio_clock(CLOCK_MONOTONIC))
    }

    /// Whether the kernel says that the wall clock follows a time source (adjtimex).
    public static var isSynchronized: Bool { clinuxio_clock_is_synchronized() != 0 }

    /// How long ago a moment of `CLOCK_REALTIME` was, between zero and a second: the wall clock may be set meanwhile, and
    /// nothing waits longer in a socket that a loop reads.
    public static func age(of realTimeNanoseconds: Int64) -> TimeInterval {
        let age = clinuxio_clock(CLOCK_REALTIME) - realTimeNanoseconds
        return age < 0 || age > 1_000_000_000 ? .zero : TimeInterval(nanoseconds: age)
    }
}
