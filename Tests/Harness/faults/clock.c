// SPDX-License-Identifier: Apache-2.0

// Clocks that can be set for one process: loaded with LD_PRELOAD, it adds to CLOCK_REALTIME, and has all clocks that
// count the time of the world, and what waits by them, run faster for a while. The file FAULT_CLOCK has 64-bit integers,
// read anew each time: see clock.py.

#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static const int64_t second = 1000000000;

struct setting {
    int64_t seconds_to_add;  // to CLOCK_REALTIME
    int64_t follows_nothing;  // whether the clock has no time source
    int64_t speed;  // how many times as fast
    int64_t from, until;  // the span in which it is, in nanoseconds of the true CLOCK_MONOTONIC
};

static const volatile struct setting *setting;

__attribute__((constructor)) static void open_setting(void) {
    const char *path = getenv("FAULT_CLOCK");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) setting = page;
    close(file);
}

static int64_t true_monotonic(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * second + now.tv_nsec;
}

// How far the clocks are ahead at a moment of the true clock.
static int64_t ahead(int64_t now) {
    if (setting == NULL || now <= setting->from) return 0;
    int64_t end = now < setting->until ? now : setting->until;
    return end > setting->from ? (end - setting->from) * (setting->speed - 1) : 0;
}

static int is_fast(int64_t now) {
    return setting != NULL && setting->speed > 1 && now >= setting->from && now < setting->until;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result != 0 || setting == NULL) return (int)result;
    int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (!is_wall && clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE && clock != CLOCK_BOOTTIME) return 0;
    int64_t now = time->tv_sec * second + time->tv_nsec;
    now += ahead(clock == CLOCK_MONOTONIC ? now : true_monotonic());
    time->tv_sec = now / second + (is_wall ? setting->seconds_to_add : 0);
    time->tv_nsec = now % second;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place != NULL) *place = now.tv_sec;
    return now.tv_sec;
}

int adjtimex(struct timex *time) {
    int result = (int)syscall(SYS_adjtimex, time);
    if (setting == NULL || result < 0) return result;
    time->status = setting->follows_nothing != 0 ? time->status | STA_UNSYNC : time->status & ~STA_UNSYNC;
    return setting->follows_nothing != 0 ? TIME_ERROR : TIME_OK;
}

// Only what beacond uses: an absolute moment of CLOCK_MONOTONIC, without an interval.
int timerfd_settime(int timer, int flags, const struct itimerspec *when, struct itimerspec *before) {
    struct itimerspec moved = *when;
    int64_t now = true_monotonic(), lead = ahead(now);
    int64_t wanted = when->it_value.tv_sec * second + when->it_value.tv_nsec;
    if ((flags & TFD_TIMER_ABSTIME) != 0 && wanted != 0 && lead + is_fast(now) > 0) {
        int64_t left = wanted - (now + lead);
        wanted = now + (left > 0 && is_fast(now) ? left / setting->speed : left);
        if (wanted < 1) wanted = 1;
        moved.it_value.tv_sec = wanted / second;
        moved.it_value.tv_nsec = wanted % second;
    }
    return (int)syscall(SYS_timerfd_settime, timer, flags, &moved, before);
}

int poll(struct pollfd *descriptors, nfds_t count, int milliseconds) {
    if (milliseconds > 0 && is_fast(true_monotonic())) {
        milliseconds = (int)(milliseconds / setting->speed);
        if (milliseconds == 0) milliseconds = 1;
    }
    struct timespec wait = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    return (int)syscall(SYS_ppoll, descriptors, count, milliseconds < 0 ? NULL : &wait, NULL, 0);
}
