// SPDX-License-Identifier: Apache-2.0

// A controller that hears what a capture says, at a rate: listens on a unix socket, answers every HCI command (H4) with
// success, and once it is told to scan sends the capture's packets, one write each, evenly in time, round and round.
//
// usage: controller SOCKET CAPTURE RATE SECONDS [TIMES]
//
// CAPTURE "none" is a radio that hears nothing; RATE 0 sends each packet of the capture once, as fast as they are taken.
// Prints "scanning" when it begins and "done COUNT LATEST" when the time is over, LATEST being the longest time in
// nanoseconds that a packet left late; then it stays until the other side closes. TIMES is a file for the nanoseconds of
// CLOCK_MONOTONIC at which each packet left, 8 octets each.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { FILE_HEADER = 16, RECORD_HEADER = 24 };

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(71);
}

static void send_all(int peer, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(peer, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) exit(0);
        if (sent < 0) fail("send");
        bytes += sent;
        count -= (size_t)sent;
    }
}

// Answers the commands that have come; whether scanning was turned on. Ends the program when the other side has closed.
static int answer(int peer, int wait_milliseconds) {
    static uint8_t commands[4096];
    static size_t held;
    static int is_scanning;
    struct pollfd state = {.fd = peer, .events = POLLIN};
    if (poll(&state, 1, wait_milliseconds) <= 0) return is_scanning;
    ssize_t count = read(peer, commands + held, sizeof commands - held);
    if (count <= 0) exit(0);
    held += (size_t)count;
    while (held >= 4 && held >= 4u + commands[3]) {
        unsigned opcode = commands[1] | commands[2] << 8;
        // Room for the longest return parameters, those of Read Local Supported Commands.
        uint8_t event[7 + 64] = {0x04, 0x0E, 4 + 64, 1, commands[1], commands[2], 0};
        // Its address, and octet 37, bits 5 and 6: extended scanning.
        if (opcode == 0x1009) memcpy(event + 7, "\x01\x02\x03\x04\x05\xc0", 6);
        if (opcode == 0x1002) event[7 + 37] = 0x60;
        send_all(peer, event, sizeof event);
        if (opcode == 0x200C || opcode == 0x2042) is_scanning = commands[4] != 0;
        size_t length = 4u + commands[3];
        memmove(commands, commands + length, held - length);
        held -= length;
    }
    return is_scanning;
}

static uint8_t *read_capture(const char *path, size_t *size) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) fail(path);
    uint8_t *bytes = malloc((size_t)status.st_size);
    if (bytes == NULL) fail("malloc");
    for (*size = 0; *size < (size_t)status.st_size;) {
        ssize_t count = read(file, bytes + *size, (size_t)status.st_size - *size);
        if (count <= 0) fail(path);
        *size += (size_t)count;
    }
    close(file);
    return bytes;
}

static int accepted(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "%s: too long for a socket\n", path);
        exit(64);
    }
    strcpy(address.sun_path, path);
    unlink(path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1) != 0)
        fail(path);
    printf("listening\n");
    fflush(stdout);
    int peer = accept(listener, NULL, NULL);
    if (peer < 0) fail("accept");
    return peer;
}

int main(int count, char **arguments) {
    if (count != 5 && count != 6) {
        fprintf(stderr, "usage: controller SOCKET CAPTURE RATE SECONDS [TIMES]\n");
        return 64;
    }
    // By default a timer may be 50 microseconds late.
    prctl(PR_SET_TIMERSLACK, 1);
    size_t size = 0;
    int is_silent = strcmp(arguments[2], "none") == 0;
    uint8_t *bytes = is_silent ? NULL : read_capture(arguments[2], &size);
    double rate = atof(arguments[3]);
    int64_t duration = (int64_t)(atof(arguments[4]) * 1e9);
    FILE *times = count == 6 ? fopen(arguments[5], "w") : NULL;
    if (count == 6 && times == NULL) fail(arguments[5]);

    int peer = accepted(arguments[1]);
    while (!answer(peer, -1)) {}
    printf("scanning\n");
    fflush(stdout);

    int64_t start = now(), latest = 0;
    long long sent = 0;
    size_t at = FILE_HEADER;
    while (is_silent ? now() < start + duration : rate == 0 ? at < size : sent / rate * 1e9 < (double)duration) {
        if (is_silent) {
            answer(peer, 10);
            continue;
        }
        if (at >= size) at = FILE_HEADER;
        uint32_t length;
        memcpy(&length, bytes + at + 4, 4);
        length = __builtin_bswap32(length);
        if (rate > 0) {
            int64_t due = start + (int64_t)(sent / rate * 1e9);
            struct timespec moment = {due / 1000000000, due % 1000000000};
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) == EINTR) {}
            int64_t late = now() - due;
            if (late > latest) latest = late;
        }
        if (times != NULL) {
            int64_t moment = now();
            fwrite(&moment, sizeof moment, 1, times);
        }
        send_all(peer, bytes + at + RECORD_HEADER, length);
        at += RECORD_HEADER + length;
        // A look for commands now and then costs the one who is measured nothing.
        if (++sent % 64 == 0) answer(peer, 0);
    }
    if (times != NULL) fclose(times);
    printf("done %lld %lld\n", sent, (long long)latest);
    fflush(stdout);
    while (1) answer(peer, -1);
}
