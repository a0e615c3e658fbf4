# SPDX-License-Identifier: Apache-2.0
"""Clocks that lie to the gateway: F8, where the wall clock is set, and a day that passes in a quarter of an hour."""

import datetime
import os
import shutil
import struct
import subprocess
import time

from harness import HERE, UUID, Bench, Failure, Unavailable, Verdict, fault
from network import MIB, await_birth
from support import seconds

EXIT_TIME = 2  # seconds
YEAR = 365 * 86_400
JUMPS = (YEAR, -YEAR, 3600, -3600)  # seconds from the true time


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Clock:
    """What clock.c reads."""

    NEVER = 2**63 - 1

    def __init__(self, bench):
        self.path = os.path.join(bench.folder, "clock")
        library = os.path.join(bench.folder, "clock.so")
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise Unavailable("no C compiler; .ci/packages installs one")
        subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library,
                        os.path.join(HERE, "clock.c")], check=True)
        with open(self.path, "wb") as file:
            file.write(bytes(4096))
        self._write(2, 1, self.NEVER, self.NEVER)
        bench.gateway.environment |= {"LD_PRELOAD": library, "FAULT_CLOCK": self.path}

    def set(self, offset, follows_source=True):
        """Seconds to add to the wall clock."""
        self._write(0, offset, not follows_source)

    def run(self, speed):
        """From now on so many times as fast, once."""
        self._write(2, speed)
        self._write(3, time.monotonic_ns() + 20_000_000)

    def walk(self):
        """As fast as the world again; what the clock is ahead it stays."""
        self._write(4, time.monotonic_ns() + 20_000_000)
        time.sleep(0.05)

    def _write(self, place, *values):
        with open(self.path, "r+b") as file:
            file.seek(place * 8)
            file.write(struct.pack(f"={len(values)}q", *values))


@fault("F8", "wall clock set by a year and an hour, there and back")
def jumps(options):
    span = 4 if options.quick else 30
    verdict = Verdict("0 false transitions, exit times exact, clock_synchronized follows, order kept, 0 lost, 0 duplicates",
                      runs=len(JUMPS), duplicates=0)
    with Bench(options) as bench:
        clock = Clock(bench)
        bench.recorder.judges_time = False
        bench.recorder.keeps = True
        # Of two seconds of a beacon's advertisements one is heard for sure, whatever the others send.
        bench.gateway.configuration["presence"]["exit_time"] = f"{EXIT_TIME}s"
        bench.begin((2 * span + 1) * len(JUMPS) + 120, rate=5, warm_up=2)
        scenario = bench.started_with
        for offset in JUMPS:
            clock.set(offset)
            time.sleep(span)
            before = bench.gateway.truth()
            clock.set(offset, follows_source=False)
            time.sleep(span)
            bench.expect(lambda: bench.recorder.highest >= before + span // 2, 30, "transitions go on after the clock was set")
            newest = bench.recorder.kept[-1]
            verdict.must(f"{offset:+} s: an event says {newest['time']}",
                         abs(moment(newest["time"]) - time.time() - offset) < 30)
        clock.set(0)
        time.sleep(2)
        bench.finish(verdict)
        lived = bench.gateway.ended - bench.gateway.began
        events = bench.recorder.kept
    unsynchronized = sum(event.get("clock_synchronized") is False for event in events)
    verdict.must("no event says that the clock is not synchronized", unsynchronized > 0)
    verdict.must("all events say that the clock is not synchronized", unsynchronized < len(events))
    exits = [event for event in events if event["event"] == "exit" and event["reason"] == "timeout"]
    off = [event for event in exits if abs(moment(event["time"]) - moment(event["last_seen"]) - EXIT_TIME) > 0.5]
    verdict.must(f"{len(off)} of {len(exits)} exits are not {EXIT_TIME} s after the last sighting: {off[:1]}", not off)
    for number, beacon in enumerate(scenario["beacons"]):
        enters = sum(event["event"] == "enter" and event["minor"] == number for event in events if "minor" in event)
        visits = beacon.get("visits", [{"from": "0s", "to": "999999s"}])
        # What began a moment before the end may have been seen or not.
        least = sum(seconds(visit["from"]) < lived - 5 for visit in visits)
        most = sum(seconds(visit["from"]) < lived + 1 for visit in visits)
        verdict.must(f"beacon {number}: {enters} enters, {least} to {most} are true", least <= enters <= most)
    verdict.notes.append(f"{len(exits)} exits, {unsynchronized} of {len(events)} events with a clock that follows nothing")
    return verdict


# MARK: A day

SPEED = 100
CYCLE = 480  # seconds, in which a beacon comes and goes once
STAY = 200  # of them it is there


def visitors(duration, rate):
    """Beacons that come and go so that `rate` transitions happen in a second, each at its own time; and one that stays."""
    count = round(rate * CYCLE / 2)
    beacons = []
    for number in range(count):
        start = number * CYCLE / count - STAY
        visits = []
        while start < duration:
            visits.append({"from": f"{max(0, start):.1f}s", "to": f"{start + STAY:.1f}s"})
            start += CYCLE
        beacons.append({"visits": [visit for visit in visits if seconds(visit["to"]) > seconds(visit["from"])]})
    return [
        beacon | {"alias": f"beacon {number}", "uuid": UUID, "major": 0, "minor": number, "interval": "5s"}
        for number, beacon in enumerate([*beacons, {}])
    ]


@fault("D24", "broker away for 24 h at 0.5 transitions a second, on a clock that runs 100 times as fast")
def day(options):
    rate, span = 0.5, options.length(86_400)
    verdict = Verdict("0 lost, ≤ 20 duplicates, ≤ 4 MiB, the times of a day", growth=4 * MIB)
    with Bench(options) as bench:
        clock = Clock(bench)
        # The clock of the world is not that of the events.
        bench.recorder.judges_time = False
        bench.recorder.keeps = True
        gateway = bench.gateway
        gateway.configuration["presence"]["exit_time"] = "30s"
        gateway.use({"seed": bench.generator.randrange(2**31), "duration": f"{span + 1200}s",
                     "beacons": visitors(span + 1200, rate)})
        bench.start_broker()
        gateway.start()
        bench.expect(lambda: bench.recorder.highest >= 20, 60, "20 transitions arrive")
        time.sleep(6)
        bench.baseline = gateway.memory()
        bench.watch_memory()
        bench.kill_broker()
        before, away = gateway.truth(), time.time()
        clock.run(SPEED)
        time.sleep(span / SPEED)
        clock.walk()
        missed = gateway.truth() - before
        back = time.monotonic()
        bench.start_broker()
        born = await_birth(bench, back, 90)
        if born is None:
            raise Failure("no connection within 90 s of the broker's return")
        took = bench.drained()
        verdict.recovered(took)
        verdict.growth = bench.growth()
        bench.finish(verdict)
        times = [moment(event["time"]) for event in bench.recorder.kept]
    verdict.must(f"{missed} transitions in {span} s, {rate} a second wanted", missed >= 0.9 * rate * span)
    verdict.must("times run backwards", all(b >= a for a, b in zip(times, times[1:])))
    longest = max((b - a for a, b in zip(times, times[1:])), default=span)
    verdict.must(f"{times[-1] - away:.0f} s of {span} are told of", times[-1] - away >= 0.99 * span)
    verdict.must(f"nothing for {longest:.0f} s", longest <= 60)
    verdict.notes.append(
        f"{missed:,} transitions in {(times[-1] - away) / 3600:.1f} h of the gateway's clock without a broker, at most"
        f" {longest:.0f} s between two, all read {took or 0:.1f} s after the birth")
    return verdict
