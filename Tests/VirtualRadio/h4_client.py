# SPDX-License-Identifier: Apache-2.0
"""A small H4 host, none of beacond's code: it holds that the virtual controllers behave before beacond is blamed."""

import asyncio
import dataclasses
import os
import struct
import tty

from bumble_air import FRAGMENT, first_packet

RESET, SET_EVENT_MASK, READ_COMMANDS = 0x0C03, 0x0C01, 0x1002
LE_SET_EVENT_MASK, LE_SET_SCAN_PARAMETERS, LE_SET_SCAN_ENABLE = 0x2001, 0x200B, 0x200C
LE_SET_EXTENDED_SCAN_PARAMETERS, LE_SET_EXTENDED_SCAN_ENABLE = 0x2041, 0x2042
LE_CLEAR_ACCEPT_LIST, LE_ADD_TO_ACCEPT_LIST = 0x2010, 0x2011


@dataclasses.dataclass
class Report:
    extended: bool
    event_type: int
    address: bytes
    rssi: int
    data: bytes

    @property
    def is_scan_response(self):
        return bool(self.event_type & 8) if self.extended else self.event_type == 4

    @property
    def is_incomplete(self):
        return self.extended and self.event_type & 0x60 == 0x20


class Client(asyncio.Protocol):
    """One connection to a controller."""

    def __init__(self):
        self.buffer = b""
        self.reports = []
        self.events = []
        self.answers = asyncio.Queue()
        self.is_closed = False
        self.transport = None

    @classmethod
    async def connect(cls, kind, place):
        loop = asyncio.get_running_loop()
        client = cls()
        if kind == "unix":
            client.transport, _ = await loop.create_unix_connection(lambda: client, place)
        elif kind == "tcp":
            host, _, port = place.rpartition(":")
            client.transport, _ = await loop.create_connection(lambda: client, host, int(port))
        else:
            line = os.open(place, os.O_RDWR | os.O_NOCTTY)
            tty.setraw(line)
            await loop.connect_read_pipe(lambda: client, os.fdopen(os.dup(line), "rb", 0))
            client.transport, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(line, "wb", 0))
        return client

    def close(self):
        self.transport.abort()

    def connection_lost(self, error):
        self.is_closed = True

    def data_received(self, data):
        self.buffer += data
        while packet := first_packet(self.buffer):
            self.buffer = self.buffer[len(packet):]
            self.received(packet)

    def received(self, packet):
        if packet[1] == 0x0E:
            self.answers.put_nowait((int.from_bytes(packet[4:6], "little"), packet[6:]))
        elif packet[1] == 0x0F:
            self.answers.put_nowait((int.from_bytes(packet[5:7], "little"), packet[3:4]))
        elif packet[1] == 0x3E and packet[3] == 0x02:
            length = packet[13]
            self.reports.append(Report(False, packet[5], packet[7:13], signed(packet[14 + length]),
                                       packet[14:14 + length]))
        elif packet[1] == 0x3E and packet[3] == 0x0D:
            event_type = int.from_bytes(packet[5:7], "little")
            self.reports.append(Report(True, event_type, packet[8:14], signed(packet[18]),
                                       packet[29:29 + packet[28]]))
        else:
            self.events.append(packet)

    def send(self, octets):
        self.transport.write(octets)

    async def command(self, opcode, parameters=b"", seconds=5):
        """The answer's parameters, its status first."""
        self.send(struct.pack("<BHB", 1, opcode, len(parameters)) + parameters)
        async with asyncio.timeout(seconds):
            while True:
                answered, answer = await self.answers.get()
                if answered == opcode:
                    return answer

    async def status(self, opcode, parameters=b""):
        return (await self.command(opcode, parameters))[0]

    async def reset(self):
        await self.command(RESET)
        await self.command(SET_EVENT_MASK, bytes.fromhex("ffffffffffffff3f"))
        await self.command(LE_SET_EVENT_MASK, bytes.fromhex("ffff0f0000000000"))

    async def scan(self, extended, active=False, filters=False, accept_list=False, seconds=1.0):
        """The reports of a scan from its beginning to its end, after a reset."""
        await self.reset()
        self.reports.clear()
        await self.start(extended, active, filters, accept_list)
        await asyncio.sleep(seconds)
        await self.stop(extended)
        return list(self.reports)

    async def start(self, extended, active=False, filters=False, accept_list=False):
        if extended:
            parameters = struct.pack("<BBBBHH", 0, accept_list, 1, active, 0x30, 0x30)
            statuses = [await self.status(LE_SET_EXTENDED_SCAN_PARAMETERS, parameters),
                        await self.status(LE_SET_EXTENDED_SCAN_ENABLE, struct.pack("<BBHH", 1, filters, 0, 0))]
        else:
            parameters = struct.pack("<BHHBB", active, 0x30, 0x30, 0, accept_list)
            statuses = [await self.status(LE_SET_SCAN_PARAMETERS, parameters),
                        await self.status(LE_SET_SCAN_ENABLE, bytes([1, filters]))]
        assert statuses == [0, 0], f"scan refused: {statuses}"

    async def stop(self, extended):
        await self.command(*((LE_SET_EXTENDED_SCAN_ENABLE, bytes(6)) if extended else (LE_SET_SCAN_ENABLE, bytes(2))))


def signed(octet):
    return octet - 256 if octet > 127 else octet


def joined(reports):
    """The data of extended reports, fragments put together."""
    whole, part = [], b""
    for report in reports:
        part += report.data
        if not report.is_incomplete:
            whole.append(part)
            part = b""
        else:
            assert len(report.data) == FRAGMENT
    return whole
