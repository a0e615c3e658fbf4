// SPDX-License-Identifier: Apache-2.0

// The least that a program can do to publish with libmosquitto: lines of a file as payloads, to one topic or to many.
//
// usage: publisher PORT COUNT QOS TOPICS PAYLOADS
//
// Ends when the broker has taken all; at QoS 0, when libmosquitto has written all.

#include <mosquitto.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AHEAD = 1000 };

static atomic_long published;
static atomic_int is_connected;

static void on_connect(struct mosquitto *client, void *context, int code) {
    (void)client, (void)context;
    if (code != 0) exit(69);
    is_connected = 1;
}

static void on_publish(struct mosquitto *client, void *context, int identifier) {
    (void)client, (void)context, (void)identifier;
    published += 1;
}

static void pause_briefly(void) { nanosleep(&(struct timespec){0, 100000}, NULL); }

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "usage: publisher PORT COUNT QOS TOPICS PAYLOADS\n");
        return 64;
    }
    long messages = atol(arguments[2]), topics = atol(arguments[4]);
    int quality = atoi(arguments[3]);
    FILE *file = fopen(arguments[5], "r");
    if (file == NULL) {
        perror(arguments[5]);
        return 66;
    }
    mosquitto_lib_init();
    struct mosquitto *client = mosquitto_new(NULL, true, NULL);
    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_publish_callback_set(client, on_publish);
    if (mosquitto_connect(client, "127.0.0.1", atoi(arguments[1]), 60) != 0 || mosquitto_loop_start(client) != 0)
        return 69;
    while (!is_connected) pause_briefly();
    char line[4096], topic[64];
    for (long index = 0; index < messages; ++index) {
        if (fgets(line, sizeof line, file) == NULL) {
            rewind(file);
            if (fgets(line, sizeof line, file) == NULL) return 66;
        }
        snprintf(topic, sizeof topic, "bench/ibeacon/%ld/sighting", index % topics);
        // libmosquitto keeps what it is given without a bound.
        while (index - published >= AHEAD) pause_briefly();
        if (mosquitto_publish(client, NULL, topic, (int)strcspn(line, "\n"), line, quality, false) != 0) return 70;
    }
    while (published < messages) pause_briefly();
    mosquitto_disconnect(client);
    mosquitto_loop_stop(client, false);
    return 0;
}
