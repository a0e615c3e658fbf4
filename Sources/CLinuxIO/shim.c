// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CLinuxIO.h"

#include <errno.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

int clinuxio_epoll_wait(int epoll, uint64_t *tokens, uint32_t *events, int capacity, int timeout_ms) {
    struct epoll_event ready[64];
    if (capacity > 64) capacity = 64;
    int count = epoll_wait(epoll, ready, capacity, timeout_ms);
    for (int index = 0; index < count; index++) {
        tokens[index] = ready[index].data.u64;
        events[index] = ready[index].events;
    }
    return count;
}

int clinuxio_epoll_control(int epoll, int operation, int descriptor, uint32_t events, uint64_t token) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = events;
    event.data.u64 = token;
    return epoll_ctl(epoll, operation, descriptor, &event);
}

int clinuxio_signal_descriptor(const int *signals, int count) {
    sigset_t set;
    sigemptyset(&set);
    for (int index = 0; index < count; index++) sigaddset(&set, signals[index]);
    int error = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int clinuxio_signal_take(int descriptor) {
    struct signalfd_siginfo info;
    ssize_t size = read(descriptor, &info, sizeof info);
    if (size == (ssize_t)sizeof info) return (int)info.ssi_signo;
    return size < 0 && errno == EAGAIN ? 0 : -1;
}

int clinuxio_timer_create(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); }

int clinuxio_timer_set(int descriptor, uint64_t nanoseconds) {
    struct itimerspec when;
    memset(&when, 0, sizeof when);
    when.it_value.tv_sec = (time_t)(nanoseconds / 1000000000u);
    when.it_value.tv_nsec = (long)(nanoseconds % 1000000000u);
    return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &when, NULL);
}

int64_t clinuxio_clock(int clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int clinuxio_clock_is_synchronized(void) {
    struct timex state;
    memset(&state, 0, sizeof state);
    int result = adjtimex(&state);
    return result >= 0 && result != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

void clinuxio_thread_set_name(const char *name) {
    char cut[16] = {0};
    strncpy(cut, name, sizeof cut - 1);
    pthread_setname_np(pthread_self(), cut);
}

int clinuxio_unread(int descriptor) {
    int count = 0;
    return ioctl(descriptor, FIONREAD, &count) < 0 ? -1 : count;
}

int clinuxio_unsent(int descriptor) {
    int count = 0;
    return ioctl(descriptor, SIOCOUTQ, &count) < 0 ? -1 : count;
}

int clinuxio_accept(int descriptor) { return accept4(descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }

int clinuxio_terminal_size(int descriptor, uint16_t *columns, uint16_t *rows) {
    struct winsize size;
    memset(&size, 0, sizeof size);
    if (ioctl(descriptor, TIOCGWINSZ, &size) < 0) return -1;
    *columns = size.ws_col;
    *rows = size.ws_row;
    return 0;
}

const int clinuxio_hardware_flow_control = (int)CRTSCTS;

int clinuxio_claim_terminal(int descriptor) { return ioctl(descriptor, TIOCEXCL); }
