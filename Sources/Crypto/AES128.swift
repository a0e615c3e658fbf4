// SPDX-License-Identifier: Apache-2.0

import CCrypto

/// The block cipher AES with a 128-bit key (FIPS 197), the security function `e` of Bluetooth (Core 5.4, Vol 3, Part H,
/// 2.2.1). All values are most significant octet first.
///
/// The key is expanded once. Not to be used by two threads at a time.
@safe public final class AES128 {
    private let context: OpaquePointer

    /// nil when libcrypto refuses, which it does without memory or where policy forbids the cipher.
    public init?(key: [16 of UInt8]) {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        unsafe self.context = unsafe context
        let isReady = unsafe key.span.withUnsafeBufferPointer { key in
            unsafe EVP_EncryptInit_ex(context, EVP_aes_128_ecb(), nil, key.baseAddress, nil)
        }
        guard isReady == 1, unsafe EVP_CIPHER_CTX_set_padding(context, 0) == 1 else { return nil }
    }

    deinit {
        unsafe EVP_CIPHER_CTX_free(context)
    }

    /// Encrypts one block; nil when libcrypto refuses.
    public func encrypt(_ block: [16 of UInt8]) -> [16 of UInt8]? {
        var result = [16 of UInt8](repeating: 0)
        var count: Int32 = 0
        var output = result.mutableSpan
        let isDone = unsafe output.withUnsafeMutableBufferPointer { result in
            unsafe block.span.withUnsafeBufferPointer { block in
                unsafe EVP_EncryptUpdate(context, result.baseAddress, &count, block.baseAddress, 16)
            }
        }
        return isDone == 1 && count == 16 ? result : nil
    }
}
