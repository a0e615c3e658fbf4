// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What is in a folder.
public enum Folder {
    /// The names in it, sorted, without `.` and `..`; none when it cannot be read.
    public static func names(in path: String) -> [String] {
        guard let folder = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(folder) }
        var names: [String] = []
        while let entry = unsafe readdir(folder) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// The text of a small file such as those of /sys and /proc, without white space at the end; nil when it cannot be
    /// read.
    public static func text(of path: String) -> String? {
        guard let octets = try? FileDescriptor.contents(of: path, limit: 1 << 16) else { return nil }
        var text = String(decoding: octets, as: UTF8.self)
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }

    /// A path without symbolic links; as it is where there is no such file.
    public static func resolved(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// The last part of where a symbolic link points; nil when there is none.
    public static func linkTarget(_ path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = unsafe readlink(path, &buffer, buffer.count)
        guard count > 0 else { return nil }
        let target = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return target.split(separator: "/").last.map(String.init)
    }
}
