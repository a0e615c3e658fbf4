// SPDX-License-Identifier: Apache-2.0

// A malloc interposer for LD_PRELOAD. It counts the requests for heap memory, those of the first thread (the loop of
// beacond) apart from those of all others, and writes both counts to the file that ALLOCATION_COUNTS names when the
// process exits.
//
// ALLOCATION_TRACE=n makes it write the stack of the first thread's requests behind the n-th to stderr, 20 of them.
//
// glibc only: the real functions are reached by glibc's own names for them, which works before dlsym does.

#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

enum { TRACES = 20, FRAMES = 32 };

static atomic_ulong first_thread, other_threads;
static unsigned long trace_from = -1ul;
static int traces;
static __thread int thread_kind;  // 0 not known yet, 1 the first, 2 another
static __thread int is_tracing;   // writing a stack may allocate

static void count(void) {
    if (is_tracing) return;
    if (thread_kind == 0) thread_kind = gettid() == getpid() ? 1 : 2;
    if (thread_kind == 2) {
        atomic_fetch_add_explicit(&other_threads, 1, memory_order_relaxed);
        return;
    }
    unsigned long number = atomic_fetch_add_explicit(&first_thread, 1, memory_order_relaxed) + 1;
    if (number <= trace_from || traces >= TRACES) return;
    traces += 1;
    is_tracing = 1;
    void *frames[FRAMES];
    dprintf(STDERR_FILENO, "allocation %lu\n", number);
    // The first two frames are this function and the interposed one.
    int depth = backtrace(frames, FRAMES);
    if (depth > 2) backtrace_symbols_fd(frames + 2, depth - 2, STDERR_FILENO);
    is_tracing = 0;
}

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *pointer, size_t size) {
    count();
    return __libc_realloc(pointer, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
    count();
    void *pointer = __libc_memalign(alignment, size);
    if (pointer == NULL) return ENOMEM;
    *result = pointer;
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *from = getenv("ALLOCATION_TRACE");
    if (from == NULL) return;
    // The first call loads a library, which must not happen inside a request for memory.
    void *frame;
    backtrace(&frame, 1);
    trace_from = strtoul(from, NULL, 10);
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("ALLOCATION_COUNTS");
    if (path == NULL) return;
    unsigned long first = first_thread, others = other_threads;
    FILE *file = fopen(path, "w");
    if (file == NULL) return;
    fprintf(file, "%lu %lu\n", first, others);
    fclose(file);
}
