#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the disk of the outbox while beacond publishes to a real broker.

The state directory is a small tmpfs in a mount namespace of its own; who is not root gets that in a user namespace. Every transition that the
engine made (the json sink's file, on another disk) must reach the broker, in order, each key (stream, seq) for one
transition only; after a SIGKILL while the disk is full only what was in memory may be missing.

- filled: the disk becomes full while the broker is away, stays full when it is back, and is freed.
- killed: the same, and SIGKILL while it is full; the next run finds it full.
- full from the start, read-only from the start: there is no database yet; then it can be made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from broker_kills import make_scenario
from support import Beacon, Broker, Subscriber, end, end_cleanly_when_asked, wait_until, write_json

GATEWAY = "full"
SIZE = "4m"
TRANSITIONS = {"enter", "exit", "region_enter", "region_exit", "proximity", "adapter", "health", "flood"}
MOST_DUPLICATES = 20
RECOVERY = 5.0  # seconds from the room's return until the disk is written again
IN_MEMORY = "go on in memory"
AGAIN = "can be written again"


class Disk:
    """A small file system, and a file that takes whatever room it has."""

    def __init__(self, path, options=""):
        self.path = path
        self.filler = os.path.join(path, "filler")
        self.stopping = threading.Event()
        self.thread = None
        os.mkdir(path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}{options}", "tmpfs", path], check=True)

    def fill(self):
        """Also takes what is given back later."""
        self.stopping.clear()
        full = threading.Event()

        def work():
            with open(self.filler, "ab", buffering=0) as file:
                while not self.stopping.wait(0.01):
                    try:
                        while file.write(bytes(4096)) == 4096:
                            pass
                    except OSError:
                        full.set()

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()
        if not full.wait(10):
            raise SystemExit("the disk does not become full")

    def free(self):
        if self.thread is None:
            return
        self.stopping.set()
        self.thread.join()
        self.thread = None
        os.unlink(self.filler)

    def remount(self, options):
        # Without its size the kernel refuses it in a user namespace.
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"remount,{options},size={SIZE}", "tmpfs", self.path], check=True)

    def close(self):
        self.free()
        subprocess.run(["umount", self.path], check=False)


class Run:
    """One gateway on one disk with one broker, through as many processes as it takes."""

    def __init__(self, program, folder, options, generator_seed, duration):
        import random

        self.program, self.folder = program, folder
        self.disk = Disk(os.path.join(folder, "state"), options)
        self.broker = Broker(folder)
        scenario = make_scenario(random.Random(generator_seed), duration)
        self.scenario = os.path.join(folder, "scenario.json")
        write_json(self.scenario, scenario)
        self.events = os.path.join(folder, "events.jsonl")
        self.configuration = os.path.join(folder, "plugins.json")
        beacons = [Beacon(entry) for entry in scenario["beacons"]]
        write_json(
            self.configuration,
            {
                "gateway": {"id": GATEWAY},
                "state_directory": self.disk.path,
                "presence": {"exit_time": "2s"},
                "beacons": [beacon.configuration for beacon in beacons],
                "regions": [{"name": "floor-1", "format": "ibeacon", "uuid": beacons[0].identity["uuid"], "major": 1}],
                "sinks": [
                    {"kind": "json", "config": {"path": self.events}},
                    {"kind": "mqtt", "config": {"host": "127.0.0.1", "port": self.broker.port}},
                ],
            },
        )
        self.log_path = os.path.join(folder, "log")
        self.log = open(self.log_path, "ab")
        self.process = None
        self.subscriber = None
        self.received = []  # (stream, seq, event) in order of arrival

    def start(self):
        command = [self.program, "run", "--config", self.configuration, "--source", f"simulate:{self.scenario}"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log)

    def start_broker(self):
        self.broker.start()
        self.subscriber = Subscriber(self.broker.port, f"beacond/{GATEWAY}/#", self._take)

    def kill_broker(self):
        self.broker.kill()
        self.subscriber.stop()

    def _take(self, topic, payload, is_retained):
        if is_retained or not topic.endswith("/event"):
            return
        event = json.loads(payload)
        if "stream" in event:
            self.received.append(event)

    def says(self, sentence):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read().count(sentence)

    def truth(self):
        """What the engine said."""
        with open(self.events, encoding="utf-8") as file:
            events = [json.loads(line) for line in file if line.endswith("\n")]
        return [event for event in events if event["event"] in TRANSITIONS]

    def close(self):
        if self.process is not None:
            end(self.process)
        self.broker.stop()
        if self.subscriber is not None:
            self.subscriber.stop()
        self.log.close()
        self.disk.close()


def identity(event):
    """What makes a transition itself, wherever it is read."""
    subject = event.get("region") or event.get("minor", event.get("adapter", ""))
    return event["event"], event["time"], str(subject)


def examine(name, run, problems, may_lack=lambda index: False):
    """Compares what came with what happened, and prints a row."""
    expected = [identity(event) for event in run.truth()]
    keys, order, duplicates = {}, [], 0
    for event in run.received:
        key = event["stream"], event["seq"]
        if event["event"] == "gap":
            problems.append(f"{name}: a gap {event['first_seq']} to {event['last_seq']}")
            continue
        if key in keys:
            duplicates += 1
            if keys[key] != identity(event):
                problems.append(f"{name}: the key {key} stands for two transitions")
            continue
        keys[key] = identity(event)
        order.append(identity(event))
    places = {}
    for index, item in enumerate(expected):
        places.setdefault(item, []).append(index)
    found = [places[item].pop(0) for item in order if places.get(item)]
    strangers = len(order) - len(found)
    lost = sorted(set(range(len(expected))) - set(found))
    inversions = sum(later < earlier for earlier, later in zip(found, found[1:]))
    unexplained = [index for index in lost if not may_lack(index)]
    streams = len({stream for stream, _ in keys})
    print(
        f"{name:>22}: {len(expected)} transitions, {len(found)} arrived, {len(lost)} lost, {duplicates} duplicates,"
        f" {inversions} inversions, {streams} streams",
        flush=True,
    )
    if unexplained:
        problems.append(f"{name}: {len(unexplained)} lost that were not in memory, first {expected[unexplained[0]]}")
    if inversions:
        problems.append(f"{name}: {inversions} out of order")
    if strangers:
        problems.append(f"{name}: {strangers} arrived that nobody made, first {next(i for i in order if i not in places)}")
    if duplicates > MOST_DUPLICATES:
        problems.append(f"{name}: {duplicates} duplicates")
    return streams


def arrived(run):
    """Whether the broker has everything that the engine made until this moment."""
    goal = {identity(event) for event in run.truth()}
    return wait_until(lambda: goal <= {identity(event) for event in list(run.received)}, 20, 0.2)


def await_log(run, sentence, count, seconds, problems, name):
    started = time.monotonic()
    if not wait_until(lambda: run.says(sentence) >= count, seconds):
        problems.append(f"{name}: the log does not say '{sentence}' within {seconds:.0f} s")
        return seconds
    return time.monotonic() - started


def filled(run, problems):
    run.start_broker()
    run.start()
    time.sleep(8)
    run.kill_broker()
    run.disk.fill()
    # What waits for the broker does not fit into the database any more.
    await_log(run, IN_MEMORY, 1, 60, problems, "filled")
    time.sleep(5)
    run.start_broker()
    if not arrived(run):
        problems.append("filled: while the disk was full not everything arrived")
    time.sleep(5)
    run.disk.free()
    took = await_log(run, AGAIN, 1, RECOVERY, problems, "filled")
    print(f"{'':>22}  written again {took:.1f} s after there was room")
    time.sleep(5)
    status = end(run.process, 10)
    if status != 0:
        problems.append(f"filled: ended with status {status}")
    time.sleep(1)
    if examine("filled", run, problems) < 2:
        problems.append("filled: the stream did not change")


def killed(run, problems):
    run.start_broker()
    run.start()
    time.sleep(6)
    run.kill_broker()
    run.disk.fill()
    await_log(run, IN_MEMORY, 1, 60, problems, "killed")
    start = len(run.truth())
    time.sleep(4)
    run.process.kill()
    run.process.wait()
    stop = len(run.truth())
    run.start()
    time.sleep(4)
    if run.process.poll() is not None:
        problems.append("killed: it does not start on a full disk")
    run.start_broker()
    if not wait_until(lambda: len(run.received) > 0, 30):
        problems.append("killed: nothing arrives after the start on a full disk")
    time.sleep(6)
    run.disk.free()
    time.sleep(8)
    end(run.process, 10)
    time.sleep(1)
    # The line of the log comes a moment after the first transition that only memory had, and the json sink's line a
    # moment after the transition.
    examine("killed", run, problems, lambda index: start - 8 <= index < stop + 1)


def from_the_start(name, run, problems, spoil, mend):
    spoil()
    run.start_broker()
    run.start()
    time.sleep(8)
    if run.process.poll() is not None:
        problems.append(f"{name}: it does not start")
        return
    if not arrived(run):
        problems.append(f"{name}: not everything arrived")
    mend()
    # A read-only disk is tried less and less often.
    await_log(run, AGAIN, 1, 30, problems, name)
    time.sleep(4)
    end(run.process, 10)
    time.sleep(1)
    examine(name, run, problems)
    if os.path.getsize(os.path.join(run.disk.path, "outbox.sqlite")) == 0:
        problems.append(f"{name}: there is no database")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--beacond", required=True, help="the program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", action="store_true", help="show beacond's log at the end")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return subprocess.run(["unshare", "--mount", *as_root, sys.executable, *sys.argv, "--inside"], check=False).returncode

    end_cleanly_when_asked()
    program = os.path.abspath(arguments.beacond)
    problems = []
    cases = [
        ("filled", "", lambda run: filled(run, problems)),
        ("killed", "", lambda run: killed(run, problems)),
        (
            "full from the start",
            "",
            lambda run: from_the_start("full from the start", run, problems, run.disk.fill, run.disk.free),
        ),
        (
            "read-only at first",
            ",ro",
            lambda run: from_the_start(
                "read-only at first", run, problems, lambda: None, lambda: run.disk.remount("rw")
            ),
        ),
    ]

    def attempt(name, options, case):
        with tempfile.TemporaryDirectory(prefix="beacond-disk-") as folder:
            before = len(problems)
            run = Run(program, folder, options, arguments.seed, 300)
            try:
                case(run)
            except (OSError, SystemExit) as error:
                problems.append(f"{name}: {error}")
            finally:
                run.close()
                if len(problems) > before or arguments.log:
                    with open(run.log_path, encoding="utf-8", errors="replace") as file:
                        sys.stderr.writelines(file.readlines()[-60:])

    threads = [threading.Thread(target=attempt, args=case) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
