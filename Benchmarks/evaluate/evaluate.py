#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How right presence is: beacond beside fixed times and the rules of others, on simulated worlds and on real data.

Prints tables in Markdown; with --write, puts them into docs/presence.md and draws the curves beside it. Ends with 1
when a promise does not hold.
"""

import argparse
import math
import multiprocessing
import os
import re
import sys
import tempfile

import checks
import figures
import itag
import labelled
import measure
import recording
import simulated
import worlds

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# False exits per beacon-hour that the promise is about.
BOUNDS = {"10/hour": 10.0, "1/hour": 1.0, "1/day": 1 / 24}
CURVE = ["10/hour", "3/hour", "1/hour", "8/day", "1/day", "1/week", "1/month"]
# Of a single cell. There are some 50, so that one in 20 by chance would be two or three.
CONFIDENCE = 0.999


class Report:
    """Markdown, and the promises that were broken."""

    def __init__(self):
        self.text, self.broken = [], []

    def say(self, line=""):
        self.text.append(line)
        print(line, flush=True)

    def table(self, header, rows):
        self.say()
        self.say("| " + " | ".join(header) + " |")
        self.say("| --- " + "| ---: " * (len(header) - 1) + "|")
        for row in rows:
            self.say("| " + " | ".join(map(str, row)) + " |")
        self.say()

    def promise(self, text, holds):
        self.say(f"- {'holds' if holds else 'BROKEN'}: {text}")
        if not holds:
            self.broken.append(text)


def number(value, digits=3):
    return "–" if math.isnan(value) else f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def limits(score):
    total = sum(score.limits.values())
    return max(score.limits, key=score.limits.get) if total else "–"


def is_excused(score):
    """Whether the engine says itself that most of these exit times were its floor or ceiling."""
    total = sum(score.limits.values())
    return total > 0 and 2 * (score.limits.get("floor", 0) + score.limits.get("ceiling", 0)) > total


def verdict(score, bound):
    low, high = score.interval(CONFIDENCE)
    return "above" if low > bound else "below a tenth" if high < bound / 10 else "within"


def show_worlds(report, outcomes):
    rows = []
    for outcome in outcomes:
        score = outcome.bounds["1/day"]
        longest = float(outcome.fixed.gaps[-1])
        rows.append([
            outcome.name, f"{outcome.hours:.0f}", outcome.sightings, number(longest), number(outcome.fixed.delay(longest)),
            score.false_exits, f"{score.missed}/{score.departures}", number(score.exit_delay()),
            number(score.exit_delay(0.95)), number(score.enter_delay()), number(score.enter_delay(0.95))])
    report.say("### Worlds, with `false_exits` at one a day")
    report.say("The fixed time is the longest silence of a beacon that was there: the shortest one without a false exit, "
               "known only afterwards. Times in seconds.")
    report.table(
        ["world", "beacon-hours", "sightings", "fixed time", "its exit delay", "false exits", "missed", "exit median",
         "exit 95 %", "enter median", "enter 95 %"], rows)


def show_bounds(report, outcomes):
    report.say("### False exits per beacon-hour against the bound")
    rows, broken = [], []
    for outcome in outcomes:
        for name, bound in BOUNDS.items():
            score = outcome.bounds[name]
            low, high = score.interval()
            judged = verdict(score, bound)
            if judged != "within" and not is_excused(score):
                broken.append((judged, f"{outcome.name}, {name}"))
            rows.append([outcome.name, name, score.false_exits, number(score.rate),
                         f"{number(low)} to {number(high)}", judged, limits(score)])
    report.table(["world", "bound", "false exits", "per hour", "95 % interval", "bound held", "limited mostly by"], rows)
    for side in ("above", "below a tenth"):
        cells = [cell for judged, cell in broken if judged == side]
        report.promise(f"no observed rate lies wholly {side} of its bound" + "".join(f"; {cell}" for cell in cells),
                       not cells)


def show_peers(report, outcomes):
    names = list(outcomes[0].rules)
    report.say("### Rules of others on the same sightings: false exits per beacon-day (median exit delay in seconds)")
    rows = []
    for outcome in outcomes:
        cells = [outcome.bounds["1/day"], *(outcome.rules[name] for name in names)]
        rows.append([outcome.name, *(f"{number(cell.rate * 24)} ({number(cell.exit_delay())})" for cell in cells)])
    report.table(["world", "beacond, 1/day", *names], rows)


def compare_curves(report, name, bounds, fixed):
    """Whether no bound has more false exits than the fixed time with the same delay, beyond chance."""
    worse = []
    for bound, score in bounds.items():
        time = fixed.time_with_delay(score.exit_delay())
        if not math.isnan(time) and measure.is_more(score.false_exits, fixed.false_exits(time)):
            worse.append(f"{bound}: {score.false_exits} against {fixed.false_exits(time)}")
    return worse


def draw(folder, name, title, bounds, fixed):
    path = os.path.join(folder, f"{name}.svg")
    hours = fixed.hours
    line = [(fixed.delay(time), fixed.false_exits(time) / hours) for time in simulated.FIXED_TIMES]
    points = [(score.exit_delay(), score.rate) for score in bounds.values()]
    # A short world may be without a departure.
    line, points = ([point for point in each if not math.isnan(point[0])] for each in (line, points))
    if not line or not points:
        return
    figures.curves(path, title, "median exit delay, s", "false exits per beacon-hour",
                   [("fixed times", line, True), ("false_exits", points, False)], floor=1 / hours / 3)


def simulate(report, pool, beacond, options, draw_into):
    settings = {name: {"false_exits": name} for name in (BOUNDS if options.quick else CURVE)}
    days = options.days or (0.8 if options.quick else 20)
    jobs = [(place, beacond, settings, days, options.seed) for place, recipe in enumerate(worlds.RECIPES)
            if not options.worlds or options.worlds in recipe.name]
    report.say(f"{days:g} beacon-days a world, seed {options.seed}.")
    outcomes = list(pool.imap(simulated.evaluate, jobs))
    show_worlds(report, outcomes)
    show_bounds(report, outcomes)
    show_peers(report, outcomes)
    worse = [f"{outcome.name} ({'; '.join(found)})" for outcome in outcomes
             if (found := compare_curves(report, outcome.name, outcome.bounds, outcome.fixed))]
    report.promise("the curve of beacond lies nowhere above the curve of fixed times" + "".join(f"; {w}" for w in worse),
                   not worse)
    if draw_into:
        for outcome in outcomes:
            slug = re.sub("[^a-z0-9]+", "-", outcome.name.lower()).strip("-")
            draw(draw_into, slug, outcome.name, outcome.bounds, outcome.fixed)


def check(report, pool, beacond, options):
    report.say("### Promises")
    days = 0.1 if options.quick else 7
    profiles = list(checks.PROFILES)
    if options.quick:
        profiles = profiles[1:]
    for profile, exits in pool.imap(
            checks.always_there, [(profile, beacond, {}, days, options.seed) for profile in profiles]):
        found = [f"{interval * 1e3:g} ms: {count}" for interval, count in exits if count]
        report.promise(f"{profile}: a beacon that is always there has no exit in {days:g} days" +
                       "".join(f"; {cell}" for cell in found), not found)
    radios = {**checks.PROFILES, "10 s in 60 s": worlds.burst(10, 50)}
    jobs = [(name, radio, beacond, {"false_exits": "1/month"}, options.seed) for name, radio in radios.items()]
    for name, exits, enters in pool.imap(checks.failing_radio, jobs):
        report.promise(f"{name}: a radio that fails for ten minutes makes no transition ({exits} exits, {enters} enters)",
                       exits == enters == 0)
    days = 1 if options.quick else 10
    same = (("fixed 20 s", {"exit_time": "20s"}, 20),
            ("1/month, at most 60 s", {"false_exits": "1/month", "longest_exit_time": "60s"}, 60))
    for name, presence, longest in same:
        due, unseen, unfounded, needed = checks.same_world((beacond, presence, longest, days, options.seed))
        report.promise(
            f"{name}: of {due} absences longer than {needed:.0f} s, {unseen} were missed by the continuous or the 10 s in "
            f"60 s run; {unfounded} exits without an absence", unseen == unfounded == 0)


def evaluate_itag(report, beacond, options, draw_into):
    path = itag.find(options.data)
    if path is None:
        report.say(f"No {itag.FILE} in {options.data}.")
        return
    streams = itag.read(path)
    settings = {name: {"false_exits": name} for name in (BOUNDS if options.quick else CURVE)}
    report.say("### iTAG: tags that stay for 20 minutes, and the same streams cut at random moments")
    for half, tags in itag.halves(streams).items():
        scores, wrong, fixed = itag.evaluate(
            beacond, [streams[tag] for tag in tags], settings, 4 if options.quick else 20, options.seed)
        report.say(f"{half}: {', '.join(tags)}; {fixed.hours:.2f} tag-hours")
        rows = []
        for name, score in scores.items():
            delay = score.exit_delay()
            time = fixed.time_with_delay(delay)
            rows.append([name, score.false_exits, number(delay), number(score.exit_delay(0.95)), number(time),
                         "–" if math.isnan(time) else fixed.false_exits(time), wrong[name]])
        report.table(["false_exits", "false exits", "exit median", "exit 95 %", "fixed time of that median",
                      "its false exits", "cuts without exactly one exit"], rows)
        if half == "held out":
            report.promise("every cut gives exactly one exit", not any(wrong.values()))
            worse = compare_curves(report, half, scores, fixed)
            report.promise("the curve of beacond lies nowhere above the curve of fixed times" +
                           "".join(f"; {cell}" for cell in worse), not worse)
            if draw_into:
                draw(draw_into, "itag", "iTAG, held-out tags", scores, fixed)


def evaluate_labelled(report, beacond, options):
    rows = labelled.proximity(beacond, options.data)
    if rows:
        report.say("### Near or far on the MIT data: up to 6 ft or more, two phones in pockets, hands and bags")
        report.say("The threshold is the best one on every other recording, the figures are those of the others.")
        report.table(["filter", "threshold, dBm", "balanced accuracy", "changes of mind a minute"],
                     [(name, best, f"{share:.3f}", f"{changes:.1f}") for name, best, share, changes in rows])
    rows = labelled.rooms(beacond, options.data)
    if rows:
        report.say("### Which of four rooms, on the tracks of one beacon past 12 receivers")
        report.table(["filter", "right", "changes of room a minute"],
                     [(name, f"{share:.3f}", f"{changes:.1f}") for name, share, changes in rows])


def write(report, folder):
    path = os.path.join(folder, "presence.md")
    with open(path, encoding="utf-8") as file:
        page = file.read()
    begin, end = "<!-- evaluation -->", "<!-- end of evaluation -->"
    text = "\n".join(report.text).strip()
    page = page[: page.index(begin) + len(begin)] + "\n" + text + "\n" + page[page.index(end):]
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beacond", required=True)
    parser.add_argument("--data", help="a folder with the data that docs/presence.md names")
    parser.add_argument("--quick", action="store_true", help="within two minutes")
    parser.add_argument("--days", type=float, help="beacon-days of a world")
    parser.add_argument("--worlds", help="only those with this in the name")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["worlds", "checks", "itag", "labelled"])
    parser.add_argument("--write", metavar="DOCS", help="a folder with presence.md")
    options = parser.parse_args()
    report = Report()
    figures_folder = os.path.join(options.write, "presence") if options.write else None
    if figures_folder:
        os.makedirs(figures_folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(2) as pool:
        beacond = recording.Beacond(os.path.abspath(options.beacond), folder)
        if options.only in (None, "worlds"):
            simulate(report, pool, beacond, options, figures_folder)
        if options.only in (None, "checks"):
            check(report, pool, beacond, options)
        if options.data and options.only in (None, "itag"):
            evaluate_itag(report, beacond, options, figures_folder)
        if options.data and options.only in (None, "labelled"):
            evaluate_labelled(report, beacond, options)
    if options.write:
        write(report, options.write)
    for text in report.broken:
        print(f"broken: {text}", file=sys.stderr)
    sys.exit(1 if report.broken else 0)


if __name__ == "__main__":
    main()
