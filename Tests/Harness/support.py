# SPDX-License-Identifier: Apache-2.0
"""What the demo and the broker tests share: a private broker, a subscriber, and scenarios as lists of periods.

Standard library only. Every process that is started here is ended by its own handle.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

FOREVER = float("inf")


def end_cleanly_when_asked():
    """Lets SIGTERM run the `finally` blocks, which end what was started."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def find_program(name):
    """The path of a program; brokers live in sbin, which is not on everybody's PATH."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if path is None:
        raise SystemExit(f"{name} is not installed; .ci/packages installs what the tests need")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds, step=0.05):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(step)
    return False


class Broker:
    """A mosquitto of our own on a loopback port. It keeps nothing on disk: what is retained dies with it."""

    def __init__(self, folder, port=None):
        self.port = port or free_port()
        self.process = None
        self.log_path = os.path.join(folder, "mosquitto.log")
        self.configuration = os.path.join(folder, "mosquitto.conf")
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_dest stderr\n")
            # It may not become somebody else in a user namespace, and who does may not read the keys of the tests.
            file.write("user root\n" if os.geteuid() == 0 else "")

    def start(self):
        """Starts it and returns when it takes connections."""
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([find_program("mosquitto"), "-c", self.configuration], stderr=log)
        if not wait_until(self._answers, 10):
            with open(self.log_path, encoding="utf-8") as log:
                raise SystemExit(f"mosquitto does not answer on port {self.port}:\n{log.read()}")

    def _answers(self):
        if self.process.poll() is not None:
            return False
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        """The kernel still takes connections and data for it, and nothing ever answers: a black hole."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.thaw()
            end(self.process)


class Subscriber:
    """mosquitto_sub, which is none of our code: every message as (topic, payload, whether it was retained)."""

    def __init__(self, port, topic, on_message):
        command = [find_program("mosquitto_sub"), "-h", "127.0.0.1", "-p", str(port), "-q", "1", "-t", topic]
        self.process = subprocess.Popen(
            command + ["-F", "%r\t%t\t%p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.on_message = on_message
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            retained, topic, payload = line.rstrip("\n").split("\t", 2)
            self.on_message(topic, payload, retained == "1")

    def stop(self):
        end(self.process)
        self.reader.join()
        self.process.stdout.close()


def end(process, seconds=5):
    """Asks a process of ours to end, then makes it; its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text):
    """The seconds of a length of time as configurations spell it: "1.5s", "200ms". A bare number is seconds."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)?", text)
    if not match:
        raise ValueError(f"'{text}' is no length of time: expected a number and one of {', '.join(UNITS)}")
    return float(match[1]) * UNITS[match[2] or "s"]


IDENTITY_KEYS = {
    "ibeacon": ("uuid", "major", "minor"),
    "altbeacon": ("id1", "id2", "id3"),
    "eddystone-uid": ("namespace", "instance"),
}


class Beacon:
    """A beacon of a scenario: what identifies it and when it really advertises."""

    def __init__(self, entry):
        self.alias = entry["alias"]
        self.format = entry.get("format", "ibeacon")
        keys = IDENTITY_KEYS[self.format]
        self.identity = {key: entry.get(key, 0) for key in keys}
        self.periods = advertising_periods(entry)

    @property
    def configuration(self):
        """Its entry in the list of beacons of plugins.json."""
        return {"alias": self.alias, "format": self.format} | self.identity

    @property
    def topic(self):
        """The topic levels of its identity."""
        values = [str(value).lower() for value in self.identity.values()]
        return "/".join([self.format] + [urllib.parse.quote(value, safe="") for value in values])

    def stays(self, exit_time):
        """When it counts as present: a pause shorter than the exit time does not show, and an exit comes that late."""
        stays = []
        for start, stop in self.periods:
            if stays and start <= stays[-1][1]:
                stays[-1] = (stays[-1][0], stop + exit_time)
            else:
                stays.append((start, stop + exit_time))
        return stays


def advertising_periods(entry):
    """The visits without the silences, in order, as (start, end) in seconds."""

    def periods(key):
        found = [
            (seconds(period.get("from", "0s")), seconds(period["to"]) if "to" in period else FOREVER)
            for period in entry.get(key, [])
        ]
        return sorted(found)

    present = periods("visits") if "visits" in entry else [(0.0, FOREVER)]
    for hole_start, hole_end in periods("silent"):
        present = [
            piece
            for start, stop in present
            for piece in ((start, min(stop, hole_start)), (max(start, hole_end), stop))
            if piece[0] < piece[1]
        ]
    return present


def known_beacons(scenario):
    """The beacons of a scenario that a configuration names: those with an alias, but for the one called stranger."""
    return [Beacon(entry) for entry in scenario["beacons"] if entry.get("alias", "stranger") != "stranger"]


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
