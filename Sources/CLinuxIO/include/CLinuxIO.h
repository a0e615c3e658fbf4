// SPDX-License-Identifier: Apache-2.0

// What Swift's Glibc module does not import: headers that it leaves out (epoll, signalfd, timerfd, eventfd) and
// functions behind macros or with variable arguments. Thin forwards, no logic.

#pragma once

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>

/// Waits on `epoll` and writes the `data.u64` of the ready descriptors to `tokens` and their events to `events`.
int clinuxio_epoll_wait(int epoll, uint64_t *tokens, uint32_t *events, int capacity, int timeout_ms);

/// Adds, modifies (`EPOLL_CTL_*` in `operation`) or removes a descriptor with a token.
int clinuxio_epoll_control(int epoll, int operation, int descriptor, uint32_t events, uint64_t token);

/// `signalfd4` for the given signals, which are blocked in this thread and in those that it makes from now on.
int clinuxio_signal_descriptor(const int *signals, int count);

/// Takes one signal; its number, 0 when there is none, -1 with errno.
int clinuxio_signal_take(int descriptor);

/// A `CLOCK_MONOTONIC` timer.
int clinuxio_timer_create(void);

/// Arms the timer for a moment of the monotonic clock in nanoseconds; 0 disarms it.
int clinuxio_timer_set(int descriptor, uint64_t nanoseconds);

/// Nanoseconds of a clock (`CLOCK_MONOTONIC`, `CLOCK_REALTIME`).
int64_t clinuxio_clock(int clock);

/// 1 when the kernel says that the system clock is synchronised, 0 when it is not.
int clinuxio_clock_is_synchronized(void);

/// Names this thread; the kernel keeps 15 octets.
void clinuxio_thread_set_name(const char *name);

/// `accept4` for a descriptor that does not block and is not inherited.
int clinuxio_accept(int descriptor);

/// Columns and rows of a terminal; -1 with errno when it is none.
int clinuxio_terminal_size(int descriptor, uint16_t *columns, uint16_t *rows);

/// Bytes that wait unread in a descriptor (FIONREAD) or unsent (TIOCOUTQ), -1 with errno.
int clinuxio_unread(int descriptor);
int clinuxio_unsent(int descriptor);

/// The flag of RTS/CTS flow control in `c_cflag` (CRTSCTS, whose spelling Swift does not import).
extern const int clinuxio_hardware_flow_control;

/// Keeps others from opening a terminal (TIOCEXCL); -1 with errno.
int clinuxio_claim_terminal(int descriptor);
