// SPDX-License-Identifier: Apache-2.0

import CLinuxIO

extension FileDescriptor {
    /// `ioctl` with a structure of octets that the kernel reads and fills.
    public func control(_ request: UInt, _ octets: inout [UInt8]) throws(SystemError) {
        let result = unsafe octets.withUnsafeMutableBytes { unsafe clinuxio_control(number, request, $0.baseAddress) }
        guard result >= 0 else { throw SystemError("ioctl", "") }
    }
}
