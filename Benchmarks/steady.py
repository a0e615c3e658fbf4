#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a steady stream of advertisements costs `beacond run`, and how soon a subscriber knows.

programs/controller.c is the radio: it sends one packet at a time, evenly, at a rate. The way is that of the daemon:
bring-up, presence, the outbox on disk, and MQTT to a broker of its own. Beside it, at the same rate: a C program that
waits for each packet, reads it and does nothing else, and the libraries that Python has.
"""

import json
import struct
import tempfile
import time

from captures import known, strength, visits, write, write_rounds
from laboratory import (
    HERE, PYTHON, Broker, Controller, Daemon, Laboratory, Subscriber, Usage, argument_parser, beacond_run, conclude,
    in_turn, median, mqtt_sink, number, private_memory, table, three, versions)

RATES = (200, 1000)
# All of them are heard at least every 2.5 s, and told of once a second.
BEACONS = 500
# Seconds between two advertisements of a visitor.
PERIOD = 3


def warm_up(rate):
    """Seconds until the connection is made and each beacon has entered, with its second advertisement."""
    return 1.5 + (2 * BEACONS / rate if rate else 0)


class Steady:
    """What a program took over a while: CPU in per cent of a core, wake-ups a second, private and resident memory."""

    def __init__(self, pid, seconds):
        before = Usage(pid)
        time.sleep(seconds)
        after = Usage(pid)
        self.share, self.wakeups = after.share_since(before), after.wakeups_since(before)
        self.private = private_memory(pid)
        self.peak = number(f"/proc/{pid}/status", "VmHWM") * 1024


def steady(laboratory, capture, rate, seconds, start):
    """Runs what `start` starts for a controller; whether the radio was ever late is told."""
    with Controller(laboratory, capture, rate, warm_up(rate) + seconds + 1) as controller, start(controller) as daemon:
        controller.expect("scanning")
        time.sleep(warm_up(rate))
        result = Steady(daemon.pid, seconds)
        if rate > 0:
            result.late = int(controller.expect("done")[1]) / 1e6
        return result


def daemon(laboratory, beacond, port, **keys):
    state = tempfile.mkdtemp(dir=laboratory.folder)
    value = {"state_directory": state, "beacons": known(BEACONS), "sinks": [mqtt_sink(port)]} | keys
    return lambda controller: beacond_run(laboratory, beacond, controller, value)


def costs(laboratory, beacond, port, runs, seconds, quick):
    """Results by (program, rate)."""
    capture = write_rounds(laboratory.path("steady"), BEACONS, BEACONS * 10, 1000)

    def python(name, *options):
        command = [PYTHON, f"{HERE}/python_peers.py", name, *options, "--socket"]
        return lambda controller: Daemon(laboratory, [*command, controller.socket])

    programs = {
        "beacond to MQTT": daemon(laboratory, beacond, port),
        "C, poll and read": lambda controller: Daemon(laboratory, [laboratory.program("reader"), controller.socket]),
        "habluetooth, no sink": python("habluetooth"),
    }
    if not quick:
        programs["aioblescan, no sink"] = python("aioblescan")
        programs["theengsgateway to MQTT"] = python("theengsgateway", "--mqtt", str(port))
    measurements = {
        (name, rate): lambda start=start, rate=rate: steady(laboratory, capture, rate, seconds, start)
        for rate in (RATES[-1:] if quick else RATES) for name, start in programs.items()
    }
    results = in_turn(runs, measurements)
    results["beacond, a radio that hears nothing", 0] = [
        steady(laboratory, "none", 0, seconds * runs, daemon(laboratory, beacond, port))]
    return results


# MARK: Latency


def latencies(laboratory, beacond, port, rate, seconds):
    """By kind of event: milliseconds from an advertisement to its message, sorted, and how many have no message."""
    # A visitor is silent for longer than its exit time of a second: each of its advertisements is an enter.
    visitors = rate // 20 * PERIOD
    count = int(rate * (seconds + warm_up(rate)))
    advertisements = list(visits(count, BEACONS, visitors))
    capture = write(laboratory.path("latency"), advertisements, rate)
    times, log = laboratory.path("times"), laboratory.path("messages")
    start = daemon(
        laboratory, beacond, port, beacons=known(BEACONS) + known(visitors, BEACONS, exit_time="1s"),
        presence={"enter_count": 1, "report_interval": "0s"})
    with Controller(laboratory, capture, rate, count / rate, times) as controller:
        subscriber = Subscriber(laboratory, port, "beacond/bench/ibeacon/#", log)
        with start(controller):
            controller.expect("scanning")
            controller.expect("done")
            time.sleep(1.5)
        subscriber.stop()
    with open(times, "rb") as file:
        sent = [moment for moment, in struct.iter_unpack("q", file.read())]
    begin = sent[0] + warm_up(rate) * 1e9
    moments = {"sighting": {}, "enter": {}}
    for (minor, round_number), moment in zip(advertisements, sent):
        if moment >= begin:
            moments["enter" if minor >= BEACONS else "sighting"].setdefault((minor, strength(round_number)), moment)
    found = {"sighting": {}, "enter": {}}
    with open(log, encoding="utf-8") as file:
        for line in file:
            came, _, payload = line.split("\t", 2)
            event = json.loads(payload)
            # A state has no "event".
            kind, key = event.get("event"), (event.get("minor"), event.get("rssi"))
            if kind in moments and key in moments[kind] and int(came) > moments[kind][key]:
                found[kind].setdefault(key, (int(came) - moments[kind][key]) / 1e6)
    return {kind: (sorted(found[kind].values()), len(moments[kind]) - len(found[kind])) for kind in moments}


def share(values, part):
    """The value below which that part of the sorted values is."""
    return values[min(len(values) - 1, int(len(values) * part))]


def report(results, waits):
    rows = []
    for (name, rate), of in results.items():
        floor = results.get(("C, poll and read", rate))
        ratio = f"{median([a.share / b.share for a, b in zip(of, floor)]):,.2f}" if floor else ""
        late = max((run.late for run in of), default=0) if rate else 0
        rows.append([
            name, f"{rate:,}", three([run.share for run in of], ".3f"), ratio,
            f"{median([run.wakeups for run in of]):,.0f}", f"{max(run.private for run in of) / 1048576:.1f}",
            f"{max(run.peak for run in of) / 1048576:.1f}", f"{late:.0f}" if rate else "",
        ])
    ours, floor = results["beacond to MQTT", 1000], results["C, poll and read", 1000]
    idle = results["beacond, a radio that hears nothing", 0][0]
    goals = [
        ["CPU at 1,000 a second, × C, poll and read", "1", f"{median([a.share / b.share for a, b in zip(ours, floor)]):.2f}"],
        ["CPU while nothing is heard, %", "0.05", f"{idle.share:.3f}"],
    ]
    latency = [
        [kind, f"{rate:,}", f"{len(values):,}", f"{missing:,}", *(f"{share(values, part):,.1f}" for part in (0.5, 0.99, 0.999))]
        for (kind, rate), (values, missing) in waits.items() if values
    ]
    return f"""- {versions()}

{table(["program", "advertisements a second", "CPU, % of a core, median (range)", "× C, poll and read", "wake-ups a second",
        "private MiB", "peak MiB", "packet late by at most, ms"], rows)}

{BEACONS} beacons that the configuration names. A packet that leaves late waited for the program to read: its socket was full, or the machine was busy.

{table(["message", "advertisements a second", "measured", "missing", "median ms", "99 % ms", "99.9 % ms"], latency)}

{table(["goal", "wanted at most", "reached"], goals)}

From the moment at which the packet is written to the transport to the moment at which a subscriber has the message; the outbox is on disk. One advertisement in twenty is the first one of a visitor, and makes an "enter", which is committed to disk before it is published at QoS 1; the others are sightings, which are gathered for a while before they are published."""


def main():
    arguments = argument_parser(__doc__).parse_args()
    quick = arguments.quick
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(folder)
        beacond = laboratory.stripped(arguments.beacond)
        broker = Broker(folder)
        broker.start()
        try:
            results = costs(laboratory, beacond, broker.port, 1 if quick else 3, 2 if quick else 20, quick)
            waits = {
                (kind, rate): of for rate in (RATES[-1:] if quick else RATES)
                for kind, of in latencies(laboratory, beacond, broker.port, rate, 4 if quick else 30).items()
            }
        finally:
            broker.stop()
        conclude(arguments, "steady", report(results, waits))


if __name__ == "__main__":
    main()
