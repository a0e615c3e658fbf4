// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A text that is not written in the configuration, which is read by more people than a secret may be.
enum Secret: Equatable {
    /// A file, by its path.
    case file(String)
    /// A credential of the service manager, by its name: a file of `$CREDENTIALS_DIRECTORY`.
    case credential(String)
    /// A variable of the environment, by its name.
    case environment(String)

    /// What stands before the place in the configuration.
    static let schemes = ["file:", "credential:", "environment:"]

    /// - Parameter text: `file:/path`, `credential:name` or `environment:NAME`; nil for anything else.
    init?(_ text: String) {
        func place(_ scheme: String) -> String? {
            text.hasPrefix(scheme) ? String(text.dropFirst(scheme.count)) : nil
        }
        if let path = place("file:"), path.hasPrefix("/") {
            self = .file(path)
        } else if let name = place("credential:"), !name.isEmpty, !name.contains("/"), name != ".", name != ".." {
            self = .credential(name)
        } else if let name = place("environment:"), !name.isEmpty, !name.contains("=") {
            self = .environment(name)
        } else {
            return nil
        }
    }

    /// The text with a NUL behind it, and the path of the file that it was read from if other users of the machine may
    /// read that, too.
    ///
    /// - Parameter variable: looks into the environment.
    func read(
        environment variable: (String) -> String? = Secret.variable
    ) throws(Failure) -> (text: [CChar], exposedFile: String?) {
        switch self {
        case .file(let path): return try Self.read(path)
        case .credential(let name):
            guard let folder = variable("CREDENTIALS_DIRECTORY") else {
                throw Failure(
                    reason: "the service manager gave no credentials; the unit needs LoadCredential=\(name):/path")
            }
            return try Self.read("\(folder)/\(name)")
        case .environment(let name):
            guard let value = variable(name), !value.isEmpty else {
                throw Failure(reason: "the environment has no variable \(name), or an empty one")
            }
            return (Array(value.utf8CString), nil)
        }
    }

    static func variable(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }

    /// Bytes; MQTT's own limit for a name or a password is 65,535, and nobody's is near it.
    private static let limit = 4096

    struct Failure: Error {
        var reason: String
    }

    private static func read(_ path: String) throws(Failure) -> (text: [CChar], exposedFile: String?) {
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
        return (contents.map { CChar(truncatingIfNeeded: $0) } + [0], status.st_mode & S_IROTH != 0 ? path : nil)
    }

    private static func failure(_ path: String, _ reason: String) -> Failure {
        Failure(reason: "cannot read \(path): \(reason)")
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
