// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import LinuxIO

/// Room on the disk that is kept beside the database, because deleting needs room too.
struct SpaceReserve {
    /// A deletion writes each page that it changes to the write-ahead log: this is 256 of them.
    static let octets: Int64 = 1 << 20
    /// How long the reserve stays away after it was used, so that it does not fill the disk again at once.
    private static let pause = TimeInterval.seconds(60)

    private let path: String
    private var isHeld = false
    private var nextTry = MonotonicTime.zero

    init(path: String) {
        self.path = path
    }

    /// Takes the room, unless it is held, was not to be had a moment ago, or is most of what the disk has left.
    mutating func keep(at now: MonotonicTime) {
        guard !isHeld, now >= nextTry else { return }
        nextTry = now + Self.pause
        guard let file = try? FileDescriptor.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode: 0o600) else {
            return
        }
        var status = stat()
        if unsafe fstat(file.number, &status) == 0, Int64(status.st_blocks) * 512 >= Self.octets {
            isHeld = true
            return
        }
        var system = statvfs()
        guard unsafe fstatvfs(file.number, &system) == 0,
            UInt64(system.f_bavail) * UInt64(system.f_frsize) >= UInt64(Self.octets) * 4,
            posix_fallocate(file.number, 0, Int(Self.octets)) == 0
        else {
            _ = unsafe unlink(path)
            return
        }
        isHeld = true
    }

    /// Gives the room back; whether there was any.
    mutating func release() -> Bool {
        defer { isHeld = false }
        nextTry = Clock.now + Self.pause
        return unsafe unlink(path) == 0
    }
}
