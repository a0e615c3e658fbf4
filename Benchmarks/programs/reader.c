// SPDX-License-Identifier: Apache-2.0

// The least that a program can do for a packet at a time: waits for it, reads it, and throws it away. Turns scanning on
// first, so that controller.c begins.
//
// usage: reader SOCKET

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **arguments) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (count != 2 || strlen(arguments[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: reader SOCKET\n");
        return 64;
    }
    strcpy(address.sun_path, arguments[1]);
    int peer = socket(AF_UNIX, SOCK_STREAM, 0);
    static const uint8_t enable[] = {0x01, 0x0C, 0x20, 2, 1, 0};
    if (peer < 0 || connect(peer, (struct sockaddr *)&address, sizeof address) != 0 ||
        write(peer, enable, sizeof enable) != sizeof enable) {
        perror(arguments[1]);
        return 71;
    }
    uint8_t packet[264];
    struct pollfd state = {.fd = peer, .events = POLLIN};
    while (poll(&state, 1, -1) > 0) {
        if (read(peer, packet, sizeof packet) <= 0) break;
    }
    return 0;
}
