// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What is said to a person beside the output.
enum StandardError {
    static func print(_ text: String) {
        let bytes = Array(text.utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
