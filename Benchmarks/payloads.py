# SPDX-License-Identifier: Apache-2.0
"""Payloads of advertisements by format: made up from a seed, each with another identity and other values."""

import random
import struct


def structure(kind, data):
    return bytes([len(data) + 1, kind]) + data


def manufacturer(company, data):
    return structure(0xFF, struct.pack("<H", company) + data)


def service(uuid, data):
    key = struct.pack("<H", uuid)
    return structure(0x03, key) + structure(0x16, key + data)


FLAGS = structure(0x01, b"\x06")
# Beacons of one owner share their leading octets.
SITES = [bytes.fromhex(f"{site:02x}f5c3a0b7e24d1e9c38ab0d6c11e7{site:02x}") for site in range(0x1A, 0x3A)]


def site(generator):
    return SITES[generator.getrandbits(5)]


def power(generator):
    """Measured power at 1 m; once in fifty one that cannot be true."""
    return struct.pack("b", 0 if generator.random() < 0.02 else -48 - generator.getrandbits(5))


def ibeacon(generator):
    return FLAGS + manufacturer(0x004C, b"\x02\x15" + site(generator) + generator.randbytes(4) + power(generator))


def altbeacon(generator):
    identity = site(generator) + generator.randbytes(4)
    return FLAGS + manufacturer(0x0118, b"\xbe\xac" + identity + power(generator) + generator.randbytes(1))


def eddystone_uid(generator):
    identity = site(generator)[:10] + generator.randbytes(6)
    return FLAGS + service(0xFEAA, b"\x00" + power(generator) + identity + b"\x00\x00")


def eddystone_url(generator):
    text = b"site%d" % generator.getrandbits(16)
    encoded = bytes([generator.getrandbits(2)]) + text + bytes([generator.randrange(14)])
    return FLAGS + service(0xFEAA, b"\x10" + power(generator) + encoded)


def eddystone_tlm(generator):
    values = struct.pack(
        ">HhII", 2000 + generator.getrandbits(10), generator.randrange(-5120, 10240), generator.getrandbits(24),
        generator.getrandbits(28))
    return FLAGS + service(0xFEAA, b"\x20\x00" + values)


def eddystone_etlm(generator):
    return FLAGS + service(0xFEAA, b"\x20\x01" + generator.randbytes(16))


def eddystone_eid(generator):
    return FLAGS + service(0xFEAA, b"\x30" + power(generator) + generator.randbytes(8))


def exposure_notification(generator):
    return structure(0x01, b"\x1a") + service(0xFD6F, generator.randbytes(20))


def climate(generator):
    """Temperature, humidity and pressure of the Ruuvi formats."""
    return struct.pack(
        ">hHH", generator.randrange(-8000, 12000), generator.randrange(40_000), generator.randrange(40_000, 60_000))


def ruuvi_df3(generator):
    values = struct.pack(
        ">BBBHhhhH", generator.randrange(201), generator.randrange(60), generator.randrange(100),
        generator.randrange(40_000, 60_000), generator.randrange(-99, 99), generator.randrange(-99, 99), 1000,
        2000 + generator.getrandbits(10))
    return FLAGS + manufacturer(0x0499, b"\x03" + values)


def ruuvi_df5(generator):
    rest = struct.pack(">hhhHBH", generator.randrange(-99, 99), generator.randrange(-99, 99), 1000,
                       generator.getrandbits(16), generator.getrandbits(8), generator.getrandbits(16))
    return FLAGS + manufacturer(0x0499, b"\x05" + climate(generator) + rest + generator.randbytes(6))


def ruuvi_df6(generator):
    rest = struct.pack(">HH", generator.getrandbits(10), 400 + generator.getrandbits(10)) + generator.randbytes(9)
    return FLAGS + manufacturer(0x0499, b"\x06" + climate(generator) + rest)


def ruuvi_e1(generator):
    rest = struct.pack(">HHHHH", *(generator.getrandbits(10) for _ in range(5))) + generator.randbytes(23)
    return FLAGS + manufacturer(0x0499, b"\xe1" + climate(generator) + rest)


def bthome(generator):
    """A thermometer, a door, a button, or one that encrypts."""
    which = generator.random()
    packet_id = bytes([0x00, generator.getrandbits(8)])
    if which < 0.5:
        values = struct.pack("<BBBhBH", 0x01, generator.randrange(101), 0x02, generator.randrange(-2000, 4000), 0x03,
                             generator.randrange(10_000))
        return FLAGS + service(0xFCD2, b"\x40" + packet_id + values)
    if which < 0.65:
        values = struct.pack("<BBBB", 0x01, generator.randrange(101), 0x1A, generator.getrandbits(1))
        return FLAGS + service(0xFCD2, b"\x44" + packet_id + values)
    if which < 0.75:
        values = struct.pack("<BBBB", 0x3A, 0, 0x3A, generator.randrange(1, 5))
        return FLAGS + service(0xFCD2, b"\x44" + packet_id + values)
    return FLAGS + service(0xFCD2, b"\x41" + generator.randbytes(17))


def apple_continuity(generator):
    nearby = b"\x10\x05" + generator.randbytes(5)
    if generator.random() < 0.3:
        return structure(0x01, b"\x1a") + manufacturer(0x004C, b"\x0c\x0e" + generator.randbytes(14) + nearby)
    return structure(0x01, b"\x1a") + structure(0x0A, b"\x0c") + manufacturer(0x004C, nearby)


def find_my(generator):
    return manufacturer(0x004C, b"\x12\x19" + generator.randbytes(25))


def swift_pair(generator):
    return FLAGS + manufacturer(0x0006, b"\x03\x00\x80" + b"Mouse %03d" % generator.randrange(1000))


def microsoft_cdp(generator):
    return manufacturer(0x0006, b"\x01\x09\x20\x02" + generator.randbytes(23))


def tile(generator):
    return FLAGS + service(0xFEED, b"\x02\x00" + generator.randbytes(8))


def device(generator):
    """No beacon: a name, services, the data of some manufacturer."""
    name = "Gerät %04d".encode() if generator.random() < 0.1 else b"Device %04d"
    name = structure(0x09, name % generator.randrange(10_000))
    if generator.random() < 0.5:
        return FLAGS + structure(0x03, b"\x0f\x18\x0a\x18") + name
    return FLAGS + name + manufacturer(0x0157, generator.randbytes(generator.randrange(2, 10)))


# Format, its share of the mix in per cent, and who makes a payload. A floor with beacons and the people who pass.
FORMATS = [
    ("ibeacon", 28, ibeacon),
    ("altbeacon", 4, altbeacon),
    ("eddystone-uid", 6, eddystone_uid),
    ("eddystone-url", 4, eddystone_url),
    ("eddystone-tlm", 4, eddystone_tlm),
    ("eddystone-etlm", 1, eddystone_etlm),
    ("eddystone-eid", 2, eddystone_eid),
    ("exposure-notification", 1, exposure_notification),
    ("ruuvi-df3", 1, ruuvi_df3),
    ("ruuvi-df5", 6, ruuvi_df5),
    ("ruuvi-df6", 1, ruuvi_df6),
    ("ruuvi-e1", 1, ruuvi_e1),
    ("bthome-v2", 8, bthome),
    ("apple-continuity", 15, apple_continuity),
    ("find-my", 6, find_my),
    ("swift-pair", 1, swift_pair),
    ("microsoft-cdp", 4, microsoft_cdp),
    ("tile", 1, tile),
    ("none", 6, device),
]


def payloads(name, count, seed):
    """`count` payloads of one format, or of all in their shares for "mix"; `count` more of the same seed begin alike."""
    generator = random.Random(f"{name} {seed}")
    if name != "mix":
        make = next(make for known, _, make in FORMATS if known == name)
        return (make(generator) for _ in range(count))
    hundred = [make for _, share, make in FORMATS for _ in range(share)]
    return (hundred[int(generator.random() * 100)](generator) for _ in range(count))


def hci_event(payload, generator):
    """An LE Advertising Report that brings the payload; an extended one when it is too long for that."""
    address = generator.randbytes(6)
    rssi = bytes([generator.randrange(0xA0, 0xD0)])
    if len(payload) <= 31:
        body = b"\x02\x01\x03\x01" + address + bytes([len(payload)]) + payload + rssi
    else:
        front = b"\x0d\x01\x00\x00\x01" + address + b"\x01\x01\x03\x7f" + rssi
        body = front + bytes(2 + 1 + 6) + bytes([len(payload)]) + payload
    return b"\x04\x3e" + bytes([len(body)]) + body


def first_fragment(generator):
    """An extended report that says that more follows, with nothing behind it."""
    payload = generator.randbytes(20)
    front = b"\x0d\x01\x20\x00\x01" + generator.randbytes(6) + b"\x01\x01\x03\x7f\xc0"
    body = front + bytes(2 + 1 + 6) + bytes([len(payload)]) + payload
    return b"\x04\x3e" + bytes([len(body)]) + body
