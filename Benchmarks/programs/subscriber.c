// SPDX-License-Identifier: Apache-2.0

// Counts the messages of a broker, and writes them with the time at which they came, as lines, when it is told a file.
//
// usage: subscriber PORT TOPIC [FILE]
//
// Prints "ready" when it is subscribed. On SIGTERM: the count, and the nanoseconds of CLOCK_MONOTONIC of the first and
// the last message.

#include <mosquitto.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long long count, first, last;
static FILE *log_file;
static struct mosquitto *client;
static volatile sig_atomic_t is_told_to_end;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void on_message(struct mosquitto *_, void *context, const struct mosquitto_message *message) {
    (void)_, (void)context;
    last = now();
    if (count++ == 0) first = last;
    if (log_file != NULL)
        fprintf(log_file, "%lld\t%s\t%.*s\n", last, message->topic, message->payloadlen, (char *)message->payload);
}

static void on_subscribe(struct mosquitto *_, void *context, int identifier, int granted_count, const int *granted) {
    (void)_, (void)context, (void)identifier, (void)granted_count, (void)granted;
    printf("ready\n");
    fflush(stdout);
}

static void on_signal(int number) {
    (void)number;
    is_told_to_end = 1;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 3 && argument_count != 4) {
        fprintf(stderr, "usage: subscriber PORT TOPIC [FILE]\n");
        return 64;
    }
    log_file = argument_count == 4 ? fopen(arguments[3], "w") : NULL;
    signal(SIGTERM, on_signal);
    mosquitto_lib_init();
    client = mosquitto_new(NULL, true, NULL);
    mosquitto_message_callback_set(client, on_message);
    mosquitto_subscribe_callback_set(client, on_subscribe);
    if (mosquitto_connect(client, "127.0.0.1", atoi(arguments[1]), 60) != 0) return 69;
    mosquitto_subscribe(client, NULL, arguments[2], 0);
    while (!is_told_to_end && mosquitto_loop(client, 100, 1) == MOSQ_ERR_SUCCESS) {}
    if (log_file != NULL) fclose(log_file);
    printf("%lld %lld %lld\n", count, first, last);
    return is_told_to_end ? 0 : 69;
}
