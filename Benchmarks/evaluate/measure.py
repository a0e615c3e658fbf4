# SPDX-License-Identifier: Apache-2.0
"""What a rule did, against the truth: false exits, missed exits, and how late it was."""

import math
from dataclasses import dataclass, field

import numpy as np


def poisson_interval(count, confidence=0.95):
    """The exact interval of the mean of a Poisson variable of which `count` was seen."""
    tail = (1 - confidence) / 2

    def at_most(number, mean):
        return sum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(number + 1))

    def solve(condition, low, high):
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if condition(middle) else (low, middle)
        return low

    roof = count + 20 * math.sqrt(count + 1) + 20
    lower = 0.0 if count == 0 else solve(lambda mean: 1 - at_most(count - 1, mean) < tail, 1e-12, roof)
    return lower, solve(lambda mean: at_most(count, mean) > tail, 1e-12, roof)


def is_more(count, other):
    """Whether, of two counts over the same time, the first is larger than by chance (one-sided, 1 %)."""
    total = count + other
    if count <= other:
        return False
    tail = sum(math.exp(math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) - total * math.log(2))
               for k in range(count, total + 1))
    return tail < 0.01


@dataclass
class Score:
    """Counts and delays in seconds, over `hours` in which beacons were there."""

    hours: float = 0.0
    false_exits: int = 0
    departures: int = 0
    missed: int = 0
    exit_delays: list = field(default_factory=list)
    enter_delays: list = field(default_factory=list)
    limits: dict = field(default_factory=dict)

    def add(self, other):
        for name in ("hours", "false_exits", "departures", "missed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.exit_delays += other.exit_delays
        self.enter_delays += other.enter_delays
        for limit, count in other.limits.items():
            self.limits[limit] = self.limits.get(limit, 0) + count

    @property
    def rate(self):
        """False exits per beacon-hour."""
        return self.false_exits / self.hours if self.hours else math.nan

    def interval(self, confidence=0.95):
        return tuple(bound / self.hours for bound in poisson_interval(self.false_exits, confidence))

    def exit_delay(self, share=0.5):
        return float(np.quantile(self.exit_delays, share)) if self.exit_delays else math.nan

    def enter_delay(self, share=0.5):
        return float(np.quantile(self.enter_delays, share)) if self.enter_delays else math.nan


def score(track, enters, exits, end):
    """Judges the transitions of one beacon.

    An exit is true when it falls between the moment at which the beacon began to leave and the first time that it was
    heard after its return; the first such exit counts, any further one is false, as is one while the beacon stays.
    """
    result = Score()
    stays = track.stays
    heard = track.times
    exits = np.asarray(exits)
    enters = np.asarray(enters)
    judged = 0
    for number, stay in enumerate(stays):
        result.hours += (min(stay.leaving, end) - stay.arrival) / 3600
        following = stays[number + 1].arrival if number + 1 < len(stays) else math.inf
        first = int(np.searchsorted(heard, stay.arrival))
        back = int(np.searchsorted(heard, following))
        back = heard[back] if back < len(heard) else math.inf
        begin = heard[first] if first < len(heard) else math.inf
        inside = int(np.count_nonzero((exits >= begin) & (exits < stay.leaving)))
        after = exits[(exits >= max(begin, stay.leaving)) & (exits < back)]
        result.false_exits += inside
        arrivals = enters[(enters >= stay.arrival) & (enters < back)]
        if len(arrivals):
            result.enter_delays.append(float(arrivals[0] - stay.arrival))
        if stay.departure >= end:
            result.false_exits += len(after)
            continue
        result.departures += 1
        result.false_exits += max(0, len(after) - 1)
        if len(after):
            result.exit_delays.append(float(after[-1] - stay.departure))
        elif len(arrivals) or judged:
            result.missed += 1
        judged += 1
    return result


class FixedTimes:
    """All fixed exit times at once: false exits and the median delay follow from the gaps alone."""

    def __init__(self, tracks, end):
        self.hours = 0.0
        gaps, self.lags, self.absences = [], [], []
        for track in tracks:
            for number, stay in enumerate(track.stays):
                heard = track.times[(track.times >= stay.arrival) & (track.times < stay.departure)]
                staying = heard[heard < stay.leaving]
                self.hours += (min(stay.leaving, end) - stay.arrival) / 3600
                if not len(heard):
                    continue
                gaps.append(np.diff(heard))
                if stay.departure < end:
                    self.lags.append(stay.departure - heard[-1])
                else:
                    gaps.append(np.array([end - heard[-1]]))
        self.gaps = np.sort(np.concatenate(gaps)) if gaps else np.array([])

    def false_exits(self, time):
        return int(len(self.gaps) - np.searchsorted(self.gaps, time, side="right"))

    def delay(self, time):
        """The median exit delay."""
        return float(np.median(time - np.array(self.lags))) if self.lags else math.nan

    def time_with_delay(self, delay):
        """The fixed time of this median exit delay."""
        return delay + float(np.median(self.lags)) if self.lags else math.nan

    def best(self, rate):
        """The shortest time with fewer false exits per beacon-hour than `rate`."""
        allowed = int(math.ceil(rate * self.hours)) - 1
        return float(self.gaps[-1 - max(allowed, 0)]) if len(self.gaps) > max(allowed, 0) else 0.0
