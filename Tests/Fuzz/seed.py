#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes seeds and dictionaries for the fuzz targets out of Tests/Fixtures.

usage: seed.py FOLDER
Writes FOLDER/TARGET/… and, where words help, FOLDER/TARGET.dict.
"""

import hashlib
import json
import pathlib
import re
import struct
import sys

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "Fixtures"
# Records of a capture in one seed, and seeds made of one capture: enough to show every kind of packet.
RECORDS, SLICES = 4, 30
# Of layout strings.
TERMS = ("m:", "s:0-1=feaa", "i:", "p:", "d:", "x", "p:-:", "4-19", "2-3=beac", "0-3=4c000215", ":-41")


def vectors():
    """Kind and packets of each vector, and of each case that has them."""
    for path in sorted(FIXTURES.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            entry = entry.get("input", entry)
            packets = entry.get("hex", [])
            if packets:
                packets = [packets] if isinstance(packets, str) else packets
                yield entry["kind"], [bytes.fromhex(packet) for packet in packets]


def advertising():
    """Data as they are, and those within the legacy reports of an event."""
    for kind, packets in vectors():
        for packet in packets:
            if kind == "adv-data":
                yield packet
            elif packet[:2] == b"\x04\x3e" and packet[3] == 0x02 and len(packet) > 14:
                yield packet[14 : 14 + packet[13]]


def framed(packets):
    """As `forEachPacket` takes them: the time since the last packet, the length less 3, the packet."""
    return b"".join(bytes([1, max(0, len(packet) - 3)]) + packet for packet in packets)


def hci():
    for kind, packets in vectors():
        if kind in ("hci-event", "hci-sequence"):
            yield framed(packets)
        elif len(packets[0]) <= 31:
            report = bytes([0, 1, 1, 2, 3, 4, 5, 0xC6, len(packets[0])]) + packets[0] + b"\xc4"
            yield framed([bytes([0x04, 0x3E, len(report) + 2, 0x02, 1]) + report])
    # What a controller answers.
    yield framed([bytes.fromhex("040e0401052000"), bytes.fromhex("040f0400010c20"), bytes.fromhex("04100142")])


def bindkeys():
    """BTHome in advertisements of at most 127 octets, as it is and as if it were encrypted, under rising counters."""
    for data in advertising():
        place = data.find(b"\x16\xd2\xfc")
        if 0 < place and len(data) < 120:
            payload = data[place + 1 : place + data[place - 1]]
            unit = bytes([len(data)]) + data
            for counter in (500, 501, 499):
                opened = payload[:2] + bytes([payload[2] | 1 if len(payload) > 2 else 0x41]) + payload[3:]
                opened += struct.pack("<I", counter) + bytes(4)
                unit += bytes([len(opened) + 2, len(opened) + 1, 0x16]) + opened
            yield unit


def sightings():
    """The same packets, and each pair of them as the advertisement and the scan response of one device."""
    units = list(hci())
    yield from units
    yield from (first + second for first, second in zip(units, units[1:]))


def layout():
    """Layouts that people use, each in front of data that fit some of them."""
    texts = [
        b"m:2-3=0215,i:4-19,i:20-21,i:22-23,p:24-24", b"m:2-3=beac,i:4-19,i:20-21,i:22-23,p:24-24,d:25-25",
        b"s:0-1=feaa,m:2-2=00,p:3-3:-41,i:4-13,i:14-19", b"s:0-1=feaa,m:2-2=10,p:3-3:-41,i:4-21v",
        b"x,s:0-1=feaa,m:2-2=20,d:3-3,d:4-5,d:6-7,d:8-11,d:12-15", b"m:0-3=4c000215, i:4-5l,p:-:-59,d:6-12lb",
    ]
    for data in list(advertising())[::4]:
        yield from (text + b"\n" + data for text in texts[:1 if len(data) > 31 else None])


def btsnoop():
    for path in sorted((FIXTURES / "captures").glob("*.btsnoop")):
        content = path.read_bytes()
        records, offset = [], 16
        while offset + 24 <= len(content):
            end = offset + 24 + struct.unpack(">I", content[offset + 4 : offset + 8])[0]
            records.append(content[offset:end])
            offset = end
        step = max(RECORDS, len(records) // SLICES)
        for start in range(0, len(records), step):
            yield content[:16] + b"".join(records[start : start + RECORDS])
    for link, flags in ((1001, range(4)), (1002, [0]), (2001, [0, 2, 3, 4, 5, 6, 7, 18, 19])):
        header = b"btsnoop\0" + struct.pack(">II", 1, link)
        packet = bytes.fromhex("3e0c02010000010203040506009c")
        yield header + b"".join(
            struct.pack(">IIIIQ", len(packet), len(packet), flag, 0, 0x00E0_0000_0000_0000) + packet for flag in flags)


def plugins():
    for path in sorted((FIXTURES / "config").rglob("*.json")) + [FIXTURES.parent.parent / "plugins.json"]:
        yield path.read_bytes()


def outbox():
    """Records without their check value; the layout is that of EventCodec."""
    def text(value):
        return bytes([len(value)]) + value

    tail = b"\xc4\xc0\xc8\xc5" + struct.pack("<f", -60.5)
    identities = [
        (b"ibeacon", bytes(range(20))), (b"altbeacon", bytes(range(20))), (b"eddystone-uid", bytes(range(16))),
        (b"eddystone-url", b"\x03example\x07"), (b"eddystone-tlm", b""),
    ]
    for kind in range(7):
        flags = 0x0003 | (0x0200 if kind == 6 else 0)
        for name, octets in identities if kind < 3 else [(None, b"")]:
            more = 0x01FC if name else 0
            yield (
                struct.pack("<BBHqQ", 1, kind, flags | more, 1_796_072_940_123, 0x0100_C122_3344_5566)
                + bytes([1, 0, 2]) + struct.pack("<fqII", 2.5, 10_000_000_000, 7, 3) + text("Büro".encode())
                + text(b"hci0") + ((text(name) + text(octets) + tail + struct.pack("<q", 1_796_072_930_000)) if name else b"")
                + (struct.pack("<QQ", 1, 9) if kind == 6 else b""))


def words():
    """Strings of the configurations as a dictionary, and numbers with their units."""
    found = {'"//"', '"10s"', '"2.5ms"', '"64KiB"', "[]", "{}"}
    for content in plugins():
        found |= set(re.findall(r'"[\w$./:-]{1,40}"', content.decode(errors="ignore"), re.ASCII))
    return "".join('"{}"\n'.format(word.replace('"', '\\"')) for word in sorted(found))


def write(folder, target, units):
    (folder / target).mkdir(parents=True, exist_ok=True)
    for unit in units:
        (folder / target / hashlib.sha1(unit).hexdigest()).write_bytes(unit)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    for make in (hci, advertising, bindkeys, sightings, layout, btsnoop, plugins, outbox):
        write(folder, make.__name__, make())
    (folder / "plugins.dict").write_text(words())
    (folder / "layout.dict").write_text("".join(f'"{word}"\n' for word in TERMS))


if __name__ == "__main__":
    main()
