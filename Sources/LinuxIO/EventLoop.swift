// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import CLinuxIO
import Glibc

/// The loop that one thread runs: it waits for descriptors, one timer and signals, and calls their handlers.
///
/// Used from the thread that made it and no other.
public final class EventLoop {
    private let epoll: FileDescriptor
    private let timer: FileDescriptor
    private var handlers: [UInt64: () -> Void] = [:]
    private var nextToken: UInt64 = 1
    private var isRunning = false
    private var armed = MonotonicTime.distantFuture

    private static let timerToken: UInt64 = 0

    public init() throws(SystemError) {
        let epollNumber = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epollNumber >= 0 else { throw SystemError("epoll_create1", "") }
        epoll = FileDescriptor(owning: epollNumber)
        let timerNumber = clinuxio_timer_create()
        guard timerNumber >= 0 else { throw SystemError("timerfd_create", "") }
        timer = FileDescriptor(owning: timerNumber)
        try control(EPOLL_CTL_ADD, timerNumber, Self.timerToken)
    }

    /// Calls `handler` whenever the descriptor can be read, or has failed (reading tells).
    ///
    /// - Returns: a token for ``remove(_:descriptor:)``.
    public func add(_ descriptor: Int32, _ handler: @escaping () -> Void) throws(SystemError) -> UInt64 {
        let token = nextToken
        try control(EPOLL_CTL_ADD, descriptor, token)
        nextToken += 1
        handlers[token] = handler
        return token
    }

    /// What of a descriptor the loop waits for.
    public enum Interest {
        case reading, writing
        /// Not even that; its handler is called all the same when it has failed.
        case nothing
    }

    /// Waits for something else of a descriptor from now on. One that has failed calls its handler in any case.
    public func wait(for interest: Interest, _ token: UInt64, descriptor: Int32) {
        let events: UInt32 =
            switch interest {
            case .reading: UInt32(EPOLLIN.rawValue)
            case .writing: UInt32(EPOLLOUT.rawValue)
            case .nothing: 0
            }
        _ = clinuxio_epoll_control(epoll.number, EPOLL_CTL_MOD, descriptor, events, token)
    }

    public func remove(_ token: UInt64, descriptor: Int32) {
        handlers[token] = nil
        _ = clinuxio_epoll_control(epoll.number, EPOLL_CTL_DEL, descriptor, 0, token)
    }

    /// Runs until ``stop()``. Before each wait `prepare` says when the timer is due; `timer` is called when it was.
    public func run(prepare: () -> MonotonicTime, timer due: () -> Void) throws(SystemError) {
        var tokens = [UInt64](repeating: 0, count: 64)
        var events = [UInt32](repeating: 0, count: 64)
        isRunning = true
        while isRunning {
            arm(prepare())
            let count = unsafe tokens.withUnsafeMutableBufferPointer { tokens in
                unsafe events.withUnsafeMutableBufferPointer { events in
                    unsafe clinuxio_epoll_wait(epoll.number, tokens.baseAddress, events.baseAddress, 64, -1)
                }
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw SystemError("epoll_wait", "")
            }
            for index in 0..<Int(count) where isRunning {
                if tokens[index] == Self.timerToken {
                    armed = .distantFuture
                    drainTimer()
                    due()
                } else {
                    handlers[tokens[index]]?()
                }
            }
        }
    }

    /// Lets ``run(prepare:timer:)`` return after the handler that calls this.
    public func stop() { isRunning = false }

    private func arm(_ time: MonotonicTime) {
        guard time != armed else { return }
        armed = time
        // 0 would disarm; a moment that has passed fires at once.
        let nanoseconds = time == .distantFuture ? 0 : UInt64(max(1, time.nanoseconds))
        _ = clinuxio_timer_set(timer.number, nanoseconds)
    }

    private func drainTimer() {
        var expirations: UInt64 = 0
        _ = unsafe read(timer.number, &expirations, 8)
    }

    private func control(_ operation: Int32, _ descriptor: Int32, _ token: UInt64) throws(SystemError) {
        guard clinuxio_epoll_control(epoll.number, operation, descriptor, UInt32(EPOLLIN.rawValue), token) == 0 else {
            throw SystemError("epoll_ctl", "descriptor \(descriptor)")
        }
    }
}
