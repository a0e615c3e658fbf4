# SPDX-License-Identifier: Apache-2.0
"""The iTAG data: tags that stayed for 20 minutes, and the same streams cut short."""

import csv
import os
from collections import defaultdict

import measure
import numpy as np
import recording
import worlds

FILE = "uci-itag-vestibule-raw.csv"
# After a cut the clock runs on for longer than any exit time.
AFTERWARDS = 3600.0


def find(folder):
    for place in ("", "rssi"):
        path = os.path.join(folder, place, FILE)
        if os.path.exists(path):
            return path
    return None


def read(path):
    """(seconds, dBm) of each tag, in the order of their names."""
    streams = defaultdict(list)
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            streams[row["tag"]].append((int(row["timestamp_ms"]) / 1000, int(row["rssi_one"])))
    begin = min(min(stream)[0] for stream in streams.values())
    return {tag: np.array(sorted(stream)) - [begin, 0] for tag, stream in sorted(streams.items())}


def halves(streams):
    """Every other tag for tuning, the others held out."""
    tags = list(streams)
    return {"tuning": tags[0::2], "held out": tags[1::2]}


def world(streams, cuts=None):
    """The streams as a world; a tag with a cut leaves at that moment."""
    tracks = []
    for number, stream in enumerate(streams):
        end = stream[-1, 0] if cuts is None or cuts[number] is None else cuts[number]
        heard = stream[stream[:, 0] <= end]
        stay = worlds.Stay(stream[0, 0], end, end)
        tracks.append(worlds.Track([stay], heard[:, 0], np.zeros(len(heard), np.int8), heard[:, 1].astype(np.int16)))
    end = max(track.stays[0].departure for track in tracks)
    return worlds.World("itag", end, [worlds.Radio()], tracks)


def evaluate(beacond, streams, settings, cut_count, seed):
    """False exits of the whole streams and what the cuts gave, by the name of the setting.

    All tags are cut in each of `cut_count` runs, each at a moment of its own.
    """
    rng = np.random.default_rng([seed, 20])
    path = os.path.join(beacond.folder, "itag.jsonl")
    scores = {name: measure.Score() for name in settings}
    wrong = {name: 0 for name in settings}

    def run(scene, presence):
        events = beacond.replay(path, presence, name="itag")
        return recording.transitions(events, len(scene.tracks))

    whole = world(streams)
    recording.write(whole, path)
    for name, presence in settings.items():
        enters, exits, limits = run(whole, presence)
        for number, track in enumerate(whole.tracks):
            staying = [moment for moment in exits[number] if moment <= track.times[-1]]
            scores[name].add(measure.Score(
                hours=(track.times[-1] - track.times[0]) / 3600, false_exits=len(staying), limits={}))
    for _ in range(cut_count):
        cuts = [float(rng.uniform(stream[0, 0] + 60, stream[-1, 0])) for stream in streams]
        scene = world(streams, cuts)
        scene.end += AFTERWARDS
        recording.write(scene, path)
        for name, presence in settings.items():
            enters, exits, limits = run(scene, presence)
            for number, track in enumerate(scene.tracks):
                last = track.times[-1]
                after = [moment for moment in exits[number] if moment > last]
                was_there = not exits[number] or len(enters[number]) > len(exits[number]) - len(after)
                if was_there and len(after) != 1 or len(after) > 1:
                    wrong[name] += 1
                scores[name].departures += 1
                if after:
                    scores[name].exit_delays.append(after[0] - cuts[number])
    os.remove(path)
    # Fixed times on the same streams and cuts.
    fixed = measure.FixedTimes(whole.tracks, whole.end)
    fixed.gaps = np.sort(np.concatenate([np.diff(track.times) for track in whole.tracks]))
    rng = np.random.default_rng([seed, 20])
    for _ in range(cut_count):
        for stream in streams:
            cut = float(rng.uniform(stream[0, 0] + 60, stream[-1, 0]))
            fixed.lags.append(cut - stream[stream[:, 0] <= cut][-1, 0])
    return scores, wrong, fixed
