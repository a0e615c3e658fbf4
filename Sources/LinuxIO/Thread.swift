// SPDX-License-Identifier: Apache-2.0

import CLinuxIO
import Glibc

/// A thread of the system with a name, a small stack, and all signals blocked: those are the loop's.
public struct Thread: ~Copyable, Sendable {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        let name: String

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    private let handle: pthread_t

    /// Starts a thread.
    ///
    /// - Parameters:
    ///   - name: as `ps -L` shows it; the kernel keeps 15 octets.
    ///   - stackSize: in octets. 256 KiB hold SQLite, libmosquitto with TLS and our own frames many times over, where
    ///     the system's default would reserve 8 MiB.
    public init(name: String, stackSize: Int = 262_144, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setstacksize(&attributes, stackSize)

        // A thread inherits the mask of the one that makes it.
        var all = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }

        let argument = unsafe Unmanaged.passRetained(Body(name: name, run: body))
        var handle = pthread_t()
        let code = unsafe pthread_create(
            &handle, &attributes,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                unsafe clinuxio_thread_set_name(body.name)
                body.run()
                return nil
            }, argument.toOpaque())
        guard code == 0 else {
            unsafe argument.release()
            throw SystemError("pthread_create", name, code: code)
        }
        self.handle = handle
    }

    deinit {
        pthread_detach(handle)
    }

    /// Waits until the thread has ended.
    public consuming func join() {
        pthread_join(handle, nil)
        discard self
    }
}
