#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""beacond against virtual controllers over TCP, a unix socket and a serial line, in one process with the air.

The first checks are of the air itself, with a host of our own: the controllers follow the specification where a scanner
would notice. The rest run beacond.

    radio_bumble.py --beacond .build/release/beacond
"""

import argparse
import asyncio
import collections
import contextlib
import json
import os
import signal
import struct
import tempfile
import time

import checklist

try:
    import bumble_air
    import h4_client
    from bumble_air import Advertisement, Air, ibeacon, random_address
    from h4_client import Client, joined
except ImportError as error:
    checklist.skip("Bumble", f"{error}; .ci/venv makes .cache/venv-radio, which has it")

CHECKS = []
# What a check may take before it counts as hung.
TIME_LIMIT = 60


def check(function):
    CHECKS.append(function)
    return function


# A profile of our own that asks for scan responses.
ACTIVE = {
    "profile": "asking",
    "profiles": [{"name": "asking", "window": "100ms", "interval": "100ms", "active": True}],
}


class Room:
    """What a check gets: an air, a folder, and beacond."""

    def __init__(self, beacond, folder):
        self.beacond = beacond
        self.folder = folder
        self.air = Air()
        self.stack = contextlib.AsyncExitStack()

    async def controller(self, kind="unix", name="hci0", legacy_only=False):
        """A controller and the port to it."""
        place = "127.0.0.1:0" if kind == "tcp" else os.path.join(self.folder, name)
        port = await self.air.add(name, f"{kind}:{place}", legacy_only)
        return self.air.controllers[name], port

    async def client(self, port):
        client = await Client.connect(port.kind, port.place)
        self.stack.callback(client.close)
        return client

    async def gateway(self, source, scan=None):
        gateway = Gateway(self.beacond, self.folder, source, scan or {})
        await gateway.start()
        self.stack.push_async_callback(gateway.stop)
        return gateway

    async def close(self):
        await self.stack.aclose()
        self.air.close()


class Gateway:
    """A running beacond whose every event is read as it comes."""

    def __init__(self, beacond, folder, source, scan):
        self.command = [beacond, "run", "--config", os.path.join(folder, "plugins.json")]
        configuration = {
            "gateway": {"id": "room"}, "sources": [source], "scan": scan,
            "presence": {"enter_count": 1, "report_interval": "1s"},
            "sinks": [{"kind": "stdout", "queue": 100000, "config": {"format": "json"}}],
        }
        with open(self.command[-1], "w", encoding="utf-8") as file:
            json.dump(configuration, file)
        self.seen = collections.Counter()
        self.adapter_states = []
        self.log = []
        self.readers = []

    async def start(self):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(*self.command, stdout=pipe, stderr=pipe)
        self.readers = [asyncio.create_task(self.read_events()), asyncio.create_task(self.read_log())]

    async def read_events(self):
        async for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "adapter":
                self.adapter_states.append(event["state"])
            elif "format" in event:
                self.seen[event.get("address")] += event["count"]

    async def read_log(self):
        async for line in self.process.stderr:
            self.log.append(line.decode().rstrip())

    @property
    def report_count(self):
        return sum(self.seen.values())

    async def until(self, condition, seconds, what):
        """Waits for a condition; the log is the explanation if it does not come."""
        start = time.monotonic()
        while not condition():
            if self.process.returncode is not None:
                await asyncio.gather(*self.readers)
            log = "; ".join(self.log[-3:])
            assert self.process.returncode is None, f"beacond ended with {self.process.returncode}: {log}"
            assert time.monotonic() - start < seconds, f"not within {seconds} s: {what}; the log says: {log}"
            await asyncio.sleep(0.02)
        return time.monotonic() - start

    async def stop(self):
        """Ends it and reads what it still had to say; its exit status."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(15):
                    await self.process.wait()
            except TimeoutError:
                self.process.kill()
        await asyncio.gather(*self.readers)
        return await self.process.wait()


# MARK: The air itself


@check
async def air_answers_commands(room):
    """Every command is answered, also one that is unknown and one that is too short."""
    for kind in ("unix", "tcp", "pty"):
        _, port = await room.controller(kind, name=f"answers-{kind}")
        client = await room.client(port)
        assert await client.status(h4_client.RESET) == 0
        assert await client.status(0x20F0) == 0x01, "an unknown command"
        assert await client.status(h4_client.LE_SET_SCAN_PARAMETERS, b"\1") == 0x12, "a command cut short"
        commands = await client.command(h4_client.READ_COMMANDS)
        assert commands[1 + 37] & 0x60 == 0x60, "extended scanning is in the bitmap"
    return "unix, tcp and pty"


@check
async def air_keeps_commands_apart(room):
    """Reports follow the commands, and the other kind is refused until a reset."""
    _, port = await room.controller()
    client = await room.client(port)
    room.air.beacons(10)
    legacy = await client.scan(extended=False)
    assert legacy and not any(report.extended for report in legacy)
    assert await client.status(h4_client.LE_SET_EXTENDED_SCAN_ENABLE, bytes(6)) == 0x0C
    extended = await client.scan(extended=True)
    assert extended and all(report.extended for report in extended)
    assert await client.status(h4_client.LE_SET_SCAN_ENABLE, bytes(2)) == 0x0C
    _, port = await room.controller(name="old", legacy_only=True)
    client = await room.client(port)
    assert await client.status(h4_client.LE_SET_EXTENDED_SCAN_ENABLE, bytes(6)) == 0x01
    commands = await client.command(h4_client.READ_COMMANDS)
    assert commands[1 + 37] & 0x60 == 0
    assert await client.scan(extended=False)


@check
async def air_scans_as_told(room):
    """Scan responses to an active scan alone; filters, masks, disable and reset are honoured; strengths are kept."""
    _, port = await room.controller()
    client = await room.client(port)
    room.air.beacons(12)
    for extended in (False, True):
        passive = await client.scan(extended)
        assert len({report.address for report in passive}) == 12
        assert not any(report.is_scan_response for report in passive)
        for report in passive:
            assert report.rssi == -50 - report.address[0] % 40
        active = await client.scan(extended, active=True)
        answering = {report.address[0] for report in active if report.is_scan_response}
        assert answering == {index for index in range(12) if index % 3}, answering
        once = await client.scan(extended, filters=True)
        assert len(once) == 12, "the duplicate filter lets each through once"
        await client.reset()
        await client.command(h4_client.LE_CLEAR_ACCEPT_LIST)
        await client.command(h4_client.LE_ADD_TO_ACCEPT_LIST, bytes([1]) + bytes(random_address(5)))
        client.reports.clear()
        await client.start(extended, accept_list=True)
        await asyncio.sleep(0.5)
        assert {report.address[0] for report in client.reports} == {5}
        await client.command(h4_client.LE_SET_EVENT_MASK, bytes(8))
        client.reports.clear()
        await asyncio.sleep(0.3)
        assert not client.reports, "masked"
        await client.reset()
        await client.start(extended)
        await client.command(h4_client.RESET)
        client.reports.clear()
        await asyncio.sleep(0.3)
        assert not client.reports, "a reset ends the scan"


@check
async def air_sends_long_data(room):
    """Extended data that no event can hold comes in fragments, and never to a legacy scan."""
    _, port = await room.controller()
    client = await room.client(port)
    data = bytes([254, 0xFF]) + bytes(253) + ibeacon(1, 1)
    room.air.advertise(Advertisement(random_address(1), data, extended=True, sid=3), 0.1)
    assert not await client.scan(extended=False)
    reports = await client.scan(extended=True)
    assert set(joined(reports)) == {data} and len(joined(reports)) >= 5


@check
async def air_carries_hosts(room):
    """What one host advertises another hears, at the interval that was asked, legacy and extended."""
    _, port = await room.controller()
    scanner = await room.client(port)
    advertiser_controller, port = await room.controller(name="hci1")
    advertiser = await room.client(port)
    data = ibeacon(7, 7)
    await advertiser.reset()
    await advertiser.command(0x2006, struct.pack("<HHBBB6sBB", 160, 160, 3, 0, 0, bytes(6), 7, 0))
    await advertiser.command(0x2008, bytes([len(data)]) + data.ljust(31, b"\0"))
    assert await advertiser.status(0x200A, b"\1") == 0 and advertiser_controller.state["advertising"]
    heard = await scanner.scan(extended=False, seconds=2)
    assert {(report.event_type, report.data) for report in heard} == {(3, data)}
    assert 14 <= len(heard) <= 21, f"{len(heard)} in 2 s at 100 ms"
    await advertiser.reset()
    for properties, expected in ((0x00, 0x00), (0x10, 0x10)):
        interval = (160).to_bytes(3, "little")
        parameters = struct.pack("<BH", 0, properties) + interval * 2 + struct.pack(
            "<BBB6sBbBBBBB", 7, 0, 0, bytes(6), 0, 0, 1, 0, 1, 0, 0)
        assert await advertiser.status(0x2036, parameters) == 0
        assert await advertiser.status(0x2037, bytes([0, 3, 1, len(data)]) + data) == 0
        assert await advertiser.status(0x2039, bytes([1, 1, 0, 0, 0, 0])) == 0
        heard = await scanner.scan(extended=True)
        assert {(report.event_type, report.data) for report in heard} == {(expected, data)}, heard[:1]
        assert await advertiser.status(0x2039, bytes([0, 1, 0, 0, 0, 0])) == 0


@check
async def air_survives_hosts(room):
    """A second host is turned away; a host that left half a packet does not disturb the next."""
    for kind in ("unix", "tcp"):
        _, port = await room.controller(kind, name=f"survives-{kind}")
        first = await room.client(port)
        assert await first.status(h4_client.RESET) == 0
        second = await room.client(port)
        await asyncio.sleep(0.2)
        assert second.is_closed and not first.is_closed
        first.send(b"\x01\x03")
        await asyncio.sleep(0.1)
        first.close()
        await asyncio.sleep(0.1)
        third = await room.client(port)
        assert await third.status(h4_client.RESET) == 0


# MARK: beacond


async def told(room, gateway, controller):
    """Holds that every report which the controller sent was received. Events tell the count of a beacon's reports once
    a second, so each advertises once more after that."""
    room.air.quiet()
    await asyncio.sleep(1.5)
    room.air.once()
    sent = controller.report_count
    await gateway.until(lambda: gateway.report_count >= sent, 10, f"{sent} reports sent and received")
    assert gateway.report_count == sent, f"{sent} reports sent, {gateway.report_count} received"


async def fifty(room, kind, source):
    controller, port = await room.controller(kind)
    room.air.beacons(50)
    gateway = await room.gateway(source(port))
    took = await gateway.until(lambda: len(gateway.seen) == 50, 15, "50 beacons seen")
    await asyncio.sleep(1)
    await told(room, gateway, controller)
    assert await gateway.stop() == 0
    if kind != "pty":
        assert not controller.state["scanning"], "the scan is disabled at the end"
    return f"all seen {took:.1f} s after the start; {gateway.report_count} reports sent and received"


@check
async def fifty_over_unix(room):
    return await fifty(room, "unix", lambda port: f"unix:{port.place}")


@check
async def fifty_over_tcp(room):
    return await fifty(room, "tcp", lambda port: f"tcp:{port.place}")


@check
async def fifty_over_serial(room):
    return await fifty(room, "pty", lambda port: f"serial:{port.place}?baud=115200")


@check
async def thousand(room):
    """1,000 beacons at 500 ms: some 2,000 reports a second, each of them received."""
    controller, port = await room.controller()
    room.air.beacons(1000, interval=0.5)
    gateway = await room.gateway(f"unix:{port.place}")
    await gateway.until(lambda: len(gateway.seen) == 1000, 30, "1,000 beacons seen")
    start, before = time.monotonic(), controller.report_count
    await asyncio.sleep(3)
    rate = (controller.report_count - before) / (time.monotonic() - start)
    await told(room, gateway, controller)
    return f"{controller.report_count} reports sent and received, {rate:.0f}/s"


@check
async def legacy_only_controller(room):
    controller, port = await room.controller(legacy_only=True)
    room.air.beacons(50)
    gateway = await room.gateway(f"unix:{port.place}")
    await gateway.until(lambda: len(gateway.seen) == 50, 15, "50 beacons seen")
    assert h4_client.LE_SET_SCAN_ENABLE in controller.opcodes
    assert not set(controller.opcodes) & bumble_air.EXTENDED_SCAN_COMMANDS


@check
async def passive_scan(room):
    """Passive by default, with the extended commands where there are such."""
    controller, port = await room.controller()
    room.air.beacons(12)
    gateway = await room.gateway(f"unix:{port.place}")
    await gateway.until(lambda: len(gateway.seen) == 12, 15, "12 beacons seen")
    assert controller.state["extended"] and not controller.state["active"]
    assert controller.scan_response_count == 0
    assert h4_client.LE_SET_SCAN_ENABLE not in controller.opcodes


@check
async def active_scan(room):
    controller, port = await room.controller()
    room.air.beacons(12)
    gateway = await room.gateway(f"unix:{port.place}", scan=ACTIVE)
    await gateway.until(lambda: len(gateway.seen) == 12, 15, "12 beacons seen")
    await gateway.until(lambda: controller.scan_response_count > 0, 5, "a scan response")


@check
async def extended_beacons(room):
    """An iBeacon at the end of extended data that comes in two fragments, and one on the Coded PHY."""
    _, port = await room.controller()
    far = bytes([199, 0xFF]) + bytes(198) + ibeacon(9, 1)
    room.air.advertise(Advertisement(random_address(1), bytes([3, 0xFF, 0, 0]) * 14 + far, extended=True, sid=1), 0.1)
    room.air.advertise(Advertisement(random_address(2), ibeacon(9, 2), extended=True, phy=bumble_air.PHY_CODED), 0.1)
    gateway = await room.gateway(f"unix:{port.place}")
    await gateway.until(lambda: len(gateway.seen) == 2, 15, "both beacons seen")


@check
async def reconnect(room):
    """The controller closes, is away for two seconds, and is scanned again."""
    controller, port = await room.controller()
    room.air.beacons(10)
    gateway = await room.gateway(f"unix:{port.place}")
    await gateway.until(lambda: len(gateway.seen) == 10, 15, "10 beacons seen")
    port.close()
    await asyncio.sleep(2)
    assert gateway.process.returncode is None, f"beacond ended: {gateway.log[-3:]}"
    await port.open()
    gateway.seen.clear()
    took = await gateway.until(lambda: controller.le_scan_enable and len(gateway.seen) == 10, 30, "scanning again")
    return f"scanning again {took:.1f} s after the controller was back"


async def run(options):
    report = checklist.Checklist(options)
    for function in CHECKS:
        name = function.__name__
        if not report.is_wanted(name):
            continue
        with tempfile.TemporaryDirectory(prefix="radio-") as folder:
            room = Room(os.path.abspath(options.beacond), folder)
            try:
                async with asyncio.timeout(TIME_LIMIT):
                    detail = await function(room)
                report.say("ok", name, detail or "")
            except TimeoutError:
                report.say("FAILED", name, f"nothing for {TIME_LIMIT} s, or no answer to a command")
            except AssertionError as error:
                report.say("FAILED", name, f"line {error.__traceback__.tb_next.tb_lineno}: {error}")
            finally:
                await room.close()
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    checklist.add_options(parser)
    checklist.run(run(parser.parse_args()))
