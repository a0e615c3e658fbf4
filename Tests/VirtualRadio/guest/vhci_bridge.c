// SPDX-License-Identifier: Apache-2.0
//
// Runs in the guest: joins an H4 stream, whose far end is a virtual controller on the host, to /dev/vhci, so that the
// controller becomes an adapter of this kernel. Prints the adapter's name. The adapter goes when this ends, which it
// does when the controller closes.
//
// usage: vhci_bridge PORT

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { command = 1, acl = 2, sco = 3, event = 4, vendor = 0xFF };

// The length of the packet at the front of some octets; 0 while that cannot be told, -1 when they begin no packet.
static int packet_length(const unsigned char *octets, int count) {
    if (count == 0) return 0;
    switch (octets[0]) {
    case event: return count < 3 ? 0 : 3 + octets[2];
    case acl: return count < 5 ? 0 : 5 + (octets[3] | octets[4] << 8);
    case sco: return count < 4 ? 0 : 4 + octets[3];
    default: return -1;
    }
}

// Stops what an earlier owner of the controller left running, and reads what it left unread: the stream begins in step.
static int settle(int port) {
    static const unsigned char reset[] = {command, 0x03, 0x0C, 0};
    static const unsigned char answer[] = {0x03, 0x0C, 0x00};
    unsigned char octets[4096];
    int kept = 0, is_answered = 0;
    if (write(port, reset, sizeof reset) != sizeof reset) return -1;
    for (;;) {
        struct pollfd ready = {port, POLLIN, 0};
        int count = poll(&ready, 1, is_answered ? 100 : 5000);
        if (count < 0) return -1;
        if (count == 0) return is_answered ? 0 : -1;
        count = (int)read(port, octets + kept, sizeof octets - kept);
        if (count <= 0) return -1;
        kept += count;
        if (memmem(octets, kept, answer, sizeof answer)) is_answered = 1;
        // The answer may be cut in two by the buffer's end.
        if (kept > (int)sizeof answer) {
            memmove(octets, octets + kept - sizeof answer + 1, sizeof answer - 1);
            kept = sizeof answer - 1;
        }
    }
}

int main(int count, char **words) {
    if (count != 2) return 64;
    int port = open(words[1], O_RDWR);
    if (port < 0 || settle(port) < 0) return perror(words[1]), 1;
    int adapter = open("/dev/vhci", O_RDWR);
    static const unsigned char create[] = {vendor, 0};
    if (adapter < 0 || write(adapter, create, sizeof create) != sizeof create) return perror("/dev/vhci"), 1;

    unsigned char stream[1 << 16], packet[4096];
    int length = 0;
    for (;;) {
        struct pollfd ready[] = {{port, POLLIN, 0}, {adapter, POLLIN, 0}};
        if (poll(ready, 2, -1) < 0) return 1;
        if (ready[1].revents & POLLIN) {
            int got = (int)read(adapter, packet, sizeof packet);
            if (got <= 0) return 1;
            if (packet[0] == vendor) {
                printf("hci%d\n", packet[2] | packet[3] << 8);
                fflush(stdout);
            } else if (write(port, packet, got) != got) {
                return 1;
            }
        }
        if (!ready[0].revents) continue;
        int got = (int)read(port, stream + length, sizeof stream - length);
        if (got <= 0) return 0;
        length += got;
        int start = 0, next;
        while ((next = packet_length(stream + start, length - start)) > 0 && next <= length - start) {
            if (write(adapter, stream + start, next) != next) perror("/dev/vhci");
            start += next;
        }
        if (next < 0) return fprintf(stderr, "out of step at 0x%02x\n", stream[start]), 1;
        length -= start;
        memmove(stream, stream + start, length);
    }
}
