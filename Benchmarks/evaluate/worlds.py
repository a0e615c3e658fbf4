# SPDX-License-Identifier: Apache-2.0
"""Simulated worlds with known truth: who was there when, and which advertisement each radio heard.

Nothing is a coin per sighting: a beacon has a phase, a crystal and advDelay; a radio has windows, intervals and the
three channels in turn; what falls into a window on the right channel is heard, unless something is in the way.
"""

import zlib
from dataclasses import dataclass, field

import numpy as np

# A packet of an iBeacon with flags: 46 octets of 8 us each on LE 1M.
AIR_TIME = 368e-6
LONGEST_DELAY = 0.010
BEACONS = 6
SHADOW = 30.0


@dataclass
class Radio:
    """How a radio listens, in seconds. Without burst it never pauses; failures are (begin, end)."""

    window: float = 0.1
    interval: float = 0.1
    burst: tuple | None = None
    phase: float = 0.0
    burst_phase: float = 0.0
    failures: list = field(default_factory=list)

    def hears(self, times, channel):
        """Whether a packet that begins at each of these times on a channel (0 to 2) is received."""
        if self.burst is None:
            since = times + self.phase
            listens = True
        else:
            on, off = self.burst
            since = np.mod(times - self.burst_phase, on + off)
            listens = since + AIR_TIME < on
        cycle = np.floor(since / self.interval)
        inside = since - cycle * self.interval + AIR_TIME < self.window
        return inside & (np.mod(cycle, 3) == channel) & listens & ~within(times, self.failures)

    def is_on(self, time):
        """Whether the schedule lets it listen."""
        return self.burst is None or (time - self.burst_phase) % sum(self.burst) < self.burst[0]

    def bursts(self, end):
        """Moments at which listening begins and ends, as (time, listens)."""
        if self.burst is None:
            return
        on, off = self.burst
        begin = self.burst_phase - (on + off)
        while begin < end:
            yield max(begin, 0.0), True
            if begin + on > 0:
                yield begin + on, False
            begin += on + off


@dataclass
class Stay:
    """A beacon is there from `arrival` on, is on its way out from `leaving` on, and gone at `departure`."""

    arrival: float
    leaving: float
    departure: float


@dataclass
class Track:
    """One beacon: the truth, and what was heard of it, in order."""

    stays: list
    times: np.ndarray
    radios: np.ndarray
    strengths: np.ndarray


@dataclass
class World:
    name: str
    end: float
    radios: list
    tracks: list


def within(times, spans):
    """Whether each time lies in one of the spans, which are in order and do not overlap."""
    if not spans:
        return np.zeros(len(times), bool)
    edges = np.array(spans).ravel()
    return np.searchsorted(edges, times, side="right") % 2 == 1


def spans(rng, end, gap, length):
    """Spans of length() that follow each other after exponential gaps of the mean `gap`."""
    result, time = [], rng.exponential(gap)
    while time < end:
        duration = length()
        result.append((time, time + duration))
        time += duration + rng.exponential(gap)
    return result


def pareto(rng, index, shortest, longest):
    """A Pareto variable between two bounds."""
    low, high = shortest**-index, longest**-index
    return (low - rng.uniform() * (low - high)) ** (-1 / index)


# Silences of the six iTAG tags of the UCI data longer than so many seconds, in 1.92 tag-hours; the longest has 41.0 s.
ITAG_HOURS = 1.92
ITAG_SILENCES = [(4, 128), (5, 72), (7, 40), (10, 18), (15, 6), (20, 4), (30, 2), (41, 0.5)]


def silence_as_in_itag(rng):
    """Drawn from the counts above, the length linear in the logarithm of the count between them."""
    lengths, counts = zip(*ITAG_SILENCES)
    drawn = rng.uniform(counts[-1], counts[0])
    return float(np.interp(-np.log(drawn), -np.log(counts), lengths))


@dataclass
class Recipe:
    """How a world is made. `share` keeps the number of sightings of a world with fast beacons within reason."""

    name: str
    intervals: tuple = (1.0,)
    radios: tuple = (dict(),)
    loss: tuple = (0.0,)
    share: float = 1.0
    silences: object = None
    fade: float = 0.0
    absence: tuple = (1800.0, 4500.0)
    stay: float | None = None
    failures: tuple | None = None
    beacons: int = BEACONS

    def make(self, beacon_days, seed):
        """Beacons draw from streams of their own, so that another radio hears the same beacons."""
        seeds = [seed, zlib.crc32(self.name.encode())]
        end = beacon_days * self.share * 86400 / self.beacons
        rng = np.random.default_rng(seeds)
        radios = [self._radio(rng, end, settings) for settings in self.radios]
        tracks = [
            self._track(np.random.default_rng([*seeds, number]), end, radios, number) for number in range(self.beacons)
        ]
        return World(self.name, end, radios, tracks)

    def _radio(self, rng, end, settings):
        radio = Radio(**settings)
        radio.phase = rng.uniform(0, 3 * radio.interval)
        if radio.burst:
            radio.burst_phase = rng.uniform(0, sum(radio.burst))
        if self.failures:
            gap, length = self.failures
            radio.failures = [(begin, min(stop, end)) for begin, stop in spans(rng, end, gap, lambda: length)]
        return radio

    def _track(self, rng, end, radios, number):
        stays = self._stays(rng, end)
        interval = self.intervals[number % len(self.intervals)]
        loss = self.loss[number % len(self.loss)]
        spacing = rng.uniform(0.4e-3, 1.5e-3)
        events = advertising_events(rng, interval, end)
        events = events[within(events, [(stay.arrival, stay.departure) for stay in stays])]
        if self.silences:
            events = events[~within(events, self.silences(rng, end))]
        reach = np.full(len(events), 1 - loss)
        for stay in stays:
            if stay.leaving < stay.departure:
                fading = (events >= stay.leaving) & (events < stay.departure)
                reach[fading] *= (stay.departure - events[fading]) / (stay.departure - stay.leaving)
        times, numbers = [], []
        for index, radio in enumerate(radios):
            heard = np.full(len(events), np.inf)
            for channel in (2, 1, 0):
                begin = events + channel * spacing
                received = radio.hears(begin, channel) & (rng.uniform(size=len(events)) < reach)
                heard[received] = begin[received] + AIR_TIME
            heard = heard[np.isfinite(heard)]
            times.append(heard)
            numbers.append(np.full(len(heard), index, np.int8))
        times, numbers = np.concatenate(times), np.concatenate(numbers)
        order = np.argsort(times, kind="stable")
        strengths = np.clip(np.rint(rng.normal(-70, 4, len(times))), -110, 0).astype(np.int16)
        return Track(stays, times[order], numbers[order], strengths)

    def _stays(self, rng, end):
        mean = self.stay or min(max(end / 4, 2400.0), 6 * 3600.0)
        stays, time = [], rng.uniform(0, 30)
        while time < end:
            departure = time + self.fade + rng.uniform(0.5, 1.5) * mean
            absence = rng.uniform(*self.absence)
            # The last departure needs the time to be noticed; else it stays to the end.
            if departure + absence > end:
                departure = end
            stays.append(Stay(time, departure - (self.fade if departure < end else 0), departure))
            time = departure + absence
        return stays


def advertising_events(rng, interval, end):
    """Moments at which a beacon begins an advertising event; its crystal is off by up to 40 ppm."""
    period = interval * (1 + rng.uniform(-40e-6, 40e-6))
    count = int(end / period) + 2
    events = rng.uniform(0, period) + np.cumsum(period + rng.uniform(0, LONGEST_DELAY, count))
    return events[events < end]


def duty(window, interval):
    return dict(window=window, interval=interval)


def burst(on, off):
    return dict(burst=(on, off))


MIXED = (0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
RECIPES = [
    Recipe("continuous, 1 s beacons"),
    Recipe("0.1 s beacons", intervals=(0.1,), share=0.2),
    Recipe("5 and 10 s beacons", intervals=(5.0, 10.0)),
    Recipe("mixed 0.3 to 10 s", intervals=MIXED),
    Recipe("window 30/300 ms", radios=(duty(0.03, 0.3),)),
    Recipe("window 20/1000 ms", radios=(duty(0.02, 1.0),)),
    Recipe(
        "intervals that beat with 300 ms",
        intervals=(0.295, 0.3, 0.595, 0.6, 0.895, 0.9, 1.195, 1.2),
        radios=(duty(0.03, 0.3),),
        beacons=8,
    ),
    Recipe("radio blind for 10 min", failures=(2 * 3600, 600.0)),
    Recipe(
        "silences as in iTAG",
        silences=lambda rng, end: spans(rng, end, 3600 * ITAG_HOURS / 128, lambda: silence_as_in_itag(rng)),
    ),
    Recipe("burst 10 of 60 s", radios=(burst(10, 50),)),
    Recipe("burst, 5 and 10 s beacons", intervals=(5.0, 10.0), radios=(burst(10, 50),)),
    Recipe("burst 10 of 300 s", radios=(burst(10, 290),), absence=(5400.0, 9000.0)),
    Recipe("25 to 80 % loss", loss=(0.25, 0.5, 0.65, 0.8)),
    Recipe("body shadow of 30 s", silences=lambda rng, end: spans(rng, end, 900, lambda: SHADOW)),
    Recipe("walking away", fade=60.0, stay=3600.0, absence=(900.0, 1800.0)),
    Recipe("absences of 20 to 300 s", stay=1800.0, absence=(20.0, 300.0)),
    Recipe("two radios", radios=(duty(0.03, 0.3), duty(0.02, 1.0))),
    Recipe("heavy tail cut at 120 s", silences=lambda rng, end: spans(rng, end, 300, lambda: pareto(rng, 0.45, 2, 120))),
]
