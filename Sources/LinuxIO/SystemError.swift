// SPDX-License-Identifier: Apache-2.0

public import Glibc

/// A system call that failed: which one, on what, and why.
public struct SystemError: Error, CustomStringConvertible {
    /// The call as its manual page is named: `open(2)` is `open`.
    public var call: String
    /// The path, address or device that it was about; may be empty.
    public var object: String
    /// `errno`.
    public var code: Int32

    public init(_ call: String, _ object: String, code: Int32 = errno) {
        self.call = call
        self.object = object
        self.code = code
    }

    public var description: String {
        object.isEmpty ? "\(call): \(Self.text(code))" : "\(call) \(object): \(Self.text(code))"
    }

    /// The system's words for an error number.
    public static func text(_ code: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        return unsafe buffer.withUnsafeMutableBufferPointer { buffer in
            // The XSI function, which the Glibc module imports: it fills the buffer.
            guard let start = buffer.baseAddress, unsafe strerror_r(code, start, buffer.count) == 0 else {
                return "error \(code)"
            }
            return unsafe String(cString: start)
        }
    }
}

/// Runs a system call until it is not interrupted by a signal. The result is the call's own; `errno` is the caller's to
/// read at once.
@inline(__always)
public func retryingOnInterrupt<Result: SignedInteger>(_ call: () -> Result) -> Result {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}
