// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer of Swift's Mutex. Its short way, when nobody holds the lock, is inlined and seen. The long way is
// in a library that is not instrumented, where on Linux the kernel hands the lock over: without this, all that a lock
// guards that was ever waited for seems to be a race. To be preloaded; it changes nothing about the lock itself.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

// Only in programs that are built with the sanitizer; the others that are started on the way get this too.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// Synchronization._MutexHandle._lockSlow(UInt32)
SWIFT void lock_slow(uint32_t thread, SELF void *handle) __asm__(LOCK);
SWIFT void lock_slow(uint32_t thread, SELF void *handle) {
    SWIFT void (*next)(uint32_t, SELF void *) = dlsym(RTLD_NEXT, LOCK);
    next(thread, handle);
    if (__tsan_acquire) __tsan_acquire(handle);
}

// Synchronization._MutexHandle._unlockSlow()
SWIFT void unlock_slow(SELF void *handle) __asm__(UNLOCK);
SWIFT void unlock_slow(SELF void *handle) {
    SWIFT void (*next)(SELF void *) = dlsym(RTLD_NEXT, UNLOCK);
    if (__tsan_release) __tsan_release(handle);
    next(handle);
}
