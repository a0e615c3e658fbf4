// SPDX-License-Identifier: Apache-2.0

// Runs a program and writes what it took to a file: wall time, user time and system time in nanoseconds, peak memory in
// bytes.
//
// usage: measure RESULT PROGRAM [ARGUMENT...]
//
// A process inherits the peak of the one that started it, so a small program must do that, not Python.

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long nanoseconds(struct timeval time) { return time.tv_sec * 1000000000LL + time.tv_usec * 1000LL; }

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: measure RESULT PROGRAM [ARGUMENT...]\n");
        return 64;
    }
    long long start = now();
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 71;
    }
    if (child == 0) {
        execv(arguments[2], arguments + 2);
        perror(arguments[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child) {
        perror("wait4");
        return 71;
    }
    long long wall = now() - start;
    FILE *file = fopen(arguments[1], "w");
    if (file == NULL) {
        perror(arguments[1]);
        return 73;
    }
    fprintf(file, "%lld %lld %lld %lld\n", wall, nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime),
            usage.ru_maxrss * 1024LL);
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
