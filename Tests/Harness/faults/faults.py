#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries what can go wrong around a running gateway, one process for each fault, and prints a table.

    faults.py --beacond .build/release/beacond [--quick] [--jobs 4] [F1 F6]

docs/faults.md describes each fault. Without names, all of them; with --quick, those that fit into a minute.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time

from harness import AS_ROOT, FAULTS, Failure, Unavailable, end_cleanly_when_asked, require

import clock  # noqa: F401
import load  # noqa: F401
import network  # noqa: F401
import process  # noqa: F401
import store  # noqa: F401
from table import keep, order, table, write

QUICK = ("F1", "F2", "F3", "F4", "F5", "F6", "F8", "F9", "F10", "F11", "F12", "F14", "F19", "F20", "F21", "F22", "F23")


def nothing(*problems):
    """The row of a fault that could not be tried to its end."""
    return {"problems": list(problems), "notes": [], "limits": "", "runs": 0}


def run_one(options):
    """In a process of its own: the result as a line of JSON, behind whatever else was said."""
    end_cleanly_when_asked()
    title, function = FAULTS[options.fault]
    try:
        row = function(options).row()
    except Failure as failure:
        row = nothing(str(failure))
    except Unavailable as lack:
        row = nothing(str(lack)) if os.environ.get("CI") else nothing() | {"skipped": str(lack)}
    print(json.dumps(row | {"title": title}))


def command(options, name):
    words = [sys.executable, os.path.abspath(__file__), "--beacond", options.beacond, "--seed", str(options.seed),
             "--kills", str(options.kills), "--share", str(options.share),
             "--damages", str(options.damages), "--run", name]
    # Its private network needs one; a user that is not root gets it in a user namespace.
    if name == "F3" and not options.quick:
        words = ["unshare", "--net", *AS_ROOT, "sh", "-c",
                 'ip link set lo up && exec "$@"', "sh", *words]
    return words + (["--quick"] if options.quick else [])


def run_all(options, names):
    """Rows by name; `jobs` at a time."""
    waiting, running, rows = list(names), {}, {}
    try:
        while waiting or running:
            while waiting and len(running) < options.jobs:
                name = waiting.pop(0)
                process = subprocess.Popen(command(options, name), stdout=subprocess.PIPE, text=True)
                running[name] = process, time.monotonic()
            for name, (process, start) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                output = process.stdout.read().strip().splitlines()
                try:
                    rows[name] = json.loads(output[-1])
                except (IndexError, ValueError):
                    rows[name] = nothing(f"ended with status {process.returncode}: {output[-1:]}")
                    rows[name]["title"] = FAULTS[name][0]
                row = rows[name]
                word = ("FAILED" if row["problems"] else "skipped" if row.get("skipped")
                        else "ok")
                print(f"{word:<7} {name:<4} {row['title']}: {time.monotonic() - start:.0f} s", flush=True)
                for note in [*filter(None, [row.get("skipped")]), *row["problems"], *row["notes"]]:
                    print(f"             {note}", flush=True)
            time.sleep(0.1)
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.wait()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="F1 and so on; all unless given")
    parser.add_argument("--beacond", required=True, help="the program")
    parser.add_argument("--quick", action="store_true", help="short, within a minute")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kills", type=int, default=1000, help="SIGKILLs of F6")
    parser.add_argument("--damages", type=int, default=2000, help="databases of F7")
    parser.add_argument("--share", type=float, default=1, help="of the lengths that the reference has; F1 then is ten minutes")
    parser.add_argument("--jobs", type=int, default=4, help="faults at a time; most of them wait")
    parser.add_argument("--write", metavar="FILE", help="put the table into that page")
    parser.add_argument("--results", metavar="FILE", help="rows by name, kept from run to run; the table has them all")
    parser.add_argument("--run", dest="fault", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.length = lambda whole: max(1, round(whole * options.share))
    options.beacond = os.path.abspath(options.beacond)
    if options.fault:
        return run_one(options)
    end_cleanly_when_asked()
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    names = options.names or [name for name in FAULTS if not options.quick or name in QUICK]
    for name in names:
        if name not in FAULTS:
            raise SystemExit(f"no fault {name}: there are {', '.join(sorted(FAULTS, key=order))}")
    if "F3" in names and not options.quick:
        require("unshare", "--net", *AS_ROOT, "true")
    print(f"seed {options.seed}", flush=True)
    started = time.monotonic()
    rows = run_all(options, sorted(names, key=order))
    failed = [name for name in rows if rows[name]["problems"]]
    if options.results:
        rows = keep(options.results, rows)
    print(table(rows))
    print(f"{len(names) - len(failed)} of {len(names)} passed in {time.monotonic() - started:.0f} s, seed {options.seed}")
    if options.write:
        write(options.write, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
