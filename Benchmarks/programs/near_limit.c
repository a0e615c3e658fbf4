// SPDX-License-Identifier: Apache-2.0

// The least that a gateway must do with a capture, to see how near beacond comes to it: maps a btsnoop file, finds the
// beacons in its advertising reports, and keeps a table of them with a moving average of their strength.
//
// usage: near_limit table|json CAPTURE
//
// json writes a line for each advertisement of a beacon, too. Of each report it looks at iBeacon, AltBeacon,
// Eddystone-UID and Eddystone-URL and at nothing else. It trusts the file, as no program that reads from a radio may.

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_HEADER = 16, RECORD_HEADER = 24, SLOTS = 1 << 19, OUTPUT = 1 << 16, LINE = 320 };

typedef struct {
    uint8_t key[21];  // format and identity
    uint8_t is_used;
    int8_t power;
    float average;
    uint32_t count;
} Beacon;

static Beacon table[SLOTS];
static uint64_t sightings, beacons;
static char output[OUTPUT];
static size_t used;

static void flush(void) {
    for (size_t done = 0; done < used;) {
        ssize_t count = write(STDOUT_FILENO, output + done, used - done);
        if (count < 0) exit(74);
        done += (size_t)count;
    }
    used = 0;
}

static void text(const char *characters, size_t count) {
    memcpy(output + used, characters, count);
    used += count;
}
#define TEXT(literal) text(literal, sizeof literal - 1)

static void hexadecimal(const uint8_t *octets, int count) {
    static const char digits[16] = "0123456789abcdef";
    for (int index = 0; index < count; ++index) {
        output[used++] = digits[octets[index] >> 4];
        output[used++] = digits[octets[index] & 15];
    }
}

static void number(long long value) {
    char reversed[20];
    int count = 0;
    if (value < 0) {
        output[used++] = '-';
        value = -value;
    }
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (count > 0) output[used++] = reversed[--count];
}

static void line(const Beacon *beacon, const uint8_t *address, int8_t rssi, uint64_t time) {
    static const char *const formats[] = {"ibeacon", "altbeacon", "eddystone-uid", "eddystone-url"};
    const char *format = formats[beacon->key[0]];
    if (used + LINE > OUTPUT) flush();
    TEXT("{\"event\":\"sighting\",\"time\":");
    number((long long)time);
    TEXT(",\"format\":\"");
    text(format, strlen(format));
    TEXT("\",\"id\":\"");
    hexadecimal(beacon->key + 1, beacon->key[0] == 2 ? 16 : 20);
    TEXT("\",\"address\":\"");
    for (int index = 5; index >= 0; --index) {
        hexadecimal(address + index, 1);
        if (index > 0) output[used++] = ':';
    }
    TEXT("\",\"rssi\":");
    number(rssi);
    TEXT(",\"rssi_filtered\":");
    number((long long)beacon->average);
    TEXT(",\"measured_power\":");
    number(beacon->power);
    TEXT(",\"count\":");
    number(beacon->count);
    TEXT("}\n");
}

static Beacon *find(const uint8_t key[21]) {
    uint64_t hash = 0xcbf29ce484222325, word;
    for (int index = 0; index < 16; index += 8) {
        memcpy(&word, key + index, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    memcpy(&word, key + 13, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    for (size_t slot = hash >> 45;; slot = (slot + 1) % SLOTS) {
        Beacon *beacon = &table[slot];
        if (!beacon->is_used) {
            if (++beacons == SLOTS) exit(70);
            beacon->is_used = 1;
            memcpy(beacon->key, key, 21);
            return beacon;
        }
        if (memcmp(beacon->key, key, 21) == 0) return beacon;
    }
}

static void report(const uint8_t *data, int length, const uint8_t *address, int8_t rssi, uint64_t time, int writes) {
    for (int at = 0; at + 1 < length && data[at] != 0 && at + 1 + data[at] <= length; at += 1 + data[at]) {
        const uint8_t *value = data + at + 2;
        int count = data[at] - 1;
        uint8_t key[21] = {0};
        int8_t power;
        if (data[at + 1] == 0xFF && count >= 25 && memcmp(value, "\x4c\x00\x02\x15", 4) == 0) {
            memcpy(key + 1, value + 4, 20);
            power = (int8_t)value[24];
        } else if (data[at + 1] == 0xFF && count >= 25 && value[2] == 0xBE && value[3] == 0xAC) {
            key[0] = 1;
            memcpy(key + 1, value + 4, 20);
            power = (int8_t)value[24];
        } else if (data[at + 1] == 0x16 && count >= 20 && memcmp(value, "\xaa\xfe\x00", 3) == 0) {
            key[0] = 2;
            memcpy(key + 1, value + 4, 16);
            power = (int8_t)value[3];
        } else if (data[at + 1] == 0x16 && count >= 6 && count <= 24 && memcmp(value, "\xaa\xfe\x10", 3) == 0) {
            key[0] = 3;
            memcpy(key + 1, value + 4, (size_t)count - 4);
            power = (int8_t)value[3];
        } else {
            continue;
        }
        Beacon *beacon = find(key);
        beacon->power = power;
        if (rssi != 127) beacon->average = beacon->count == 0 ? rssi : beacon->average + (rssi - beacon->average) / 5;
        beacon->count += 1;
        sightings += 1;
        if (writes) line(beacon, address, rssi, time);
    }
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: near_limit table|json CAPTURE\n");
        return 64;
    }
    int writes = strcmp(arguments[1], "json") == 0;
    int file = open(arguments[2], O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        perror(arguments[2]);
        return 66;
    }
    size_t size = (size_t)status.st_size;
    const uint8_t *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) {
        perror("mmap");
        return 66;
    }
    uint64_t packets = 0;
    for (size_t at = FILE_HEADER; at + RECORD_HEADER <= size; ++packets) {
        uint32_t length;
        uint64_t time;
        memcpy(&length, bytes + at + 4, 4);
        memcpy(&time, bytes + at + 16, 8);
        length = __builtin_bswap32(length);
        time = __builtin_bswap64(time);
        const uint8_t *packet = bytes + at + RECORD_HEADER;
        at += RECORD_HEADER + length;
        if (length < 6 || packet[0] != 0x04 || packet[1] != 0x3E) continue;
        if (packet[3] == 0x02) {
            int data = packet[13];
            report(packet + 14, data, packet + 7, (int8_t)packet[14 + data], time, writes);
        } else if (packet[3] == 0x0D) {
            report(packet + 29, packet[28], packet + 8, (int8_t)packet[18], time, writes);
        }
    }
    flush();
    fprintf(stderr, "%llu packets, %llu sightings, %llu beacons\n", (unsigned long long)packets,
            (unsigned long long)sightings, (unsigned long long)beacons);
    return 0;
}
