// SPDX-License-Identifier: Apache-2.0

import CCrypto

/// AES-128 in counter mode with CBC-MAC (RFC 3610, NIST SP 800-38C), as encrypted advertisements use it.
public enum AES128CCM {
    /// Decrypts a message and proves that it was made with the key.
    ///
    /// - Parameters:
    ///   - ciphertext: without the tag; at most 65,535 octets.
    ///   - tag: the message integrity check; 4, 6, 8, 10, 12, 14 or 16 octets.
    ///   - nonce: 7 to 13 octets.
    ///   - authenticating: octets that were sent in the clear and are covered by the tag.
    /// - Returns: nil when the tag does not fit or a length is not allowed.
    public static func decrypt(
        _ ciphertext: [UInt8], tag: [UInt8], key: [16 of UInt8], nonce: [UInt8], authenticating: [UInt8] = []
    ) -> [UInt8]? {
        guard (7...13).contains(nonce.count), (4...16).contains(tag.count), tag.count.isMultiple(of: 2),
            ciphertext.count <= 65_535, authenticating.count <= 65_535, let context = unsafe EVP_CIPHER_CTX_new()
        else { return nil }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var tag = tag
        // At least one octet, so that there is an address: without one libcrypto takes the call for another.
        var plaintext = [UInt8](repeating: 0, count: max(1, ciphertext.count))
        var count: Int32 = 0
        let isGenuine = unsafe key.span.withUnsafeBufferPointer { key in
            unsafe EVP_DecryptInit_ex(context, EVP_aes_128_ccm(), nil, nil, nil) == 1
                && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(nonce.count), nil) == 1
                && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1
                && EVP_DecryptInit_ex(context, nil, nil, key.baseAddress, nonce) == 1
                && EVP_DecryptUpdate(context, nil, &count, nil, Int32(ciphertext.count)) == 1
                && (authenticating.isEmpty
                    || EVP_DecryptUpdate(context, nil, &count, authenticating, Int32(authenticating.count)) == 1)
                && EVP_DecryptUpdate(
                    context, &plaintext, &count, ciphertext.isEmpty ? [0] : ciphertext, Int32(ciphertext.count)) == 1
        }
        guard isGenuine, Int(count) == ciphertext.count else { return nil }
        return Array(plaintext.prefix(ciphertext.count))
    }
}
