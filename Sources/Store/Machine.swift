// SPDX-License-Identifier: Apache-2.0

import Glibc
import LinuxIO

/// What the kernel says of this machine and of the disk.
enum Machine {
    /// The id of this boot, 32 hexadecimal digits; empty where there is no such file (random(4)).
    static let boot: String = {
        let octets = (try? FileDescriptor.contents(of: "/proc/sys/kernel/random/boot_id", limit: 64)) ?? []
        return String(String(decoding: octets, as: UTF8.self).filter(\.isHexDigit))
    }()

    /// Octets that this thread had written to disks, as the kernel counts them: whole pages, the write-ahead log and
    /// checkpoints included, without the file system's own (proc_pid_io(5)). A file system in memory counts nothing.
    static var octetsWrittenByThread: UInt64 {
        let octets = (try? FileDescriptor.contents(of: "/proc/thread-self/io", limit: 4096)) ?? []
        let key = "write_bytes: "
        for line in String(decoding: octets, as: UTF8.self).split(separator: "\n") where line.hasPrefix(key) {
            return UInt64(line.dropFirst(key.count)) ?? 0
        }
        return 0
    }

    /// What a user may still write to the disk of a file that need not exist, in octets, and whether it is mounted
    /// read-only. A quota does not show here.
    static func room(for path: String) -> (octets: UInt64, isReadOnly: Bool) {
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        var system = statvfs()
        guard unsafe statvfs(folder, &system) == 0 else { return (0, false) }
        return (
            UInt64(system.f_bavail) * UInt64(system.f_frsize), system.f_flag & UInt(ST_RDONLY) != 0
        )
    }
}
