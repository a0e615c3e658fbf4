#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a btsnoop capture of made-up advertisers: the same arguments give the same bytes.

The mix is that of a busy floor: beacons of the open formats, phones and other manufacturer data, connectable devices
that answer scan requests, two thirds of them in legacy reports (LE Advertising Report, 0x02) and one third in extended
ones (0x0D). One device in ten leaves for 45 s out of every 90 s, so that presence has exits and enters to make.

A capture of N packets is the beginning of one of more packets with the same seed and devices.
"""

import argparse
import json
import random
import struct
import sys

# btsnoop counts microseconds since the year 0; this is 1970-01-01T00:00:00Z on that clock.
BTSNOOP_UNIX_EPOCH = 0x00DCDDB30F2F8000
START = 1_700_000_000  # 2023-11-14T22:13:20Z, any moment would do
H4_DATALINK = 1002
RECEIVED_EVENT = 3  # record flags: from the controller, command or event

AWAY_EVERY, AWAY_FOR = 90_000_000, 45_000_000  # µs; longer than the default exit time of 20 s

ADV_IND, ADV_NONCONN_IND, SCAN_RSP = 0x00, 0x03, 0x04
# How the controller reports a device: in legacy reports, or in extended ones as a legacy PDU or as an extended one.
LEGACY, LEGACY_IN_EXTENDED_REPORT, EXTENDED = range(3)
# The bits of an extended report's event type that say the same of a legacy PDU, and those of a true extended one.
EXTENDED_TYPE = {ADV_IND: 0x0013, ADV_NONCONN_IND: 0x0010, SCAN_RSP: 0x001B}
EXTENDED_NONCONNECTABLE = 0x0000


def structure(kind, data):
    return bytes([len(data) + 1, kind]) + data


def manufacturer(company, data):
    return structure(0xFF, struct.pack("<H", company) + data)


def eddystone(frame):
    return structure(0x03, b"\xaa\xfe") + structure(0x16, b"\xaa\xfe" + frame)


FLAGS = structure(0x01, b"\x06")
# Four sites of iBeacons, and one of AltBeacons and Eddystones: in the field identities share their leading octets.
SITES = [bytes.fromhex(f"{site:02x}f5c3a0b7e24d1e9c38ab0d6c11e7{site:02x}") for site in (0x1A, 0x2B, 0x3C, 0x4D)]


def power(generator):
    return struct.pack("b", generator.randint(-72, -52))


def ibeacon(generator, number):
    identity = SITES[number % 4] + struct.pack(">HH", number // 100, number & 0xFFFF)
    return [(ADV_NONCONN_IND, FLAGS + manufacturer(0x004C, b"\x02\x15" + identity + power(generator)))]


def altbeacon(generator, number):
    identity = SITES[0] + struct.pack(">HH", 7 + (number >> 16), number & 0xFFFF)
    return [(ADV_NONCONN_IND, FLAGS + manufacturer(0x0118, b"\xbe\xac" + identity + power(generator) + b"\x00"))]


def eddystone_frames(generator, number):
    """UID, URL and TLM by turns, as the common firmware does it; the last turn has no TLM."""
    transmitted = power(generator)
    namespace = SITES[number % 4][:10]
    uid = b"\x00" + transmitted + namespace + number.to_bytes(6, "big") + b"\x00\x00"
    url = b"\x10" + transmitted + b"\x03" + b"site%d" % number + b"\x07"
    tlm = struct.pack(">BBHhII", 0x20, 0, 2900 + number % 200, 0x1480, number * 1000, number * 100_000 & 0xFFFFFFFF)
    return [(ADV_NONCONN_IND, FLAGS + eddystone(frame)) for frame in (uid, url, uid, tlm, uid, url)]


def phone(generator, number):
    body = b"\x10\x05" + generator.randbytes(5)
    return [(ADV_IND, structure(0x01, b"\x1a") + structure(0x0A, b"\x0c") + manufacturer(0x004C, body))]


def other(generator, number):
    company = generator.choice((0x0006, 0x0075, 0x00E0, 0x0157, 0x0499))
    return [(ADV_NONCONN_IND, manufacturer(company, generator.randbytes(generator.randint(4, 24))))]


def named(generator, number):
    advertisement = FLAGS + structure(0x03, b"\x0f\x18\x0a\x18")
    return [(ADV_IND, advertisement), (SCAN_RSP, structure(0x09, b"Device %04d" % number))]


# Kind, its share of the devices in per cent, and its frames in turn as (PDU, payload).
KINDS = [
    ("ibeacon", 40, ibeacon),
    ("altbeacon", 8, altbeacon),
    ("eddystone", 14, eddystone_frames),
    ("phone", 16, phone),
    ("other", 10, other),
    ("named", 12, named),
]


def event(subevent, report):
    parameters = bytes([subevent, 1]) + report
    return bytes([0x04, 0x3E, len(parameters)]) + parameters


def packet(pdu, payload, address, is_random, style):
    """One packet as what stands in front of the RSSI and what stands behind it."""
    if style == LEGACY:
        report = bytes([pdu, is_random]) + address + bytes([len(payload)]) + payload
        return event(0x02, report + b"\x00")[:-1], b""
    # Secondary PHY and SID are those of a legacy PDU (none) unless the advertisement is a true extended one.
    event_type, secondary_phy, sid = EXTENDED_TYPE[pdu], 0x00, 0xFF
    if style == EXTENDED and pdu == ADV_NONCONN_IND:
        event_type, secondary_phy, sid = EXTENDED_NONCONNECTABLE, 0x01, 0x03
    # Primary PHY 1M; TX power not available.
    front = struct.pack("<HB", event_type, is_random) + address + bytes([0x01, secondary_phy, sid, 0x7F])
    # No periodic advertising, no direct address.
    back = bytes(2 + 1 + 6) + bytes([len(payload)]) + payload
    whole = event(0x0D, front + b"\x00" + back)
    split = len(whole) - len(back) - 1
    return whole[:split], whole[split + 1 :]


class Device:
    """One advertiser: its packets in turn, how strong it is, and when it is away."""

    def __init__(self, kind, make, number, seed):
        # A generator of its own: a device is the same whatever the others are.
        generator = random.Random(seed * 1_000_003 + number)
        is_random = generator.random() < 0.8
        address = bytes([generator.randrange(0x40) | (0xC0 if is_random else 0x00)]) + generator.randbytes(5)
        style = generator.choices((LEGACY, LEGACY_IN_EXTENDED_REPORT, EXTENDED), (4, 1, 1))[0]
        self.kind = kind
        self.turns = [
            packet(pdu, payload, address[::-1], is_random, style) for pdu, payload in make(generator, number)
        ]
        self.turn = 0
        self.strength = generator.randint(-90, -45)
        self.away_from = generator.randrange(AWAY_EVERY) if number % 10 == 9 else None

    def is_away(self, microseconds):
        return self.away_from is not None and (microseconds - self.away_from) % AWAY_EVERY < AWAY_FOR


def make_devices(count, seed):
    kinds = [entry for entry in KINDS for _ in range(entry[1])]
    random.Random(seed).shuffle(kinds)
    return [Device(kinds[n % 100][0], kinds[n % 100][2], n, seed) for n in range(count)]


def write_capture(file, packet_count, device_count, seed, rate):
    """Writes the capture and returns how many packets of each kind it has."""
    devices = make_devices(device_count, seed)
    counts = {name: 0 for name, _, _ in KINDS}
    generator = random.Random(seed)
    uniform, step = generator.random, 2_000_000 / rate
    header = struct.Struct(">IIIIq").pack
    # RSSI 127 (not available) once in a thousand, as real controllers have it.
    noise = [min(max(round(generator.gauss(0, 5)), -12), 12) for _ in range(999)] + [None]
    file.write(b"btsnoop\0" + struct.pack(">II", 1, H4_DATALINK))
    elapsed, written, chunk = 0.0, 0, []
    while written < packet_count:
        elapsed += uniform() * step
        device = devices[int(uniform() * device_count)]
        microseconds = int(elapsed)
        if device.is_away(microseconds):
            continue
        offset = noise[int(uniform() * 1000)]
        rssi = 127 if offset is None else device.strength + offset & 0xFF
        front, back = device.turns[device.turn]
        device.turn = (device.turn + 1) % len(device.turns)
        length = len(front) + 1 + len(back)
        time = BTSNOOP_UNIX_EPOCH + START * 1_000_000 + microseconds
        chunk.append(header(length, length, RECEIVED_EVENT, 0, time) + front + bytes((rssi,)) + back)
        counts[device.kind] += 1
        written += 1
        if len(chunk) == 8192:
            file.write(b"".join(chunk))
            chunk.clear()
    file.write(b"".join(chunk))
    return counts


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", help="the capture to write")
    parser.add_argument("--packets", type=positive, default=100_000)
    parser.add_argument("--devices", type=positive, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=positive, default=1000, help="reports a second, by the time stamps")
    arguments = parser.parse_args()
    with open(arguments.file, "wb") as file:
        counts = write_capture(file, arguments.packets, arguments.devices, arguments.seed, arguments.rate)
    json.dump({"packets": arguments.packets, "devices": arguments.devices, "kinds": counts}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
