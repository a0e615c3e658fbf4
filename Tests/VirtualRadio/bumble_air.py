#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The virtual air: controllers that hosts reach over TCP, a unix socket or a pty, and beacons that they hear.

The controllers are Bumble's, corrected where a scanner would notice: docs/testing-radio.md lists the corrections. Every
advertisement is timed with the random delay of the Core Specification; windows, channels and collisions are not
modelled, so nothing here says anything about duty cycles.

    bumble_air.py --beacons 50 --interval 100 tcp:127.0.0.1:9001 unix:/tmp/hci pty:/tmp/tty
"""

import argparse
import asyncio
import dataclasses
import json
import logging
import os
import random
import struct
import tty

from bumble import controller as bumble
from bumble import hci, ll

# The PDU types of legacy advertising, numbered as LE Advertising Report numbers them.
ADV_IND, ADV_DIRECT_IND, ADV_SCAN_IND, ADV_NONCONN_IND, SCAN_RSP = range(5)
# The same in the Event_Type of LE Extended Advertising Report.
EXTENDED_TYPE = {ADV_IND: 0x13, ADV_DIRECT_IND: 0x15, ADV_SCAN_IND: 0x12, ADV_NONCONN_IND: 0x10}
# Octets of advertising data that fit into one extended report.
FRAGMENT = 229
RSSI_UNKNOWN = 127
PHY_1M, PHY_CODED = 1, 3
IBEACON_UUID = bytes.fromhex("6b1f0c9e52d84c33a4077d20e95b1c84")


def ibeacon(major, minor, measured_power=-59):
    """The advertising data of an iBeacon with the flags in front, 30 octets."""
    return bytes.fromhex("0201061aff4c000215") + IBEACON_UUID + struct.pack(">HHb", major, minor, measured_power)


@dataclasses.dataclass
class Advertisement:
    """What one advertising event puts on the air."""

    address: hci.Address
    data: bytes
    pdu: int = ADV_NONCONN_IND
    scan_response: bytes = b""
    rssi: int = -60
    # Sent with extended PDUs: heard only by who scans with the extended commands.
    extended: bool = False
    phy: int = PHY_1M
    sid: int = 0

    @property
    def answers_scans(self):
        return self.pdu in (ADV_IND, ADV_SCAN_IND) and bool(self.scan_response)


def beacon(index):
    """A beacon whose place in the crowd decides its kind: a third each nonconnectable, connectable and scannable."""
    pdu = (ADV_NONCONN_IND, ADV_IND, ADV_SCAN_IND)[index % 3]
    return Advertisement(
        address=random_address(index), data=ibeacon(index >> 8, index & 0xFF), pdu=pdu,
        scan_response=b"" if pdu == ADV_NONCONN_IND else b"\x07\x09B" + b"%05d" % index, rssi=-50 - index % 40)


def random_address(index):
    return hci.Address(f"C2:00:00:00:{index >> 8:02X}:{index & 0xFF:02X}", hci.Address.RANDOM_DEVICE_ADDRESS)


class LegacyAdvertiser(bumble.LegacyAdvertiser):
    """Bumble's takes the interval for milliseconds and sends connectable advertisements only."""

    def _on_timer_fired(self):
        self.send_advertising_data()
        interval = max(self.advertising_interval_min, 0x20) * 0.000625
        self.timer_handle = asyncio.get_running_loop().call_later(with_delay(interval), self._on_timer_fired)

    def send_advertising_data(self):
        if self.enabled:
            # LE Set Advertising Parameters numbers the types otherwise than the reports do.
            pdu = {0: ADV_IND, 2: ADV_SCAN_IND, 3: ADV_NONCONN_IND}.get(int(self.advertising_type), ADV_DIRECT_IND)
            self.controller.air.spread(
                Advertisement(self.address, bytes(self.advertising_data), pdu, bytes(self.scan_response_data)),
                sender=self.controller)


class AdvertisingSet(bumble.AdvertisingSet):
    """Bumble's sends extended PDUs also when legacy ones were asked for."""

    def send_extended_advertising_data(self):
        properties = int(self.parameters.advertising_event_properties)
        legacy = properties & 0x10
        pdu = ADV_IND if properties & 1 else ADV_SCAN_IND if properties & 2 else ADV_NONCONN_IND
        self.controller.air.spread(
            Advertisement(
                self.address, bytes(self.data), pdu, bytes(self.scan_response_data), extended=not legacy,
                phy=int(self.parameters.primary_advertising_phy), sid=self.parameters.advertising_sid),
            sender=self.controller)


def with_delay(interval):
    """An advertising interval with its advDelay of 0 to 10 ms."""
    return interval + random.uniform(0, 0.010)


def status(code):
    return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode(code))


SUCCESS, UNKNOWN_COMMAND, DISALLOWED, INVALID_PARAMETERS, UNKNOWN_SET = 0x00, 0x01, 0x0C, 0x12, 0x42
# Commands that Bumble answers and leaves out of its bitmap, by which a host chooses.
EXTENDED_SCAN_COMMANDS = {
    hci.HCI_LE_SET_EXTENDED_SCAN_PARAMETERS_COMMAND,
    hci.HCI_LE_SET_EXTENDED_SCAN_ENABLE_COMMAND,
}
EXTENDED_ADVERTISING_COMMANDS = {
    hci.HCI_LE_SET_ADVERTISING_SET_RANDOM_ADDRESS_COMMAND,
    hci.HCI_LE_SET_EXTENDED_ADVERTISING_PARAMETERS_COMMAND,
    hci.HCI_LE_SET_EXTENDED_ADVERTISING_DATA_COMMAND,
    hci.HCI_LE_SET_EXTENDED_SCAN_RESPONSE_DATA_COMMAND,
    hci.HCI_LE_SET_EXTENDED_ADVERTISING_ENABLE_COMMAND,
    hci.HCI_LE_READ_MAXIMUM_ADVERTISING_DATA_LENGTH_COMMAND,
    hci.HCI_LE_READ_NUMBER_OF_SUPPORTED_ADVERTISING_SETS_COMMAND,
    hci.HCI_LE_REMOVE_ADVERTISING_SET_COMMAND,
    hci.HCI_LE_CLEAR_ADVERTISING_SETS_COMMAND,
}
EXTENDED_COMMANDS = EXTENDED_SCAN_COMMANDS | EXTENDED_ADVERTISING_COMMANDS
LEGACY_COMMANDS = {
    hci.HCI_LE_SET_ADVERTISING_PARAMETERS_COMMAND,
    hci.HCI_LE_SET_ADVERTISING_DATA_COMMAND,
    hci.HCI_LE_SET_SCAN_RESPONSE_DATA_COMMAND,
    hci.HCI_LE_SET_ADVERTISING_ENABLE_COMMAND,
    hci.HCI_LE_SET_SCAN_PARAMETERS_COMMAND,
    hci.HCI_LE_SET_SCAN_ENABLE_COMMAND,
}


class Controller(bumble.Controller):
    """Bumble's controller, its scanning as the Core Specification has it."""

    def __init__(self, name, air, address, legacy_only=False):
        super().__init__(name, link=air.link, public_address=address)
        self.air = air
        self.legacy_only = legacy_only
        if legacy_only:
            self.le_features &= ~hci.LeFeatureMask.LE_EXTENDED_ADVERTISING & ~hci.LeFeatureMask.LE_CODED_PHY
        else:
            self.supported_commands = set(self.supported_commands) | EXTENDED_COMMANDS
        self.renew()

    def renew(self):
        """The state of a new controller."""
        # Faults that a check switches on: no answer to anything, or answers but no reports.
        self.hangs = self.is_deaf = False
        # What checks ask for: reports given to the host, scan responses among them, scans disabled by the host, its opcodes.
        self.report_count = self.scan_response_count = self.disable_count = 0
        self.opcodes = []
        self.forget()

    def forget(self):
        """The state after HCI Reset."""
        self.le_scan_enable = self.filter_duplicates = False
        self.le_scan_type = self.le_scanning_filter_policy = 0
        self.scanned_phys = {PHY_1M}
        self.event_mask, self.le_event_mask = 0x1FFFFFFFFFFF, 0x1F
        self.accept_list, self.reported = set(), set()
        # Whether the extended commands are in use; neither kind before the first of them.
        self.uses_extended = None
        if self.le_legacy_advertiser:
            self.le_legacy_advertiser.stop()
        self.le_legacy_advertiser = LegacyAdvertiser(self)
        for advertising_set in self.advertising_sets.values():
            advertising_set.stop()
        self.advertising_sets.clear()

    # MARK: Hearing

    def hear(self, heard):
        """Reports an advertisement if the scan, the filters and the masks let it through."""
        if not self.le_scan_enable or self.is_deaf or self.hangs:
            return
        if heard.extended and not self.uses_extended or heard.phy not in self.scanned_phys:
            return
        if self.le_scanning_filter_policy & 1 and self.listed(heard.address) not in self.accept_list:
            return
        if not self.le_event_mask >> (12 if self.uses_extended else 1) & 1 or not self.event_mask >> 61 & 1:
            return
        self.report(heard, heard.pdu, heard.data)
        if self.le_scan_type == 1 and heard.answers_scans:
            self.report(heard, SCAN_RSP, heard.scan_response)

    @staticmethod
    def listed(address):
        return int(address.address_type), bytes(address)

    def report(self, heard, pdu, data):
        if self.filter_duplicates:
            key = (self.listed(heard.address), pdu, heard.sid)
            if key in self.reported:
                return
            self.reported.add(key)
        self.report_count += 1
        self.scan_response_count += pdu == SCAN_RSP
        address = struct.pack("<B6s", heard.address.address_type, bytes(heard.address))
        if not self.uses_extended:
            self.send_event(0x3E, struct.pack("<BBB", 0x02, 1, pdu) + address
                            + bytes([len(data)]) + data + struct.pack("b", heard.rssi))
            return
        kind = EXTENDED_TYPE[heard.pdu]
        if pdu == SCAN_RSP:
            kind |= 0x08
        if heard.extended:
            kind &= ~0x10
        fragments = [data[start:start + FRAGMENT] for start in range(0, len(data), FRAGMENT)] or [b""]
        for number, fragment in enumerate(fragments):
            more = 0x20 if number < len(fragments) - 1 else 0
            self.send_event(0x3E, struct.pack("<BBH", 0x0D, 1, kind | more) + address + struct.pack(
                "<BBBbbHB6sB", heard.phy, heard.phy if heard.extended else 0, heard.sid if heard.extended else 0xFF,
                RSSI_UNKNOWN, heard.rssi, 0, 0, bytes(6), len(fragment)) + fragment)

    def send_event(self, code, parameters):
        if self.host and not self.hangs:
            self.host.on_packet(bytes([4, code, len(parameters)]) + parameters)

    # MARK: Commands

    def on_packet(self, packet):
        """A command that Bumble cannot read is answered: a host would wait for ever."""
        if self.hangs:
            return
        if packet[0] != 1:
            return super().on_packet(packet)
        opcode = int.from_bytes(packet[1:3], "little")
        self.opcodes.append(opcode)
        handler = f"on_{hci.HCI_Command.command_name(opcode).lower()}"
        if not hasattr(self, handler) or self.legacy_only and opcode in EXTENDED_COMMANDS:
            return self.send_event(0x0F, struct.pack("<BBH", UNKNOWN_COMMAND, 1, opcode))
        if opcode in LEGACY_COMMANDS | EXTENDED_COMMANDS:
            is_extended = opcode in EXTENDED_COMMANDS
            if self.uses_extended not in (None, is_extended):
                return self.send_event(0x0E, struct.pack("<BHB", 1, opcode, DISALLOWED))
            self.uses_extended = is_extended
        try:
            command = hci.HCI_Packet.from_bytes(packet)
        except Exception:  # Whatever Bumble trips over, the host sent nonsense.
            return self.send_event(0x0E, struct.pack("<BHB", 1, opcode, INVALID_PARAMETERS))
        return self.on_hci_packet(command)

    def on_hci_reset_command(self, command):
        self.forget()
        return super().on_hci_reset_command(command)

    def on_hci_set_event_mask_command(self, command):
        self.event_mask = int.from_bytes(command.event_mask, "little")
        return status(SUCCESS)

    def on_hci_le_set_scan_enable_command(self, command):
        self.reported.clear()
        self.disable_count += self.le_scan_enable and not command.le_scan_enable
        return super().on_hci_le_set_scan_enable_command(command)

    def on_hci_le_set_extended_scan_enable_command(self, command):
        self.reported.clear()
        self.disable_count += self.le_scan_enable and not command.enable
        return super().on_hci_le_set_extended_scan_enable_command(command)

    def on_hci_le_set_extended_scan_parameters_command(self, command):
        if self.le_scan_enable:
            return status(DISALLOWED)
        self.scanned_phys = {phy for bit, phy in ((1, PHY_1M), (4, PHY_CODED)) if int(command.scanning_phys) & bit}
        self.le_scan_type = int(command.scan_types[0])
        return super().on_hci_le_set_extended_scan_parameters_command(command)

    def on_hci_le_clear_filter_accept_list_command(self, command):
        self.accept_list.clear()
        return status(SUCCESS)

    def on_hci_le_add_device_to_filter_accept_list_command(self, command):
        self.accept_list.add((int(command.address_type), bytes(command.address)))
        return status(SUCCESS)

    def on_hci_le_set_advertising_set_random_address_command(self, command):
        if command.advertising_handle not in self.advertising_sets:
            return status(UNKNOWN_SET)
        return super().on_hci_le_set_advertising_set_random_address_command(command)

    def on_hci_le_set_extended_advertising_parameters_command(self, command):
        handle = command.advertising_handle
        self.advertising_sets.setdefault(handle, AdvertisingSet(controller=self, handle=handle))
        return super().on_hci_le_set_extended_advertising_parameters_command(command)

    # MARK: What checks ask and do

    @property
    def state(self):
        return {
            "scanning": self.le_scan_enable, "extended": bool(self.uses_extended), "active": self.le_scan_type == 1,
            "reports": self.report_count, "scan_responses": self.scan_response_count,
            "disables": self.disable_count,
            "advertising": self.le_legacy_advertiser.enabled or any(s.enabled for s in self.advertising_sets.values()),
        }

    def hardware_error(self, code=0x42):
        """The firmware crashes: the event, and nothing is left of what was set."""
        self.forget()
        self.send_event(0x10, bytes([code]))


class Port:
    """One controller's side of an H4 byte stream. One host at a time: a second is turned away."""

    def __init__(self, controller, name):
        self.controller = controller
        # unix:PATH, tcp:HOST:PORT or pty:PATH, which becomes a link to the terminal.
        self.kind, _, self.place = name.partition(":")
        self.server = self.transport = None
        self.descriptors = ()

    async def open(self):
        loop = asyncio.get_running_loop()
        if self.kind == "unix":
            self.server = await loop.create_unix_server(lambda: Connection(self), self.place)
        elif self.kind == "tcp":
            host, _, port = self.place.rpartition(":")
            self.server = await loop.create_server(lambda: Connection(self), host, int(port))
            # Port 0 asks for a free one; whoever opens this port again gets the same.
            self.place = f"{host}:{self.server.sockets[0].getsockname()[1]}"
        elif self.kind == "pty":
            near, far = os.openpty()
            tty.setraw(far)
            if os.path.islink(self.place):
                os.unlink(self.place)
            os.symlink(os.ttyname(far), self.place)
            # The far end stays open here, so that a host that closes it does not end the terminal.
            self.descriptors = (near, far)
            connection = Connection(self)
            self.transport, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(os.dup(near), "wb", 0))
            await loop.connect_read_pipe(lambda: connection, os.fdopen(near, "rb", 0))
            self.controller.host = self
        else:
            raise ValueError(f"{self.kind}: expected unix, tcp or pty")

    @property
    def is_in_use(self):
        return self.transport is not None

    def close(self):
        """The controller is gone: the connection closes, and no new one is taken until the port is opened again."""
        if self.server:
            self.server.close()
            self.server = None
        if self.transport:
            self.transport.abort()
            self.transport = None
        self.controller.host = None
        self.controller.forget()
        if self.kind == "unix" and os.path.exists(self.place):
            os.unlink(self.place)

    def on_packet(self, packet):
        """What Bumble calls to hand the host a packet."""
        if self.transport:
            self.transport.write(packet)


class Connection(asyncio.Protocol):
    """Cuts what a host sends into packets. A new connection begins in step, whatever the last one left unfinished."""

    def __init__(self, port):
        self.port = port
        self.buffer = b""
        self.is_refused = False

    def connection_made(self, transport):
        if self.port.kind == "pty":
            return
        if self.port.is_in_use:
            self.is_refused = True
            return transport.abort()
        self.port.transport = transport
        self.port.controller.host = self.port

    def connection_lost(self, error):
        if not self.is_refused and self.port.kind != "pty":
            self.port.transport = None
            self.port.controller.host = None

    def data_received(self, data):
        self.buffer += data
        while packet := first_packet(self.buffer):
            self.buffer = self.buffer[len(packet):]
            self.port.controller.on_packet(packet)


def first_packet(buffer):
    """The first whole H4 packet of a buffer, or None."""
    headers = {1: (4, 3, "<B"), 2: (5, 3, "<H"), 4: (3, 2, "<B")}
    if not buffer:
        return None
    if buffer[0] not in headers:
        raise ValueError(f"H4 out of step: no packet begins with {buffer[0]:#04x}")
    length, offset, layout = headers[buffer[0]]
    if len(buffer) < length:
        return None
    length += struct.unpack_from(layout, buffer, offset)[0]
    return buffer[:length] if len(buffer) >= length else None


class Air:
    """Controllers and beacons in reach of each other."""

    def __init__(self):
        # Bumble wants a link for connections; advertisements go through `spread`.
        self.link = bumble.bumble_link.LocalLink()
        self.controllers = {}
        self.ports = {}
        # What is or was repeated, and the timer of each.
        self.advertised = []
        self.timers = {}

    async def add(self, name, port, legacy_only=False):
        """A controller that listens at a port; the port, with its place filled in."""
        address = f"00:1B:DC:00:00:{len(self.controllers) + 1:02X}"
        self.controllers[name] = Controller(name, self, address, legacy_only)
        self.ports[name] = Port(self.controllers[name], port)
        await self.ports[name].open()
        return self.ports[name]

    def spread(self, advertisement, sender=None):
        for controller in self.controllers.values():
            if controller is not sender:
                controller.hear(advertisement)

    def advertise(self, advertisement, interval):
        """Repeats an advertisement every `interval` seconds until it shall be quiet."""
        key = len(self.advertised)
        self.advertised.append(advertisement)
        loop = asyncio.get_running_loop()

        def tick():
            self.timers[key] = loop.call_later(with_delay(interval), tick)
            self.spread(advertisement)

        self.timers[key] = loop.call_later(random.uniform(0, interval), tick)

    def beacons(self, count, interval=0.1):
        for index in range(count):
            self.advertise(beacon(index), interval)

    def quiet(self):
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()

    def once(self):
        """Everybody advertises once more. A host that reports a beacon with the count of its reports, no more often
        than once a second, has reported them all after that."""
        for advertisement in self.advertised:
            self.spread(advertisement)

    def clear(self):
        self.quiet()
        self.advertised.clear()

    def close(self):
        self.clear()
        for port in self.ports.values():
            port.close()

    def command(self, line):
        """One line of the control port; the line that answers it."""
        verb, *words = line.split()
        try:
            if verb == "beacons":
                self.clear()
                self.beacons(int(words[0]), int(words[1]) / 1000)
            elif verb == "quiet":
                self.quiet()
            elif verb == "once":
                self.once()
            elif verb == "reset":
                self.clear()
                for controller in self.controllers.values():
                    controller.renew()
            elif verb == "state":
                return json.dumps(self.controllers[words[0]].state)
            elif verb in ("hang", "deafen"):
                fault = "hangs" if verb == "hang" else "is_deaf"
                setattr(self.controllers[words[0]], fault, words[1] == "on")
            elif verb == "hardware_error":
                self.controllers[words[0]].hardware_error()
            else:
                return f"error: no verb {verb}"
        except (IndexError, KeyError, ValueError) as error:
            return f"error: {line}: {error!r}"
        return "ok"

    async def serve_control(self, path):
        """Takes commands, one a line, from whoever connects."""

        async def serve(reader, writer):
            while line := await reader.readline():
                writer.write(self.command(line.decode()).encode() + b"\n")
                await writer.drain()

        return await asyncio.start_unix_server(serve, path)


# Bumble logs what a host sends wrong; here hosts do so on purpose.
logging.getLogger("bumble").setLevel(logging.CRITICAL)


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ports", nargs="+", help="unix:PATH, tcp:HOST:PORT or pty:PATH, one controller each")
    parser.add_argument("--beacons", type=int, default=50)
    parser.add_argument("--interval", type=float, default=100, help="milliseconds")
    parser.add_argument("--legacy-only", action="store_true")
    options = parser.parse_args()
    air = Air()
    for number, port in enumerate(options.ports):
        opened = await air.add(f"hci{number}", port, options.legacy_only)
        print(f"{opened.kind}:{opened.place}", flush=True)
    air.beacons(options.beacons, options.interval / 1000)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
