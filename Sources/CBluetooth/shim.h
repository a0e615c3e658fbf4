// SPDX-License-Identifier: Apache-2.0

#pragma once
#include <sys/ioctl.h>

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <errno.h>
#include <linux/usbdevice_fs.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

// What Swift cannot import: functions with variable arguments and macros of control messages. Thin forwards.

/// Facts about an adapter (HCIGETDEVINFO); -1 with errno.
static inline int cbluetooth_device_info(int socket, uint16_t index, struct hci_dev_info *info) {
    memset(info, 0, sizeof *info);
    info->dev_id = index;
    return ioctl(socket, HCIGETDEVINFO, (void *)info);
}

/// The indices of at most `capacity` (16 or fewer) adapters (HCIGETDEVLIST); how many, -1 with errno.
static inline int cbluetooth_device_list(int socket, uint16_t *indices, int capacity) {
    struct {
        struct hci_dev_list_req list;
        struct hci_dev_req requests[HCI_MAX_DEV];
    } answer;
    memset(&answer, 0, sizeof answer);
    answer.list.dev_num = HCI_MAX_DEV;
    if (ioctl(socket, HCIGETDEVLIST, (void *)&answer) < 0) return -1;
    int count = answer.list.dev_num < capacity ? answer.list.dev_num : capacity;
    for (int index = 0; index < count; index++) indices[index] = answer.list.dev_req[index].dev_id;
    return count;
}

/// Brings an adapter up (HCIDEVUP) or down (HCIDEVDOWN); -1 with errno.
static inline int cbluetooth_device_power(int socket, uint16_t index, int up) {
    return ioctl(socket, up ? HCIDEVUP : HCIDEVDOWN, (unsigned long)index);
}

/// Has a USB device reset (USBDEVFS_RESET): its file is open for writing; -1 with errno.
static inline int cbluetooth_usb_reset(int device) { return ioctl(device, USBDEVFS_RESET, 0); }

/// Most packets that one call receives.
enum { CBLUETOOTH_PACKETS = 16 };

/// What recvmmsg(2) works on. The headers declare both only with _GNU_SOURCE, with which other types would look otherwise
/// here than in other modules.
struct cbluetooth_message {
    struct msghdr header;
    unsigned int length;
};

/// Receives up to CBLUETOOTH_PACKETS packets, each to its `capacity` octets of `octets`, with its length and, where the
/// kernel tells it, when it came: nanoseconds of CLOCK_REALTIME, else 0. How many packets, -1 with errno.
static inline int cbluetooth_receive(
    int socket, uint8_t *octets, size_t capacity, uint32_t *lengths, int64_t *received) {
    struct iovec vectors[CBLUETOOTH_PACKETS];
    union {
        char room[128];
        struct cmsghdr alignment;
    } controls[CBLUETOOTH_PACKETS];
    struct cbluetooth_message messages[CBLUETOOTH_PACKETS];
    memset(messages, 0, sizeof messages);
    for (int index = 0; index < CBLUETOOTH_PACKETS; index++) {
        vectors[index] = (struct iovec){octets + (size_t)index * capacity, capacity};
        messages[index].header.msg_iov = &vectors[index];
        messages[index].header.msg_iovlen = 1;
        messages[index].header.msg_control = controls[index].room;
        messages[index].header.msg_controllen = sizeof controls[index].room;
    }
    int count = (int)syscall(SYS_recvmmsg, socket, messages, CBLUETOOTH_PACKETS, MSG_DONTWAIT, NULL);
    for (int index = 0; index < count; index++) {
        struct msghdr *message = &messages[index].header;
        lengths[index] = messages[index].length;
        received[index] = 0;
        for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
            int raw = part->cmsg_level == SOL_HCI && part->cmsg_type == HCI_CMSG_TSTAMP;
            int user = part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_TIMESTAMP;
            if ((raw || user) && part->cmsg_len >= CMSG_LEN(sizeof(struct timeval))) {
                struct timeval time;
                memcpy(&time, CMSG_DATA(part), sizeof time);
                received[index] = (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
            }
        }
    }
    return count;
}

/// Packets that the kernel dropped because the receive buffer was full (SO_MEMINFO, SK_MEMINFO_DROPS); -1 with errno.
static inline int64_t cbluetooth_drops(int socket) {
    uint32_t numbers[9] = {0};
    socklen_t length = sizeof numbers;
    if (getsockopt(socket, SOL_SOCKET, SO_MEMINFO, numbers, &length) < 0) return -1;
    return length >= sizeof numbers ? (int64_t)numbers[8] : 0;
}
