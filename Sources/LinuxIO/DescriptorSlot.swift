// SPDX-License-Identifier: Apache-2.0

import CLinuxIO
import Glibc

/// A descriptor that stays the same while the one behind it comes and goes (a nested epoll): a loop waits for it once.
public struct DescriptorSlot: ~Copyable {
    private let epoll: FileDescriptor

    public init() throws(SystemError) {
        let number = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard number >= 0 else { throw SystemError("epoll_create1", "") }
        epoll = FileDescriptor(owning: number)
    }

    /// Readable while the descriptor in the slot is ready or has failed.
    public var number: Int32 { epoll.number }

    /// Puts a descriptor into the slot. It leaves by itself when it is closed.
    ///
    /// - Parameter writing: whether room to write counts as ready, as at the end of a connect.
    public func insert(_ descriptor: Int32, writing: Bool = false) throws(SystemError) {
        let events = UInt32(EPOLLIN.rawValue) | (writing ? UInt32(EPOLLOUT.rawValue) : 0)
        if clinuxio_epoll_control(epoll.number, EPOLL_CTL_ADD, descriptor, events, 0) == 0 { return }
        guard errno == EEXIST, clinuxio_epoll_control(epoll.number, EPOLL_CTL_MOD, descriptor, events, 0) == 0 else {
            throw SystemError("epoll_ctl", "descriptor \(descriptor)")
        }
    }
}
