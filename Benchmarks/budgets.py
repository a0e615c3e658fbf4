#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what can be counted and does not depend on how fast or how busy the machine is, within budgets.json.

Instructions are those of valgrind, as the difference of two sizes of one capture, so that the start-up is not in them.
System calls are those of strace, likewise. Both are counted for an advertisement. Memory is what /proc says of a running
daemon. `goal` in budgets.json is what is wanted, where it is not reached yet; only `budget` is held.
"""

import json
import os
import re
import subprocess
import tempfile
import time

from captures import known, write_rounds
from laboratory import (
    HERE, Broker, Controller, Daemon, Laboratory, argument_parser, beacond_run, memory_with_beacons, mqtt_sink,
    private_memory, table)

BUDGETS = os.path.join(HERE, "budgets.json")
PACKETS = 30_000
# Advertisements a second, and seconds: past the arrivals of all beacons and their acknowledgements.
RATE, SECONDS = 1000, 6


def instructions(laboratory, beacond, options):
    """Of an advertisement of the mix."""
    def count(packets):
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}", beacond, "replay", *options,
             laboratory.capture(packets)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True,
            # Where things are in a hash table is by chance otherwise.
            env=dict(os.environ, SWIFT_DETERMINISTIC_HASHING="1"))
        return int(re.search(r"Collected : ([0-9]+)", done.stderr)[1])

    return (count(2 * PACKETS) - count(PACKETS)) / PACKETS


def system_calls(laboratory, beacond, sinks):
    """Of an advertisement, by all threads, at a steady rate of 500 beacons that the configuration names."""
    capture = write_rounds(laboratory.path("steady"), 500, 5000, RATE)

    def count(seconds):
        log = laboratory.path("calls")
        with Controller(laboratory, capture, RATE, seconds) as controller:
            configuration = laboratory.configuration("run", {
                "gateway": {"id": "bench"}, "log_level": "warning", "control_socket": "none", "beacons": known(500),
                "sources": [f"unix:{controller.socket}"], "sinks": sinks})
            traced = ["strace", "-f", "-c", "-o", log, beacond, "run", "--config", configuration]
            with Daemon(laboratory, traced) as daemon:
                controller.expect("scanning")
                controller.expect("done")
                # strace ends with the program it runs, and not before.
                children = f"/proc/{daemon.pid}/task/{daemon.pid}/children"
                with open(children, encoding="ascii") as file:
                    os.kill(int(file.read().split()[0]), 15)
                daemon.process.wait(20)
        with open(log, encoding="utf-8") as file:
            return int(re.search(r"^100\.00\s.*total$", file.read(), re.MULTILINE)[0].split()[3])

    return (count(2 * SECONDS) - count(SECONDS)) / (SECONDS * RATE)


def private(laboratory, beacond, sinks):
    """Private bytes of a daemon that has started and hears nothing."""
    with Controller(laboratory, "none", 0, 1) as controller:
        with beacond_run(laboratory, beacond, controller, {"beacons": known(1), "sinks": sinks}) as daemon:
            controller.expect("scanning")
            time.sleep(1)
            return private_memory(daemon.pid)


def measure(laboratory, beacond, port):
    """What budgets.json names, in its order."""
    yield "instructions_of_an_advertisement", lambda: instructions(laboratory, beacond, ["--sink", "null"])
    yield "instructions_of_an_advertisement_as_json", lambda: instructions(laboratory, beacond, ["--emit", "sightings"])
    yield "system_calls_of_an_advertisement", lambda: system_calls(laboratory, beacond, [{"kind": "null"}])
    yield "system_calls_of_an_advertisement_to_mqtt", lambda: system_calls(laboratory, beacond, [mqtt_sink(port)])
    yield "bytes_of_a_tracked_beacon", lambda: (
        # As many as are remembered by default.
        memory_with_beacons(laboratory, beacond, 10_000, 10_000) - memory_with_beacons(laboratory, beacond, 1, 10_000)
    ) / 9999
    yield "private_bytes_with_stdout_and_json", lambda: private(
        laboratory, beacond, [{"kind": "stdout"}, {"kind": "json"}])
    yield "private_bytes_with_mqtt", lambda: private(laboratory, beacond, [mqtt_sink(port)])
    yield "bytes_of_the_stripped_program", lambda: os.path.getsize(beacond)


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--record", action="store_true", help="makes what it counts the budgets")
    arguments = parser.parse_args()
    with open(BUDGETS, encoding="utf-8") as file:
        budgets = json.load(file)
    rows, exceeded = [], []
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(folder)
        beacond = laboratory.stripped(arguments.beacond)
        broker = Broker(folder)
        broker.start()
        try:
            for name, count in measure(laboratory, beacond, broker.port):
                entry, value = budgets.setdefault(name, {"tolerance": 0.05}), count()
                if arguments.record:
                    entry["budget"] = round(value, 2) if value < 100 else round(value)
                most = entry["budget"] * (1 + entry["tolerance"])
                if value > most:
                    exceeded.append(name)
                rows.append([name, f"{value:,.2f}" if value < 100 else f"{value:,.0f}", f"{entry['budget']:,}",
                             f"{entry['tolerance'] * 100:.0f} %", f"{entry['goal']:,}" if "goal" in entry else "",
                             "exceeded" if value > most else "lower it" if value < 2 * entry["budget"] - most else ""])
        finally:
            broker.stop()
    print(table(["what", "counted", "budget", "tolerance", "goal", ""], rows))
    if arguments.record:
        with open(BUDGETS, "w", encoding="utf-8") as file:
            json.dump(budgets, file, indent=2)
            file.write("\n")
    if exceeded:
        raise SystemExit(f"beyond the budget of Benchmarks/budgets.json: {', '.join(exceeded)}")


if __name__ == "__main__":
    main()
