#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures publishing to a broker: `beacond replay --sink mqtt` beside mosquitto_pub and a small C program.

A broker of its own on the loopback, with one subscriber to everything that counts. `replay` takes no other port than the
default one, so that one must be free.
"""

import os
import subprocess
import tempfile
import time

from captures import known, sites, write_rounds
from laboratory import (
    Broker, Laboratory, Subscriber, argument_parser, conclude, in_turn, median, table, three)
from support import find_program

PORT = 1883
# mosquitto_pub 2.0.11 -l -q 1 ends with its 65,535th line unsent.
MOST = 60_000
# As many beacons as topics; each is silent for three seconds, which is longer than the exit time.
BEACONS, PERIOD = 300, 3


class Published:
    """One run: messages that arrived, how fast, and what the publisher took."""

    def __init__(self, run, count, seconds):
        self.count = count
        self.speed = count / max(seconds, 1e-9)
        self.cpu = run.cpu * 1e5 / max(count, 1)
        self.peak = run.peak


def published(laboratory, command, input_path=os.devnull):
    broker = Broker(laboratory.folder, PORT)
    with open(broker.configuration, "a", encoding="utf-8") as file:
        # By default it drops what a subscriber does not take at once.
        file.write("max_queued_messages 0\n")
    broker.start()
    subscriber = None
    try:
        subscriber = Subscriber(laboratory, PORT)
        run = laboratory.measure(command, input_path)
        time.sleep(0.5)
        return Published(run, *subscriber.stop())
    finally:
        broker.stop()


def payloads(laboratory, beacond, count):
    """What beacond publishes of sightings, as lines."""
    path = laboratory.path("payloads")
    configuration = laboratory.configuration("each", {"presence": {"report_interval": "0s"}})
    command = [beacond, "replay", "--emit", "sightings", "--config", configuration, laboratory.capture(count * 2)]
    with open(path, "wb") as file:
        lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.splitlines()
        file.write(b"\n".join(lines[:count]) + b"\n")
    return path


def cases(laboratory, beacond, count):
    """(name, QoS, topics, a run)."""
    lines = payloads(laboratory, beacond, count)
    publisher, pub = laboratory.program("publisher"), find_program("mosquitto_pub")

    def replay(name, presence, capture, regions, beacons):
        configuration = laboratory.configuration(
            name, {"gateway": {"id": "bench"}, "presence": presence, "regions": regions, "beacons": beacons})
        return lambda: published(laboratory, [beacond, "replay", "--sink", "mqtt", "--config", configuration, capture])

    # Two of five packets of the mix are iBeacons, which the regions have.
    sightings = replay("sightings", {"report_interval": "0s"}, laboratory.capture(count * 5 // 2), sites(), [])
    # An advertisement makes a sighting, an enter and an exit, the latter two as an event and as a state.
    rounds = write_rounds(laboratory.path("rounds"), BEACONS, count // 5, BEACONS // PERIOD)
    transitions = replay("transitions", {"enter_count": 1, "exit_time": "1s"}, rounds, [], known(BEACONS))
    for quality, ours in ((0, sightings), (1, transitions)):
        yield f"beacond, QoS {quality}", "one a beacon", ours
        for topics in (BEACONS, 1):
            command = [publisher, str(PORT), str(count), str(quality), str(topics), lines]
            yield (f"C and libmosquitto, QoS {quality}, {'one' if topics == 1 else 'many'}", str(topics),
                   lambda command=command: published(laboratory, command))
        command = [pub, "-h", "127.0.0.1", "-p", str(PORT), "-t", "bench", "-l", "-q", str(quality)]
        yield f"mosquitto_pub -l -q {quality}", "1", lambda command=command: published(laboratory, command, lines)


def report(topics, results, count):
    def ratio(ours, theirs, key):
        return median([getattr(a, key) / getattr(b, key) for a, b in zip(results[ours], results[theirs])])

    rows, goals = [], []
    for name, runs in results.items():
        rows.append([
            name, topics[name], f"{median([run.count for run in runs]):,.0f}",
            three([run.speed for run in runs], ",.0f"), three([run.cpu for run in runs], ".2f"),
            f"{max(run.peak for run in runs) / 1048576:.1f}",
        ])
    for quality in (0, 1):
        ours = f"beacond, QoS {quality}"
        for theirs, least in ((f"mosquitto_pub -l -q {quality}", 1), (f"C and libmosquitto, QoS {quality}, many", 0.9)):
            goals.append([f"{ours} : {theirs}", f"{least:g}", f"{ratio(ours, theirs, 'speed'):.2f}",
                          f"{1 / ratio(ours, theirs, 'cpu'):.2f}"])
    return f"""{table(["publisher", "topics", "messages that arrived", "messages a second at the subscriber, median (range)",
        "its CPU s for 100,000", "peak MiB"], rows)}

{len(next(iter(results.values())))} rounds of {count:,} payloads as beacond writes them, about 400 bytes each. Broker, subscriber and publisher share the machine; the fastest publishers wait for the broker. beacond publishes sightings at QoS 0; its row of QoS 1 is of beacons that come and go, where four messages of five are at QoS 1 and the sighting between them is not. Its CPU has reading, decoding and presence in it, and its start.

{table(["goal", "wanted", "reached", "by CPU"], goals)}"""


def main():
    arguments = argument_parser(__doc__).parse_args()
    count = 10_000 if arguments.quick else MOST
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(folder)
        all_cases = list(cases(laboratory, arguments.beacond, count))
        results = in_turn(2 if arguments.quick else 5, {name: run for name, _, run in all_cases})
        topics = {name: text for name, text, _ in all_cases}
        conclude(arguments, "publishing", report(topics, results, count))


if __name__ == "__main__":
    main()
