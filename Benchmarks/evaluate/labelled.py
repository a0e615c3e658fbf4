# SPDX-License-Identifier: Apache-2.0
"""Filters of the signal strength on labelled data: near or far, and which of four rooms.

beacond's own filter comes out of a replay; the others are written here from what is known of them.
"""

import csv
import gzip
import json
import os
from collections import defaultdict

import numpy as np
import recording
import worlds

PROXIMITY_FILE = "mit-matrix-proximity.csv.gz"
TRACKS_FILE = "tetam-tracks.csv.gz"
SENSORS_FILE = "tetam-sensors.dev"
# 6 ft: the distance that the data was recorded to decide about.
NEAR_FEET = 6
# A receiver that heard nothing for so long says nothing of the room.
FORGOTTEN = 5.0


def last(times, values):
    return np.array(values, float)


def kalman(times, values, process=0.008, measurement=4.0):
    """room-assistant: a constant seen through noise."""
    result, estimate, variance = [], None, 0.0
    for value in values:
        if estimate is None:
            estimate, variance = value, measurement
        else:
            variance += process
            gain = variance / (variance + measurement)
            estimate += gain * (value - estimate)
            variance *= 1 - gain
        result.append(estimate)
    return np.array(result)


def fenced_mean(times, values, window=15.0, fence=1.5, most=200):
    """ESPresense: the mean of 15 s within Tukey's fences."""
    result, begin = [], 0
    values = np.array(values, float)
    for end in range(1, len(values) + 1):
        while times[end - 1] - times[begin] > window or end - begin > most:
            begin += 1
        recent = values[begin:end]
        low, high = np.quantile(recent, [0.25, 0.75])
        margin = fence * (high - low)
        result.append(recent[(recent >= low - margin) & (recent <= high + margin)].mean())
    return np.array(result)


def smoothed(times, values, share=0.3):
    """habluetooth: an exponential mean."""
    result, mean = [], None
    for value in values:
        mean = value if mean is None else mean + share * (value - mean)
        result.append(mean)
    return np.array(result)


FILTERS = {
    "none": last,
    "room-assistant's Kalman": kalman,
    "ESPresense's fenced mean": fenced_mean,
    "habluetooth's smoothing": smoothed,
}


# beacond's own, by the value of `filter`.
OWN_FILTERS = {"beacond: mean of 5": "mean", "beacond: strongest of 5": "maximum"}


def replayed(beacond, streams, own):
    """The filtered strengths that beacond reports for each of the streams (times, values)."""
    tracks, end = [], 0.0
    for times, values in streams:
        times = np.asarray(times, float) - times[0] + end + 60.0
        end = times[-1]
        tracks.append(worlds.Track([], times, np.zeros(len(times), np.int8), np.array(values, np.int16)))
    path = os.path.join(beacond.folder, "labelled.jsonl")
    recording.write(worlds.World("labelled", end, [worlds.Radio()], tracks), path)
    # Each stream is a beacon of its own, present from its first sighting on; every sighting is reported.
    settings = {"enter_count": 1, "report_interval": "0s", "exit_time": "1h", "filter": own}
    events = beacond.replay(path, settings, name="labelled", sightings=True)
    os.remove(path)
    result = [[] for _ in streams]
    for event in events:
        if event["event"] in ("enter", "sighting"):
            result[int(event["irk_id"], 16)].append(event["rssi_filtered"])
    return [np.array(values) for values in result]


def find(folder, name):
    for place in ("", "rssi"):
        path = os.path.join(folder, place, name)
        if os.path.exists(path):
            return path
    return None


def read_proximity(path):
    """(times, values, feet) of each recording."""
    groups = defaultdict(list)
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rssi = int(float(row["rssi"]))
            if rssi < 20:
                key = tuple(row[name] for name in (
                    "scenario", "environment", "beacon_device", "receiver_device", "beacon_place", "receiver_place",
                    "range_ft"))
                groups[key].append((float(row["elapsed_s"]), rssi))
    result = []
    for key, rows in sorted(groups.items()):
        rows.sort()
        if len(rows) >= 20:
            result.append(([time for time, _ in rows], [value for _, value in rows], float(key[-1])))
    return result


def balanced_accuracy(is_near, says_near):
    return (says_near[is_near].mean() + (~says_near[~is_near]).mean()) / 2


def proximity(beacond, folder):
    """(filter, balanced accuracy, changes of mind a minute) on the held-out half; None without the data."""
    path = find(folder, PROXIMITY_FILE)
    if path is None:
        return None
    groups = read_proximity(path)
    streams = [(times, values) for times, values, _ in groups]
    outputs = {name: [rule(*stream) for stream in streams] for name, rule in FILTERS.items()}
    outputs.update((name, replayed(beacond, streams, own)) for name, own in OWN_FILTERS.items())
    rows = []
    for name, filtered in outputs.items():
        def half(first):
            values = np.concatenate(filtered[first::2])
            near = np.concatenate([np.full(len(filtered[i]), groups[i][2] <= NEAR_FEET)
                                   for i in range(first, len(groups), 2)])
            return values, near
        values, near = half(0)
        thresholds = np.arange(-95, -40, 0.5)
        best = max(thresholds, key=lambda threshold: balanced_accuracy(near, values >= threshold))
        values, near = half(1)
        minutes = sum((times[-1] - times[0]) / 60 for times, _ in streams[1::2])
        changes = sum(int(np.count_nonzero(np.diff(each >= best))) for each in filtered[1::2])
        rows.append((name, float(best), float(balanced_accuracy(near, values >= best)), changes / minutes))
    return rows


def room(x, y):
    """The quarter of the floor, from where its three receivers hang."""
    return (0 if y < 9 else 1) if x < 10 else (3 if y < 9 else 2)


def read_tracks(path, sensors_path):
    with open(sensors_path, encoding="utf-8") as file:
        text = file.readline().split(":", 1)[1]
    sensors = {name: place[0] for name, place in json.loads(text).items()}
    tracks = defaultdict(list)
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["sensor"] in sensors:
                tracks[row["track"]].append((float(row["timestamp"]), row["sensor"], int(row["rssi"]),
                                             room(float(row["x"]), float(row["y"]))))
    return sensors, {name: sorted(rows) for name, rows in sorted(tracks.items())}


def rooms(beacond, folder):
    """(filter, share of sightings at which the room is right, changes of room a minute); None without the data."""
    path, sensors_path = find(folder, TRACKS_FILE), find(folder, SENSORS_FILE)
    if path is None or sensors_path is None:
        return None
    sensors, tracks = read_tracks(path, sensors_path)
    streams, places = [], []
    for name, rows in tracks.items():
        for sensor in sensors:
            mine = [index for index, row in enumerate(rows) if row[1] == sensor]
            if mine:
                streams.append(([rows[index][0] for index in mine], [rows[index][2] for index in mine]))
                places.append((name, mine))
    outputs = {name: [rule(*stream) for stream in streams] for name, rule in FILTERS.items()}
    outputs.update((name, replayed(beacond, streams, own)) for name, own in OWN_FILTERS.items())
    rows = [(name, *choose(tracks, sensors, places, filtered, 0.0)) for name, filtered in outputs.items()]
    rows.append(("habluetooth's smoothing and hysteresis of 16 dB",
                 *choose(tracks, sensors, places, outputs["habluetooth's smoothing"], 16.0)))
    rows += [(f"{name}, and hysteresis of 6 dB", *choose(tracks, sensors, places, outputs[name], 6.0))
             for name in OWN_FILTERS]
    return rows


def choose(tracks, sensors, places, filtered, margin):
    """The room of the strongest receiver; another one must be stronger by the margin."""
    strengths = defaultdict(dict)
    for (name, indices), values in zip(places, filtered):
        strengths[name].update(zip(indices, values))
    right = total = changes = 0
    minutes = 0.0
    for name, rows in tracks.items():
        known, owner, before = {}, None, None
        minutes += (rows[-1][0] - rows[0][0]) / 60
        for index, (time, sensor, _, truth) in enumerate(rows):
            known[sensor] = (time, strengths[name][index])
            fresh = {each: value for each, (heard, value) in known.items() if time - heard <= FORGOTTEN}
            strongest = max(fresh, key=fresh.get)
            if owner not in fresh or fresh[strongest] > fresh[owner] + margin:
                owner = strongest
            chosen = room(*sensors[owner][:2])
            changes += before is not None and chosen != before
            before = chosen
            right += chosen == truth
            total += 1
    return right / total, changes / minutes
