#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the broker again and again while beacond publishes, and then lets it hang.

After each return of the broker, within 5 s, the status topic and every retained presence state must equal the state of
the engine (the last transition of each beacon and region in the json sink's file). Memory may grow by 1 MiB from the
first kill to the last, descriptors not at all. While the broker hangs (a black hole: connections stay open and nothing
answers), the json sink must go on at its rate and the watchdog must be fed in time.
"""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time

from support import Beacon, Broker, Subscriber, end, end_cleanly_when_asked, wait_until, write_json

GATEWAY = "kills"
ROOT = f"beacond/{GATEWAY}/"
STATES = {
    "enter": "present",
    "exit": "absent",
    "unknown": "unknown",
    "known": "present",
    "region_enter": "inside",
    "region_exit": "outside",
    "region_unknown": "unknown",
    "region_known": "inside",
}
RECOVERY = 5.0  # seconds from the broker's return until the retained states must be right
LONGEST_GROWTH = 1024  # KiB of resident memory
WATCHDOG = 4.0  # seconds between two signs of life at most, as WatchdogSec= would ask
LONGEST_END = 5.0  # seconds from SIGTERM to the end
# Of the sightings a second before the broker hung. The beacons that are counted report once a second; the rest is for
# the edges of the span and a machine that has other things to do.
LEAST_RATE = 0.8
STAYS = 4  # one beacon in so many never leaves


def make_scenario(generator, duration, count=24):
    """Beacons that come and go all the time, each in its own rhythm, but for those that stay."""
    beacons = []
    for number in range(count):
        visits, start = [], generator.uniform(0, 5)
        while start < duration:
            stop = start + generator.uniform(3, 12)
            visits.append({"from": f"{start:.3f}s", "to": f"{stop:.3f}s"})
            start = stop + generator.uniform(4, 12)
        beacon = {
            "alias": f"beacon {number}",
            "uuid": "6e3f5a10-52c1-4c58-9d0e-0c8f41a7b2d9",
            "major": number // 8,
            "minor": number,
            "interval": "200ms",
        }
        beacons.append(beacon if number % STAYS == 0 else beacon | {"visits": visits})
    return {"seed": generator.randrange(2**31), "duration": f"{duration}s", "beacons": beacons}


class Truth:
    """What the engine said, from the json sink's file, which no broker can hold up."""

    def __init__(self, path, topics):
        self.path, self.topics = path, topics
        self.offset, self.rest = 0, b""
        self.states, self.transitions = {}, 0
        self.steady_sightings = 0  # of the beacons that stay

    def update(self):
        """Reads what was added and returns the state of each beacon and region, by topic."""
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                data = self.rest + file.read()
                self.offset = file.tell()
            *lines, self.rest = data.split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        return self.states

    def _take(self, event):
        if event["event"] == "sighting" and event["minor"] % STAYS == 0:
            self.steady_sightings += 1
        state = STATES.get(event["event"])
        if state is None:
            return
        self.transitions += 1
        topic = f"region/{event['region']}" if "region" in event else self.topics[event["minor"]]
        self.states[f"{ROOT}{topic}/presence"] = state


class Watchdog:
    """The other end of NOTIFY_SOCKET, as the service manager holds it."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.is_ready = False
        self.times = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def environment(self):
        return {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(int(WATCHDOG * 1_000_000))}

    def _read(self):
        while True:
            lines = self.socket.recv(65536).decode().split("\n")
            if "READY=1" in lines:
                self.is_ready = True
            if "WATCHDOG=1" in lines:
                self.times.append(time.monotonic())

    def longest_gap(self, start, stop):
        times = [start] + [moment for moment in self.times if start <= moment <= stop] + [stop]
        return max(later - earlier for earlier, later in zip(times, times[1:]))


class Process:
    """beacond under test, as the kernel sees it."""

    def __init__(self, command, environment, log):
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=log)

    def is_alive(self):
        return self.process.poll() is None

    def memory(self):
        """Resident memory in KiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def retained_difference(retained, truth):
    """How the retained states differ from the engine's, in words; empty when they are equal."""
    status = retained.get(ROOT + "status", {}).get("state")
    if status != "online":
        return f"status is {status or 'not there'}"
    states = {topic: payload.get("state") for topic, payload in retained.items() if topic.endswith("/presence")}
    wrong = [
        f"{topic} is {states.get(topic, 'not there')}, the engine says {truth.get(topic, 'nothing')}"
        for topic in sorted(states.keys() | truth.keys())
        if states.get(topic) != truth.get(topic)
    ]
    return f"{len(wrong)} states differ: {wrong[0]}" if wrong else ""


def await_equal_states(port, truth, within=RECOVERY):
    """Subscribes and waits until status and states are right; how long it took (None: too long) and what differed."""
    returned = time.monotonic()
    retained = {}

    def take(topic, payload, is_retained):
        if topic.endswith(("/status", "/presence")):
            retained[topic] = json.loads(payload)

    subscriber = Subscriber(port, ROOT + "#", take)
    try:
        if wait_until(lambda: not retained_difference(dict(retained), truth.update()), within):
            return time.monotonic() - returned, ""
        return None, retained_difference(dict(retained), truth.update())
    finally:
        subscriber.stop()


def sightings_a_second(truth, span):
    """How fast the json sink's file grows."""
    truth.update()
    before, start = truth.steady_sightings, time.monotonic()
    time.sleep(span)
    truth.update()
    return (truth.steady_sightings - before) / (time.monotonic() - start)


def kill_again_and_again(beacond, broker, truth, kills, generator, problems):
    """The first part; prints a row for each kill."""
    print(f"{'kill':>4} {'away s':>7} {'right after s':>14} {'transitions':>12} {'memory KiB':>11} {'descriptors':>12}")
    first = None
    for number in range(1, kills + 1):
        time.sleep(generator.uniform(0.5, 2))
        broker.kill()
        away = generator.uniform(0.5, 3)
        time.sleep(away)
        broker.start()
        took, difference = await_equal_states(broker.port, truth)
        if not beacond.is_alive():
            raise SystemExit("beacond ended by itself")
        if took is None:
            problems.append(f"kill {number}: after {RECOVERY:.0f} s {difference}")
        last = beacond.memory(), beacond.descriptors()
        first = first or last
        print(
            f"{number:>4} {away:>7.1f} {'never' if took is None else f'{took:.2f}':>14} {truth.transitions:>12}"
            f" {last[0]:>11} {last[1]:>12}",
            flush=True,
        )
    growth, more = last[0] - first[0], last[1] - first[1]
    print(f"from the first kill to the last: {growth:+} KiB, {more:+} descriptors")
    if growth > LONGEST_GROWTH:
        problems.append(f"memory grew by {growth} KiB, {LONGEST_GROWTH} are allowed")
    if more != 0:
        problems.append(f"descriptors changed by {more}")


def let_it_hang(beacond, broker, truth, watchdog, span, problems):
    """The second part: the broker is there and never answers."""
    before = sightings_a_second(truth, span)
    started = time.monotonic()
    broker.freeze()
    try:
        during = sightings_a_second(truth, span)
        gap = watchdog.longest_gap(started, time.monotonic())
    finally:
        broker.thaw()
    # Behind a long outage a wait is at most half as long as the outage was.
    within = RECOVERY + span / 2
    took, difference = await_equal_states(broker.port, truth, within)
    print(
        f"black hole of {span:.0f} s: json sightings a second {before:.1f} before, {during:.1f} during;"
        f" longest time between signs of life {gap:.1f} of {WATCHDOG:.1f} s;"
        f" states right {'never' if took is None else f'{took:.2f} s'} after it"
    )
    if not beacond.is_alive():
        raise SystemExit("beacond ended by itself")
    if during < LEAST_RATE * before:
        problems.append(f"black hole: the json sink fell from {before:.1f} to {during:.1f} sightings a second")
    if gap > WATCHDOG:
        problems.append(f"black hole: no sign of life for {gap:.1f} s")
    if took is None:
        problems.append(f"black hole: {within:.0f} s after it {difference}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--beacond", required=True, help="the program")
    parser.add_argument("--quick", action="store_true", help="5 kills and a short black hole")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", action="store_true", help="show beacond's log at the end")
    arguments = parser.parse_args()
    end_cleanly_when_asked()
    kills, span = (5, 8) if arguments.quick else (20, 60)
    generator = random.Random(arguments.seed)
    print(f"{kills} kills of the broker, seed {arguments.seed}")

    problems = []
    with tempfile.TemporaryDirectory(prefix="beacond-kills-") as folder:
        # Longer than the run: with the scenario the radio ends, and with it the transitions.
        duration = kills * 15 + span * 3 + 60
        scenario = make_scenario(generator, duration)
        beacons = [Beacon(entry) for entry in scenario["beacons"]]
        scenario_path = os.path.join(folder, "scenario.json")
        write_json(scenario_path, scenario)
        broker = Broker(folder)
        events_path = os.path.join(folder, "events.jsonl")
        configuration = {
            "gateway": {"id": GATEWAY},
            "state_directory": folder,
            "presence": {"exit_time": "3s"},
            "beacons": [beacon.configuration for beacon in beacons],
            "regions": [{"name": "floor-1", "format": "ibeacon", "uuid": beacons[0].identity["uuid"], "major": 1}],
            "sinks": [
                {"kind": "json", "config": {"path": events_path}},
                {"kind": "mqtt", "config": {"host": "127.0.0.1", "port": broker.port}},
            ],
        }
        configuration_path = os.path.join(folder, "plugins.json")
        write_json(configuration_path, configuration)
        watchdog = Watchdog(folder)
        truth = Truth(events_path, {beacon.identity["minor"]: beacon.topic for beacon in beacons})
        command = [os.path.abspath(arguments.beacond), "run", "--config", configuration_path]
        command += ["--source", f"simulate:{scenario_path}", "--duration", f"{duration}s"]
        log_path = os.path.join(folder, "log")
        with open(log_path, "wb") as log:
            broker.start()
            beacond = Process(command, os.environ | watchdog.environment, log)
            try:
                if not wait_until(lambda: watchdog.is_ready or not beacond.is_alive(), 30) or not beacond.is_alive():
                    raise SystemExit("beacond did not become ready")
                if not wait_until(lambda: truth.update(), 15):
                    raise SystemExit("the json sink wrote no transition in 15 s")
                kill_again_and_again(beacond, broker, truth, kills, generator, problems)
                let_it_hang(beacond, broker, truth, watchdog, span, problems)
                asked = time.monotonic()
                status = end(beacond.process, LONGEST_END)
                print(f"ended {time.monotonic() - asked:.1f} s after SIGTERM with status {status}")
                if status != 0:
                    problems.append(f"beacond ended with status {status} after SIGTERM")
            except SystemExit:
                arguments.log = True
                raise
            finally:
                end(beacond.process)
                broker.stop()
                log.flush()
                if problems or arguments.log:
                    with open(log_path, encoding="utf-8", errors="replace") as file:
                        sys.stderr.writelines(file.readlines()[-100:])

    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
