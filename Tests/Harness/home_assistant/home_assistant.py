#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries beacond with real releases of Home Assistant: what appears there, and what is left after restarts.

Each release gets a mosquitto, a Home Assistant and a gateway with a controller of the tests, all on the loopback.
"""

import argparse
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "faults")]

from instance import HomeAssistant  # noqa: E402
from load import TURN, Radio, advertisement  # noqa: E402
from make_capture import ADV_NONCONN_IND, LEGACY, packet  # noqa: E402
from picture import take_picture  # noqa: E402
from support import Broker, Subscriber, end, end_cleanly_when_asked, wait_until, write_json  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
UUID = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"
ADDRESS = "cb:b8:33:4c:88:4f"
# The valid vector of Ruuvi's description of data format 5: 24.3 °C, 53.49 %, 1,000.44 hPa.
RUUVI = "0201061bff99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f"
BEACONS = [{"alias": "keys", "uuid": UUID, "major": 1, "minor": 1}, {"alias": "tag", "format": "device", "address": ADDRESS}]
AUTOMATION = """
automation:
  - alias: arrival
    trigger:
      - platform: state
        entity_id: binary_sensor.keys_presence
        to: "on"
    action:
      - service: mqtt.publish
        data:
          topic: test/arrived
          payload: "to"
  - alias: arrival from away
    trigger:
      - platform: state
        entity_id: binary_sensor.keys_presence
        from: "off"
        to: "on"
    action:
      - service: mqtt.publish
        data:
          topic: test/arrived
          payload: "from and to"
"""
HANG = 60  # seconds
# Entity, its state (None: any number), device class, unit.
EXPECTED = [
    ("device_tracker.keys", "home", None, None),
    ("binary_sensor.keys_presence", "on", "occupancy", None),
    ("sensor.keys_rssi", None, "signal_strength", "dBm"),
    ("sensor.keys_distance", None, "distance", "m"),
    ("binary_sensor.tag_presence", "on", "occupancy", None),
    ("sensor.tag_temperature", "24.3", "temperature", "°C"),
    ("sensor.tag_humidity", "53.49", "humidity", "%"),
    ("binary_sensor.me", "on", "occupancy", None),
    ("sensor.me_count", "1", None, None),
    ("device_tracker.me_tracker", "home", None, None),
    ("binary_sensor.beacond_home_connectivity", "on", "connectivity", None),
    ("binary_sensor.beacond_home_adapter_sim0", "on", "running", None),
    ("binary_sensor.beacond_home_problem", "off", "problem", None),
]


class Room:
    """The keys three times a second unless they are away, and the tag twice."""

    def __init__(self):
        self.keys_are_here = True
        self.keys = advertisement(bytes.fromhex(UUID.replace("-", "")), 1, 1, bytes.fromhex("c00000000001")[::-1])
        front, back = packet(
            ADV_NONCONN_IND, bytes.fromhex(RUUVI), bytes.fromhex(ADDRESS.replace(":", ""))[::-1], True, LEGACY)
        self.tag = front + struct.pack("b", -60) + back

    def hear(self, turn):
        packets = []
        if turn % round(0.3 / TURN) == 0 and self.keys_are_here:
            packets.append(self.keys)
        if turn % round(0.5 / TURN) == 0:
            packets.append(self.tag)
        return packets


class Gateway:
    def __init__(self, beacond, folder, port, release):
        self.beacond, self.folder, self.process = beacond, folder, None
        self.path = os.path.join(folder, "plugins.json")
        self.room = Room()
        self.radio = Radio(os.path.join(folder, "sim0"), self.room.hear)
        os.makedirs(os.path.join(folder, "state"), exist_ok=True)
        self.configuration = {
            "gateway": {"id": "home"}, "sources": [f"unix:{folder}/sim0"], "beacons": BEACONS,
            "state_directory": os.path.join(folder, "state"), "control_socket": "none",
            "presence": {"exit_time": "5s"}, "regions": [{"name": "me", "beacons": ["keys"]}],
            "sinks": [{"kind": "mqtt", "config": {"port": port, "host": "127.0.0.1", "home_assistant": {
                "release": ".".join(release.split(".")[:2]), "trackers": ["me"], "signal_sensors": True}}}]}

    def configure(self, **changes):
        write_json(self.path, self.configuration | changes)

    def start(self):
        with open(os.path.join(self.folder, "beacond.log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([self.beacond, "run", "--config", self.path], stdout=log, stderr=log)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def stop(self):
        if self.process is not None:
            end(self.process, 20)

    def close(self):
        self.stop()
        self.radio.stop()


class Trial:
    """One release: rows of (what, result or None when it is right)."""

    def __init__(self, beacond, release, folder):
        self.release = release
        self.rows = []
        self.arrivals = {"to": 0, "from and to": 0}
        self.broker = Broker(folder)
        self.broker.start()
        self.home = HomeAssistant(
            release, os.path.join(ROOT, ".cache", "home-assistant", release), os.path.join(folder, "config"))
        self.home.configure(AUTOMATION)
        self.gateway = Gateway(beacond, folder, self.broker.port, release)
        self.gateway.configure()

    def row(self, what, wrong):
        self.rows.append((what, wrong))
        print(f"{self.release}  {'ok    ' if not wrong else 'FAILED'}  {what}{': ' + wrong if wrong else ''}", flush=True)

    def wrong(self, expected=EXPECTED):
        """What is not as it should be, in words."""
        states = self.home.states()
        problems = []
        for entity, state, device_class, unit in expected:
            found = states.get(entity)
            if found is None:
                problems.append(f"{entity} is missing")
                continue
            attributes = found["attributes"]
            value = found["state"]
            is_number = value.lstrip("-").replace(".", "", 1).isdigit()
            if not (is_number if state is None else value == state):
                problems.append(f"{entity} is {value}")
            if device_class and attributes.get("device_class") != device_class:
                problems.append(f"{entity} has the class {attributes.get('device_class')}")
            if unit and attributes.get("unit_of_measurement") != unit:
                problems.append(f"{entity} has the unit {attributes.get('unit_of_measurement')}")
        registry = self.home.registry()
        problems += [f"{entry['entity_id']} is a double" for entry in registry.values()
                     if entry["entity_id"].endswith("_2")]
        problems += [f"{entry['entity_id']} is unavailable" for entry in registry.values()
                     if states.get(entry["entity_id"], {}).get("state") == "unavailable"]
        return problems

    def settles(self, what, expected=EXPECTED, seconds=90):
        """Waits until everything is right and stays so."""
        wait_until(lambda: not self.wrong(expected), seconds, 0.5)
        time.sleep(2)
        self.row(what, "; ".join(self.wrong(expected)[:6]))

    def restart(self, name):
        if name == "gateway":
            self.gateway.stop()
            self.gateway.start()
        elif name == "broker":
            self.broker.stop()
            self.broker.start()
        else:
            self.home.stop()
            self.home.start()

    def devices(self):
        entries = self.home.registry().values()
        gateway = [entry["device"] for entry in entries if entry["unique_id"] == "beacond_home_gateway_connectivity"]
        wrong = [] if gateway else ["the gateway has no device"]
        for entry in entries:
            device = entry["device"]
            if gateway and device and device["id"] != gateway[0]["id"] and device["via_device_id"] != gateway[0]["id"]:
                wrong.append(f"{device['name']} is not reached by the gateway")
        self.row("each device is reached by the gateway", "; ".join(sorted(set(wrong))))

    def removals(self):
        def gone():
            names = [entry["entity_id"] for entry in self.home.registry().values()] + list(self.home.states())
            return sorted({name for name in names if "keys" in name})

        def check(what):
            wait_until(lambda: not gone(), 60, 0.5)
            self.row(what, ", ".join(gone()[:4]))

        without = {"beacons": BEACONS[1:], "regions": []}
        self.gateway.configure(**without)
        self.gateway.reload()
        check("removed while all run")
        self.gateway.configure()
        self.gateway.reload()
        self.settles("there again")
        self.gateway.stop()
        self.gateway.configure(**without)
        self.gateway.start()
        check("removed while the gateway was off")
        self.gateway.configure()
        self.gateway.reload()
        self.settles("there again")
        self.home.stop()
        self.gateway.configure(**without)
        self.gateway.reload()
        time.sleep(5)
        self.home.start()
        check("removed while Home Assistant was off")

    def log(self):
        lines = [line for line in self.home.log().splitlines()
                 if (" WARNING " in line or " ERROR " in line) and ("mqtt" in line.lower() or "beacond" in line)]
        # What a broker that goes away causes, and no message of ours.
        lines = [line for line in lines if "onnect" not in line]
        self.row("nothing is logged about our messages", " | ".join(line[:240] for line in lines[:3]))

    def picture(self, file):
        """The page of the tag's device."""
        device = next(entry["device"]["id"] for entry in self.home.registry().values()
                      if entry["entity_id"] == "binary_sensor.tag_presence")
        take_picture(self.home, f"/config/devices/device/{device}", file)

    def run(self, quick, picture):
        subscriber = Subscriber(self.broker.port, "test/arrived", self.arrived)
        try:
            self.home.start()
            self.home.onboard()
            self.home.add_mqtt(self.broker.port)
            self.gateway.start()
            self.settles("everything appears")
            self.devices()
            if picture:
                self.picture(picture)
            # The automation was there before the beacon was.
            self.fired("an automation for arrivals has fired once", {"to": 0}, {"to": 1})
            self.restart("gateway")
            time.sleep(10)
            self.settles("after a restart of the gateway")
            self.fired("and it has not fired again", {"to": 0}, {"to": 1})
            self.hang()
            parts = ["home", "broker"] if quick else ["home", "broker", "gateway"]
            for first in parts:
                for second in parts:
                    if first != second:
                        self.restart(first)
                        self.restart(second)
                        self.settles(f"after restarts: {first}, then {second}")
            print(f"{self.release}  fired in all, with the restarts of the others: {self.arrivals}")
            self.removals()
            self.log()
        finally:
            self.gateway.close()
            self.home.stop()
            self.broker.stop()
            subscriber.stop()
        return not any(wrong for _, wrong in self.rows)

    def arrived(self, topic, payload, retained):
        self.arrivals[payload.decode() if isinstance(payload, bytes) else payload] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beacond", required=True, help="the program")
    parser.add_argument("--quick", action="store_true", help="fewer orders of restarts")
    parser.add_argument("--picture", metavar="FILE", help="keeps a picture of a device's page, as PNG")
    parser.add_argument("releases", nargs="*", help="all that are known unless given")
    options = parser.parse_args()
    end_cleanly_when_asked()
    make = os.path.join(ROOT, ".ci", "home-assistant")
    known = subprocess.run([make, "--list"], check=True, capture_output=True, text=True).stdout.split()
    results = {}
    for release in options.releases or known:
        made = subprocess.run([make, release], stderr=subprocess.PIPE, text=True, check=False)
        if made.returncode != 0:
            results[release] = "skipped: " + (made.stderr.strip().splitlines() or ["no reason given"])[-1]
            continue
        with tempfile.TemporaryDirectory(prefix="beacond-home-") as folder:
            trial = Trial(options.beacond, release, folder)
            results[release] = "ok" if trial.run(options.quick, options.picture) else "FAILED"
    print("\n".join(f"{release}: {result}" for release, result in results.items()))
    return 1 if "FAILED" in results.values() or all(value.startswith("skipped") for value in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
