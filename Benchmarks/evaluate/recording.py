# SPDX-License-Identifier: Apache-2.0
"""Worlds as JSON lines, and what beacond makes of them."""

import json
import os
import subprocess

import numpy as np


def identity(number):
    """The members that name a beacon: those of the format that is read the fastest, for what is decided does not depend
    on it."""
    return {"format": "irk", "irk_id": f"{number:016x}"}


def write(world, path, measured_power=None):
    """Writes a world for `beacond replay`, in order of time."""
    times = np.concatenate([track.times for track in world.tracks])
    order = np.argsort(times, kind="stable")
    strengths = np.concatenate([track.strengths for track in world.tracks])[order].tolist()
    radios = np.concatenate([track.radios for track in world.tracks])[order].tolist()
    owners = np.concatenate([np.full(len(track.times), number) for number, track in enumerate(world.tracks)])
    owners = owners[order].tolist()
    times = times[order].tolist()
    power = "" if measured_power is None else f', "measured_power": {measured_power}'
    ends = [
        [f', {json.dumps(identity(number))[1:-1]}, "adapter": "hci{radio}"{power}, "rssi": '
         for radio in range(len(world.radios))]
        for number in range(len(world.tracks))
    ]
    changes = sorted(radio_lines(world), key=lambda change: change[0])
    with open(path, "w", encoding="ascii", buffering=1 << 20) as file:
        place = 0
        for time, line in changes:
            behind = place
            while behind < len(times) and times[behind] <= time:
                behind += 1
            file.writelines(
                f'{{"t": {times[i]:.6f}{ends[owners[i]][radios[i]]}{strengths[i]}}}\n' for i in range(place, behind)
            )
            place = behind
            file.write(line)
        file.writelines(
            f'{{"t": {times[i]:.6f}{ends[owners[i]][radios[i]]}{strengths[i]}}}\n' for i in range(place, len(times))
        )
        file.write(f'{{"t": {max(world.end, times[-1] if times else 0):.6f}}}\n')


def radio_lines(world):
    """What each radio does, as (time, line)."""
    for number, radio in enumerate(world.radios):
        def line(time, **members):
            return time, json.dumps({"t": round(max(time, 0.0), 6), "adapter": f"hci{number}", **members}) + "\n"

        yield line(0, window_ms=radio.window * 1e3, interval_ms=radio.interval * 1e3)
        for time, listens in radio.bursts(world.end):
            if time < world.end and not fails(radio, time):
                yield line(time, listening=int(listens))
        for begin, stop in radio.failures:
            yield line(begin, listening=None)
            if stop < world.end:
                yield line(stop, listening=int(radio.is_on(stop)))


def fails(radio, time):
    return any(begin <= time < stop for begin, stop in radio.failures)


class Beacond:
    """The program under evaluation."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def replay(self, recording, presence, name="run", sightings=False):
        """The transitions of a recording, and with `sightings` those, too, as beacond prints them."""
        config = os.path.join(self.folder, f"{name}.json")
        settings = {"presence": {"report_interval": "1h", **presence}}
        with open(config, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        result = subprocess.run(
            [self.path, "replay", "--config", config, recording], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if result.returncode != 0:
            raise SystemExit(f"beacond replay ended with {result.returncode}: {result.stderr.decode()}")
        return [
            json.loads(line)
            for line in result.stdout.splitlines()
            if sightings or not line.startswith(b'{"event":"sighting"')
        ]


def transitions(events, count):
    """Enters, exits, and what limited the exits, of each beacon by its number."""
    enters, exits = [[] for _ in range(count)], [[] for _ in range(count)]
    limits = {}
    for event in events:
        if event["event"] not in ("enter", "exit"):
            continue
        number = int(event["irk_id"], 16)
        if event["event"] == "enter":
            enters[number].append(event["t"])
        else:
            exits[number].append(event["t"])
            limit = event.get("limited_by", "fixed")
            limits[limit] = limits.get(limit, 0) + 1
    return enters, exits, limits
