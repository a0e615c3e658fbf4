#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives HCI packets to what Python has for advertisements, as the program around each of these libraries does.

Runs in the environment that .ci/venv bench makes. From a capture as fast as it goes, or live from the socket of
programs/controller.c, where the time is over when the other side says nothing for two seconds.
"""

import argparse
import asyncio
import logging
import selectors
import socket
import struct
import sys
import types

FILE_HEADER, RECORD_HEADER = 16, 24


def read(_):
    """Takes each packet and does nothing: what the loop around the others costs."""
    return lambda packet: None


def bleparser(_):
    from bleparser import BleParser

    parser = BleParser(discovery=True)

    def take(packet):
        try:
            parser.parse_raw_data(packet)
        except struct.error:
            # It takes many an Eddystone-UID for a RuuviTag, and fails.
            pass

    return take


def aioblescan(_):
    from aioblescan import HCI_Event
    from aioblescan.plugins import EddyStone

    def take(packet):
        event = HCI_Event()
        event.decode(packet)
        EddyStone().decode(event)

    return take


def beacontools(_):
    # The real one needs a radio.
    sys.modules["beacontools.backend"] = types.ModuleType("beacontools.backend")
    from beacontools.scanner import HCIVersion
    from beacontools.scanner import Monitor

    monitor = Monitor(lambda *_: None, 0, None, None, {})
    # It goes by the version of the controller, and a capture has both kinds of report.
    versions = {0x02: HCIVersion.BT_CORE_SPEC_4_2, 0x0D: HCIVersion.BT_CORE_SPEC_5_0}

    def take(packet):
        monitor.hci_version = versions[packet[3]]
        monitor.process_packet(packet)

    return take


def report(packet):
    """Address as it is sent, its type, RSSI and data of the one report of a packet."""
    if packet[3] == 0x02:
        end = 14 + packet[13]
        return packet[7:13], packet[6], packet[end], packet[14:end]
    return packet[8:14], packet[7], packet[18], packet[29 : 29 + packet[28]]


def habluetooth(_):
    """As the management socket brings it: its Device Found events into its manager, which parses and remembers."""
    from bleak_retry_connector import BleakSlotManager
    from bluetooth_adapters import BluetoothAdapters
    from habluetooth import BaseHaScanner, BluetoothManager, set_manager
    from habluetooth.channels.bluez import BluetoothMGMTProtocol

    class NoAdapters(BluetoothAdapters):
        async def refresh(self):
            """There is none to look for."""

        @property
        def adapters(self):
            return {}

        @property
        def default_adapter(self):
            return "hci0"

    class Manager(BluetoothManager):
        def _discover_service_info(self, service_info):
            """Nobody waits for devices here."""

    class Scanner(BaseHaScanner):
        """A scanner that is told what it hears."""

    asyncio.set_event_loop(asyncio.new_event_loop())
    loop = asyncio.get_event_loop()

    manager = Manager(NoAdapters(), BleakSlotManager())
    set_manager(manager)
    manager._loop = loop
    scanner = Scanner("00:00:00:00:00:01", "hci0", connectable=True)
    future = loop.create_future()
    protocol = BluetoothMGMTProtocol(future, {0: scanner}, lambda: None, lambda: False, None, {})

    def take(packet):
        address, kind, rssi, data = report(packet)
        body = address + bytes([kind + 1, rssi, 0, 0, 0, 0]) + struct.pack("<H", len(data)) + data
        protocol.data_received(struct.pack("<HHH", 0x0012, 0, len(body)) + body)

    return take


def theengsgateway(port):
    """Its callback for an advertisement as bleak gives it, up to and with the publish; the parsing of the data, which
    bluetoothd does for it, is done by bluetooth-data-tools here."""
    from bleak.backends.device import BLEDevice
    from bleak.backends.scanner import AdvertisementData
    from bluetooth_data_tools import parse_advertisement_data_bytes
    from TheengsGateway.ble_gateway import Gateway
    from TheengsGateway.config import DEFAULT_CONFIG

    class Nowhere:
        def publish(self, *_):
            return (0, 0)

    gateway = Gateway(dict(DEFAULT_CONFIG, discovery=False, host="127.0.0.1", port=port or 0, blacklist=[], whitelist=[]))
    if port:
        gateway.connect_mqtt()
        gateway.client.loop_start()
    else:
        gateway.client = Nowhere()

    def take(packet):
        address, _, rssi, data = report(packet)
        name, uuids, service_data, manufacturer_data, power = parse_advertisement_data_bytes(data)
        text = ":".join(f"{octet:02X}" for octet in reversed(address))
        advertisement = AdvertisementData(
            local_name=name, manufacturer_data=manufacturer_data, service_data=service_data, service_uuids=uuids,
            tx_power=power, rssi=rssi - 256 if rssi > 127 else rssi, platform_data=())
        gateway.detection_callback(BLEDevice(text, name, None), advertisement)

    return take


PEERS = [read, bleparser, aioblescan, beacontools, habluetooth, theengsgateway]


def from_capture(path, maximum, take):
    with open(path, "rb") as file:
        content = file.read()
    offset, count = FILE_HEADER, 0
    while offset < len(content) and count < maximum:
        end = offset + RECORD_HEADER + int.from_bytes(content[offset + 4 : offset + 8], "big")
        take(content[offset + RECORD_HEADER : end])
        offset, count = end, count + 1
    return count


def from_socket(path, take):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(path)
    peer.sendall(b"\x01\x0c\x20\x02\x01\x00")
    peer.setblocking(False)
    selector = selectors.DefaultSelector()
    selector.register(peer, selectors.EVENT_READ)
    count, held = 0, b""
    while selector.select():
        chunk = peer.recv(65536)
        if not chunk:
            break
        held += chunk
        while len(held) >= 3 and len(held) >= 3 + held[2]:
            packet, held = held[: 3 + held[2]], held[3 + held[2] :]
            # The answer to the command that began it is none.
            if packet[1] == 0x3E:
                take(packet)
                count += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("peer", choices=[peer.__name__ for peer in PEERS])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--capture")
    source.add_argument("--socket")
    parser.add_argument("--packets", type=int, default=sys.maxsize, help="at most so many of the capture")
    parser.add_argument("--mqtt", type=int, metavar="PORT", help="theengsgateway publishes to this broker")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)
    take = next(peer for peer in PEERS if peer.__name__ == arguments.peer)(arguments.mqtt)
    if arguments.capture:
        count = from_capture(arguments.capture, arguments.packets, take)
    else:
        count = from_socket(arguments.socket, take)
    print(count, flush=True)


if __name__ == "__main__":
    main()
