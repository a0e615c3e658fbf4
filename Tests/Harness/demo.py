#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows beacond at work without a radio, and checks what it says.

A simulated radio world goes through the whole road into a private MQTT broker on a free loopback port. What beacond
prints for people and what a subscriber receives are shown next to each other; at the end the enters, exits, topics and
retained states that the subscriber received are compared with what the beacons of the scenario really did.
"""

import argparse
import datetime
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from support import Beacon, Broker, Subscriber, end, end_cleanly_when_asked, known_beacons, seconds, write_json

GATEWAY = "demo"
ROOT = f"beacond/{GATEWAY}/"
EXIT_TIME = 5.0
# Start-up, the advertising interval, and a machine that has other things to do.
TOLERANCE = 3.0


class Screen:
    """Lines of several threads, in colour on a terminal. There, long lines are cut to the width."""

    COLOURS = {"stdout": "\033[32m", "mqtt": "\033[36m", "bold": "\033[1m", "bad": "\033[31m"}

    def __init__(self):
        self.is_terminal = sys.stdout.isatty()
        self.width = shutil.get_terminal_size((120, 40)).columns
        self.lock = threading.Lock()
        self.start = time.monotonic()

    def paint(self, style, text):
        return f"{self.COLOURS[style]}{text}\033[0m" if self.is_terminal else text

    def line(self, source, text):
        """One line of a source, with the time since the beginning."""
        head = f"{time.monotonic() - self.start:5.1f} s  {source:<6}  "
        if self.is_terminal and len(head) + len(text) > self.width:
            text = text[: self.width - len(head) - 1] + "…"
        with self.lock:
            print(self.paint(source, head) + text, flush=True)

    def title(self, text):
        print("\n" + self.paint("bold", text), flush=True)


class Received:
    """What the subscriber received, by topic."""

    def __init__(self, screen):
        self.screen = screen
        self.messages = {}

    def __call__(self, topic, payload, is_retained):
        self.messages.setdefault(topic, []).append(payload)
        if self.screen:
            self.screen.line("mqtt", f"{topic}  {payload}")

    def documents(self, topic):
        return [json.loads(payload) for payload in self.messages.get(topic, [])]


def print_lines(descriptor, screen):
    """Copies what beacond writes to its terminal until it closes it."""
    rest = b""
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # EIO: nobody has the other end open any more
            break
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            screen.line("stdout", line.decode("utf-8", "replace").rstrip("\r"))
    os.close(descriptor)


def run(arguments, scenario_path, configuration_path, screen):
    """Runs beacond on a terminal of its own, so that its stdout is the readable one; its exit status and start."""
    main_end, program_end = pty.openpty()
    environment = dict(os.environ)
    if not screen.is_terminal:
        environment["NO_COLOR"] = "1"
    command = [
        arguments.beacond, "run", "--config", configuration_path,
        "--source", f"simulate:{scenario_path}", "--duration", f"{arguments.duration:g}s",
    ]  # fmt: skip
    screen.title("$ " + " ".join(command))
    started = time.time()
    process = subprocess.Popen(command, stdout=program_end, env=environment)
    os.close(program_end)
    reader = threading.Thread(target=print_lines, args=(main_end, screen))
    reader.start()
    try:
        # It ends by itself; the rest is for one that does not.
        process.wait(arguments.duration + 15)
    except subprocess.TimeoutExpired:
        screen.line("stdout", "beacond did not end after its --duration")
    finally:
        status = end(process)
        reader.join()
    return status, started


def expected_transitions(stays, until):
    """Enter and exit as (word, seconds, whether it must have come before the end)."""
    for start, stop in stays:
        if start < until + TOLERANCE:
            yield "enter", start, start + TOLERANCE < until
        if stop < until + TOLERANCE:
            yield "exit", stop, stop + TOLERANCE < until


def received_transitions(documents, prefix, started):
    for document in documents:
        time = datetime.datetime.fromisoformat(document["time"].replace("Z", "+00:00")).timestamp()
        word = document["event"].removeprefix(prefix)
        # How near it is in between is no part of the story.
        if word in ("enter", "exit"):
            yield word, time - started


def judge(expected, received):
    """What is wrong with the transitions of one beacon or region, in words; empty when nothing is."""
    problems = []
    rest = list(received)
    for word, when, is_due in expected:
        if rest and rest[0][0] == word and abs(rest[0][1] - when) <= TOLERANCE:
            rest.pop(0)
        elif is_due:
            problems.append(f"no {word} at {when:.1f} s")
    problems += [f"unexpected {word} at {when:.1f} s" for word, when in rest]
    return problems


def spell(transitions):
    return "  ".join(f"{entry[0]} {entry[1]:.1f}" for entry in transitions) or "none"


class Subject:
    """A beacon or a region: the topics it has and the stays that they should tell of."""

    def __init__(self, name, topic, stays, prefix, states):
        self.name, self.topic, self.stays, self.prefix, self.states = name, topic, stays, prefix, states

    @classmethod
    def of_beacon(cls, beacon: Beacon):
        states = {"enter": "present", "exit": "absent"}
        return cls(beacon.alias, ROOT + beacon.topic, beacon.stays(EXIT_TIME), "", states)

    @classmethod
    def of_region(cls, name, beacons):
        """Inside while any of the beacons is present."""
        stays = []
        for start, stop in sorted(stay for beacon in beacons for stay in beacon.stays(EXIT_TIME)):
            if stays and start <= stays[-1][1]:
                stays[-1] = (stays[-1][0], max(stop, stays[-1][1]))
            else:
                stays.append((start, stop))
        states = {"enter": "inside", "exit": "outside"}
        return cls(f"region {name}", f"{ROOT}region/{name}", stays, "region_", states)


def compare(subjects, received, retained, started, until, screen):
    """Prints the table and returns the problems."""
    problems = []
    screen.title("What the scenario did (seconds), and what the subscriber received")
    print(f"{'':<16} {'expected':<40} {'received':<40} {'retained':<9}")
    for subject in subjects:
        expected = list(expected_transitions(subject.stays, until))
        events = list(received_transitions(received.documents(subject.topic + "/event"), subject.prefix, started))
        wrong = judge(expected, events)
        states = [document["state"] for document in retained.documents(subject.topic + "/presence")]
        wanted = [subject.states[events[-1][0]]] if events else []
        if states != wanted:
            wrong.append(f"retained state is {states or 'none'}, expected {wanted or 'none'}")
        mark = screen.paint("bad", "differs") if wrong else "agrees"
        state = states[0] if states else "none"
        print(f"{subject.name:<16} {spell(expected):<40} {spell(events):<40} {state:<9} {mark}")
        problems += [f"{subject.name}: {text}" for text in wrong]
    return problems


def compare_topics(subjects, received, until):
    """Each known beacon that was heard must have all of its topics, and strangers none."""
    status = ROOT + "status"
    allowed, wanted = {status}, {status}
    for subject in subjects:
        leaves = ["presence", "event"] + ([] if subject.prefix else ["sighting"])
        topics = {f"{subject.topic}/{leaf}" for leaf in leaves}
        allowed |= topics
        if any(is_due for _, _, is_due in expected_transitions(subject.stays, until)):
            wanted |= topics
    # The adapter says what becomes of it on the gateway's own topics.
    allowed |= {ROOT + "event", ROOT + "health"}
    names = set(received.messages)
    problems = [f"unexpected topic {topic}" for topic in sorted(names - allowed)]
    problems += [f"nothing on topic {topic}" for topic in sorted(wanted - names)]
    if not any(document.get("state") == "online" for document in received.documents(status)):
        problems.append(f"{status} never said online")
    print(f"{len(names)} topics, {sum(map(len, received.messages.values()))} messages")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--beacond", required=True, help="the program")
    parser.add_argument("--scenario", required=True, help="what the simulated beacons do")
    parser.add_argument("--duration", type=seconds, default=30.0, help="30s unless given")
    arguments = parser.parse_args()
    end_cleanly_when_asked()
    arguments.beacond = os.path.abspath(arguments.beacond)

    with open(arguments.scenario, encoding="utf-8") as file:
        scenario = json.load(file)
    # Behind its end the scenario says nothing, and a radio that does not listen makes nobody leave.
    until = min(arguments.duration, seconds(scenario.get("duration", "60s")))
    beacons = known_beacons(scenario)
    site = [beacon for beacon in beacons if beacon.format == "ibeacon"]
    uuid = site[0].identity["uuid"]
    site = [beacon for beacon in site if beacon.identity["uuid"] == uuid]
    screen = Screen()

    with tempfile.TemporaryDirectory(prefix="beacond-demo-") as folder:
        broker = Broker(folder)
        configuration = {
            "gateway": {"id": GATEWAY},
            "state_directory": folder,
            "presence": {"exit_time": f"{EXIT_TIME:g}s", "report_interval": "5s"},
            "beacons": [beacon.configuration for beacon in beacons],
            "regions": [{"name": "site", "format": "ibeacon", "uuid": uuid}],
            "sinks": [
                {"kind": "stdout"},
                {"kind": "mqtt", "config": {"host": "127.0.0.1", "port": broker.port}},
            ],
        }
        configuration_path = os.path.join(folder, "plugins.json")
        write_json(configuration_path, configuration)
        broker.start()
        subscriber = late = None
        try:
            received, retained = Received(screen), Received(None)
            screen.title(f"$ mosquitto_sub -h 127.0.0.1 -p {broker.port} -t '{ROOT}#' -v")
            subscriber = Subscriber(broker.port, ROOT + "#", received)
            status, started = run(arguments, arguments.scenario, configuration_path, screen)
            # Who comes late reads the retained states, and must find how it ended.
            late = Subscriber(broker.port, ROOT + "#", retained)
            time.sleep(1)
        finally:
            for process in (subscriber, late, broker):
                if process:
                    process.stop()

        subjects = [Subject.of_beacon(beacon) for beacon in beacons] + [Subject.of_region("site", site)]
        problems = compare(subjects, received, retained, started, until, screen)
        problems += compare_topics(subjects, received, until)
        if status != 0:
            problems.append(f"beacond ended with status {status}")

    if problems:
        screen.title(screen.paint("bad", "The subscriber did not receive what the scenario did:"))
        for text in problems:
            print(f"  {text}")
        return 1
    print("The subscriber received what the scenario did.")
    screen.title("With a real adapter")
    print("  sudo setcap cap_net_raw+ep " + arguments.beacond)
    print("  " + arguments.beacond + " run --source hci:0 --sink stdout")
    print("As a service: systemd/README.md. Into your own broker: plugins.json.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
