# SPDX-License-Identifier: Apache-2.0
"""Captures in which beacons advertise in turn, so that each advertisement can be told from all others."""

import struct

# Of the harness, which laboratory.py makes importable.
import laboratory  # noqa: F401
from make_capture import (
    ADV_NONCONN_IND, BTSNOOP_UNIX_EPOCH, FLAGS, H4_DATALINK, LEGACY, RECEIVED_EVENT, SITES, START, manufacturer, packet)

UUID = SITES[0].hex()
# Strengths that a beacon goes through: it names the round, because a message has it.
STRONGEST, STRENGTHS = -30, 60


def strength(round_number):
    return STRONGEST - round_number % STRENGTHS


def write_rounds(path, beacons, packets, rate):
    """`beacons` iBeacons (the minor value counts them) advertise in turn, `rate` advertisements a second altogether."""
    packets_of = []
    for minor in range(beacons):
        payload = FLAGS + manufacturer(0x004C, b"\x02\x15" + SITES[0] + struct.pack(">HHb", 1, minor, -59))
        address = struct.pack("<HI", minor, 0xC0000000)
        packets_of.append(packet(ADV_NONCONN_IND, payload, address, True, LEGACY))
    with open(path, "wb") as file:
        file.write(b"btsnoop\0" + struct.pack(">II", 1, H4_DATALINK))
        for index in range(packets):
            front, back = packets_of[index % beacons]
            record = front + struct.pack("b", strength(index // beacons)) + back
            time = BTSNOOP_UNIX_EPOCH + START * 1_000_000 + index * 1_000_000 // rate
            file.write(struct.pack(">IIIIq", len(record), len(record), RECEIVED_EVENT, 0, time) + record)
    return path


def uuid_text(digits=UUID):
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def sites():
    """Regions that have all iBeacons of the generator's mix."""
    return [{"name": f"site {number}", "uuid": uuid_text(site.hex())} for number, site in enumerate(SITES)]


def known(count):
    """The iBeacons of a capture of rounds as a configuration names them."""
    return [{"alias": f"beacon {minor}", "uuid": uuid_text(), "major": 1, "minor": minor} for minor in range(count)]
