# SPDX-License-Identifier: Apache-2.0
"""The simulated worlds: beacond at several bounds, all fixed times, and the peers' rules, on the same sightings."""

import os
from dataclasses import dataclass

import measure
import peers
import recording
import worlds

# Enough of the longest exit time of a beacon heard a sixth of the time to be over before the end is rare, so the
# curves are drawn over these: seconds.
FIXED_TIMES = [1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900]


@dataclass
class Outcome:
    """What came of one world. Scores by the name of the rule."""

    name: str
    hours: float
    sightings: int
    bounds: dict
    rules: dict
    fixed: measure.FixedTimes


def evaluate(job):
    """One world, named by its place among the recipes; runs in a process of its own."""
    place, beacond, settings, beacon_days, seed = job
    world = worlds.RECIPES[place].make(beacon_days, seed)
    path = os.path.join(beacond.folder, f"world-{os.getpid()}.jsonl")
    recording.write(world, path)
    try:
        bounds = {
            name: score_beacond(beacond, path, world, presence, f"world-{os.getpid()}")
            for name, presence in settings.items()
        }
    finally:
        os.remove(path)
    rules = {}
    for name, rule in peers.RULES:
        total = measure.Score()
        for track in world.tracks:
            enters, exits = rule(track.times, world.end)
            total.add(measure.score(track, enters, exits, world.end))
        rules[name] = total
    fixed = measure.FixedTimes(world.tracks, world.end)
    sightings = sum(len(track.times) for track in world.tracks)
    return Outcome(world.name, fixed.hours, sightings, bounds, rules, fixed)


def score_beacond(beacond, path, world, presence, name):
    events = beacond.replay(path, presence, name=name)
    enters, exits, limits = recording.transitions(events, len(world.tracks))
    total = measure.Score(limits=limits)
    for number, track in enumerate(world.tracks):
        total.add(measure.score(track, enters[number], exits[number], world.end))
    return total
