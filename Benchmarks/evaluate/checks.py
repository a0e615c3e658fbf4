# SPDX-License-Identifier: Apache-2.0
"""Promises that either hold or do not, each on worlds made for it."""

import dataclasses
import math
import os

import measure
import recording
import worlds

# The intervals that makers recommend and some round ones, seconds.
USUAL_INTERVALS = (0.1, 0.1525, 0.21125, 0.31875, 0.4175, 0.54625, 0.76, 0.8525, 1.0225, 1.285, 2.0, 5.0, 10.0)
# The stock scan profiles: window and interval, seconds.
PROFILES = {
    "continuous": worlds.duty(0.1, 0.1),
    "balanced": worlds.duty(0.05875, 0.195),
    "economy": worlds.duty(0.0275, 0.2725),
}


def run(beacond, world, presence, name):
    path = os.path.join(beacond.folder, f"{name}.jsonl")
    recording.write(world, path)
    try:
        return recording.transitions(beacond.replay(path, presence, name=name), len(world.tracks))[:2]
    finally:
        os.remove(path)


def always_there(job):
    """With a stock profile, a beacon that is always there has no exit: (profile, [(interval, exits)])."""
    profile, beacond, presence, days, seed = job
    recipe = worlds.Recipe(
        f"always there, {profile}", intervals=USUAL_INTERVALS, radios=(PROFILES[profile],), beacons=len(USUAL_INTERVALS),
        stay=math.inf)
    world = recipe.make(days * len(USUAL_INTERVALS), seed)
    enters, exits = run(beacond, world, presence, f"always-{profile}")
    return profile, [(interval, len(gone)) for interval, gone in zip(USUAL_INTERVALS, exits)]


def failing_radio(job):
    """A radio that fails for ten minutes makes no enter and no exit of beacons that stayed: (name, transitions)."""
    name, radio, beacond, presence, seed = job
    recipe = worlds.Recipe(
        f"failing radio, {name}", intervals=worlds.MIXED, radios=(radio,), stay=math.inf)
    world = recipe.make(worlds.BEACONS * 2 / 24, seed)
    begin = world.end / 2
    for each in world.radios:
        each.failures = [(begin, begin + 600)]
    for track in world.tracks:
        heard = ~worlds.within(track.times, [(begin, begin + 600)])
        track.times, track.radios, track.strengths = track.times[heard], track.radios[heard], track.strengths[heard]
    enters, exits = run(beacond, world, presence, f"failing-{os.getpid()}")
    return name, sum(len(gone) for gone in exits), sum(max(0, len(came) - 1) for came in enters)


def same_world(job):
    """A continuous and a 10 s-in-60 s run of one world see the same absences.

    `longest` is the longest exit time that the settings allow, seconds. Gives (absences that both must see, those that
    one did not, exits without an absence, how long an absence must be).
    """
    beacond, presence, longest, beacon_days, seed = job
    on, off = 10, 50
    recipe = worlds.Recipe("same world", absence=(20.0, 3600.0), stay=3600.0)
    runs = []
    for radio in (dict(), worlds.burst(on, off)):
        world = dataclasses.replace(recipe, radios=(radio,)).make(beacon_days, seed)
        path = os.path.join(beacond.folder, f"same-{os.getpid()}.jsonl")
        recording.write(world, path)
        events = beacond.replay(path, presence, name=f"same-{os.getpid()}")
        os.remove(path)
        enters, exits, _ = recording.transitions(events, len(world.tracks))
        runs.append((world, enters, exits))
    needed = longest + math.ceil(longest / on) * (on + off) + off
    due = unseen = unfounded = 0
    for world, enters, exits in runs:
        for number, track in enumerate(world.tracks):
            unfounded += measure.score(track, enters[number], exits[number], world.end).false_exits
    for number, track in enumerate(runs[0][0].tracks):
        for stay, following in zip(track.stays, track.stays[1:]):
            if following.arrival - stay.departure <= needed:
                continue
            due += 1
            unseen += any(
                not any(stay.departure <= moment <= following.arrival for moment in exits[number])
                for _, _, exits in runs)
    return due, unseen, unfounded, needed
