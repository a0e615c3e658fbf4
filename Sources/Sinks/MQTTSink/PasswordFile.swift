// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The file that holds a broker's password.
enum PasswordFile {
    /// Bytes; MQTT's own limit for a password is 65,535, and nobody's is near it.
    private static let limit = 4096

    struct Failure: Error {
        var reason: String
    }

    /// The password with a NUL behind it, and whether other users of the machine may read the file.
    static func read(_ path: String) throws(Failure) -> (password: [CChar], isExposed: Bool) {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw failure(path, errorText(errno)) }
        defer { close(file) }

        var status = stat()
        guard unsafe fstat(file, &status) == 0 else { throw failure(path, errorText(errno)) }

        var contents = [UInt8](repeating: 0, count: limit + 1)
        var count = 0
        while count < contents.count {
            let offset = count
            let size = unsafe contents.withUnsafeMutableBytes { bytes in
                unsafe Glibc.read(file, bytes.baseAddress?.advanced(by: offset), bytes.count - offset)
            }
            if size < 0, errno == EINTR { continue }
            guard size >= 0 else { throw failure(path, errorText(errno)) }
            if size == 0 { break }
            count += size
        }
        guard count <= limit else { throw failure(path, "it is longer than \(limit) bytes") }
        contents.removeLast(contents.count - count)
        if contents.last == UInt8(ascii: "\n") { contents.removeLast() }
        guard !contents.isEmpty else { throw failure(path, "it is empty") }
        guard !contents.contains(0) else { throw failure(path, "it holds a NUL byte") }
        return (contents.map { CChar(truncatingIfNeeded: $0) } + [0], status.st_mode & S_IROTH != 0)
    }

    private static func failure(_ path: String, _ reason: String) -> Failure {
        Failure(reason: "cannot take the password from \(path) (`password_file`): \(reason)")
    }
}

/// The system's words for an error number.
func errorText(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    return unsafe buffer.withUnsafeMutableBufferPointer { buffer in
        guard let start = buffer.baseAddress, unsafe strerror_r(code, start, buffer.count) == 0 else {
            return "error \(code)"
        }
        return unsafe String(cString: start)
    }
}
