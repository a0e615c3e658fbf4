# SPDX-License-Identifier: Apache-2.0
"""Rules of presence that others use, from what is written down about them. Wall-clock time, no notion of listening.

Each takes the moments at which one beacon was heard, and the end; it gives the moments of enters and exits. What a
system says of rooms or distances is left out where only presence is compared.
"""

import numpy as np


def fixed(timeout):
    """Gone after a silence of the timeout, by a timer."""
    return lambda times, end: leave_after(times, end, lambda index: timeout)


def swept(timeout, tick):
    """Gone when a sweep, every `tick` seconds, finds a silence longer than the timeout."""

    def rule(times, end):
        enters, exits = leave_after(times, end, lambda index: timeout)
        swept_exits = np.ceil(np.asarray(exits) / tick) * tick
        return keep_pairs(times, enters, swept_exits, end)

    return rule


def learned_maximum(fallback, wobble=5.0, samples=16):
    """Gone after the longest of the gaps of the first sightings, and a wobble; a fixed time until they are learned."""

    def rule(times, end):
        limit = fallback
        if len(times) >= samples:
            limit = float(np.diff(times[:samples]).max()) + wobble
        return leave_after(times, end, lambda index: limit if index + 1 >= samples else fallback)

    return rule


def leave_after(times, end, limit):
    """Enters and exits for a limit that may depend on how many sightings there were."""
    if not len(times):
        return [], []
    limits = np.array([limit(0)])
    silences = np.append(np.diff(times), end - times[-1])
    late = limit(len(times) - 1)
    early = limit(0)
    limits = np.full(len(times), late)
    if early != late:
        limits[:16] = [limit(index) for index in range(min(16, len(times)))]
    gone = silences > limits
    exits = times[gone] + limits[gone]
    back = np.flatnonzero(gone) + 1
    enters = np.append(times[:1], times[back[back < len(times)]])
    return enters, exits


def keep_pairs(times, enters, exits, end):
    """Drops the exits that a sighting came before, and the enters behind them."""
    kept_enters, kept_exits = list(enters[:1]), []
    for number, moment in enumerate(exits):
        following = enters[number + 1] if number + 1 < len(enters) else np.inf
        if moment < min(following, end):
            kept_exits.append(moment)
            if following < np.inf:
                kept_enters.append(following)
    return kept_enters, kept_exits


# Name, rule, what it is the rule of.
RULES = [
    ("fixed 10 s", fixed(10)),
    ("fixed 20 s", fixed(20)),
    ("fixed 30 s", fixed(30)),
    ("fixed 120 s", fixed(120)),
    ("fixed 300 s", fixed(300)),
    ("60 s, swept every 60 s", swept(60, 60)),
    ("180 s, swept every 60 s", swept(180, 60)),
    ("learned maximum + 5 s", learned_maximum(195)),
]
