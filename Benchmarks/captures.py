# SPDX-License-Identifier: Apache-2.0
"""Captures in which beacons advertise in turn, so that each advertisement can be told from all others."""

import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Tests/Harness"))
from make_capture import (  # noqa: E402
    ADV_NONCONN_IND, BTSNOOP_UNIX_EPOCH, FLAGS, H4_DATALINK, LEGACY, RECEIVED_EVENT, SITES, START, manufacturer, packet)

UUID = SITES[0].hex()
# Strengths that a beacon goes through: it names the round, because a message has it.
STRONGEST, STRENGTHS = -30, 60


def strength(round_number):
    return STRONGEST - round_number % STRENGTHS


def write_rounds(path, beacons, packets, rate):
    """`beacons` iBeacons advertise in turn, `rate` advertisements a second altogether.

    The minor value counts them, and the major value goes on beyond 16 bits.
    """
    return write(path, ((index % beacons, index // beacons) for index in range(packets)), rate)


def visits(packets, beacons, visitors):
    """(minor, round) of `beacons` that stay and, one advertisement in twenty, of as many visitors that come and go."""
    for index in range(packets):
        turn, place = divmod(index, 20)
        if place == 0:
            yield beacons + turn % visitors, turn // visitors
        else:
            turn = index - turn - 1
            yield turn % beacons, turn // beacons


def write(path, advertisements, rate):
    """A capture of what (minor, round) name, evenly in time."""
    spelled = {}
    with open(path, "wb") as file:
        file.write(b"btsnoop\0" + struct.pack(">II", 1, H4_DATALINK))
        for index, (minor, round_number) in enumerate(advertisements):
            if minor not in spelled:
                major, low = divmod(minor, 65_536)
                identity = SITES[0] + struct.pack(">HH", 1 + major, low)
                payload = FLAGS + manufacturer(0x004C, b"\x02\x15" + identity + struct.pack("b", -59))
                address = struct.pack("<IH", minor, 0xC000)
                spelled[minor] = packet(ADV_NONCONN_IND, payload, address, True, LEGACY)
            front, back = spelled[minor]
            record = front + struct.pack("b", strength(round_number)) + back
            time = BTSNOOP_UNIX_EPOCH + START * 1_000_000 + index * 1_000_000 // rate
            file.write(struct.pack(">IIIIq", len(record), len(record), RECEIVED_EVENT, 0, time) + record)
    return path


def uuid_text(digits=UUID):
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def sites():
    """Regions that have all iBeacons of the generator's mix."""
    return [{"name": f"site {number}", "uuid": uuid_text(site.hex())} for number, site in enumerate(SITES)]


def known(count, start=0, **keys):
    """The iBeacons of these captures as a configuration names them."""
    return [
        {"alias": f"beacon {minor}", "uuid": uuid_text(), "major": 1, "minor": minor} | keys
        for minor in range(start, start + count)
    ]
