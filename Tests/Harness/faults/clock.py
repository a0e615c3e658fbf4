# SPDX-License-Identifier: Apache-2.0
"""The wall clock is set while the gateway runs: F8."""

import datetime
import os
import shutil
import struct
import subprocess
import time

from harness import HERE, Bench, Unavailable, Verdict, fault
from support import seconds

EXIT_TIME = 2  # seconds
YEAR = 365 * 86_400
JUMPS = (YEAR, -YEAR, 3600, -3600)  # seconds from the true time


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class WallClock:
    """What clock.c reads."""

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
        bench.gateway.environment |= {"LD_PRELOAD": library, "WALL_CLOCK": self.path}

    def set(self, offset, follows_source=True):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=qq", offset, not follows_source))


@fault("F8", "wall clock set by a year and an hour, there and back")
def jumps(options):
    span = 4 if options.quick else 30
    verdict = Verdict("0 false transitions, exit times exact, clock_synchronized follows, order kept, 0 lost, 0 duplicates",
                      runs=len(JUMPS), duplicates=0)
    with Bench(options) as bench:
        clock = WallClock(bench)
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
