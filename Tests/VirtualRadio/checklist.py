# SPDX-License-Identifier: Apache-2.0
"""Runs checks and says, one line each, what became of them."""

import asyncio
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
UNAVAILABLE = 69


def not_yet():
    """The checks that wait for a feature: name to reason, from not_yet.txt."""
    waiting = {}
    with open(os.path.join(HERE, "not_yet.txt"), encoding="utf-8") as file:
        for line in file:
            name, _, reason = line.partition(":")
            if name.strip() and not name.startswith("#"):
                waiting[name.strip()] = reason.strip()
    return waiting


class Checklist:
    """Lines of `ok`, `FAILED` and `not yet`, and the exit status that they make."""

    def __init__(self, options):
        self.only = options.only
        self.waiting = {} if options.all else not_yet()
        self.counts = {"ok": 0, "FAILED": 0, "not yet": 0}
        self.start = time.monotonic()

    def is_wanted(self, name):
        """Whether to run a check; says so when it waits for a feature. A check that was asked for by name runs."""
        if self.only:
            return name in self.only
        if name in self.waiting:
            self.say("not yet", name, self.waiting[name])
            return False
        return True

    def say(self, result, name, detail=""):
        self.counts[result] += 1
        print(f"{result:8}{name}{': ' if detail else ''}{detail}", flush=True)

    def finish(self):
        usage = os.times()
        print(f"{self.counts['ok']} ok, {self.counts['FAILED']} failed, {self.counts['not yet']} not yet; "
              f"{time.monotonic() - self.start:.0f} s, "
              f"{usage.user + usage.system + usage.children_user + usage.children_system:.0f} s of CPU", flush=True)
        return 1 if self.counts["FAILED"] or not self.counts["ok"] else 0


def run(checks):
    """Runs a coroutine and ends the program with what it returns. SIGTERM runs its `finally` blocks, too, which end
    what was started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(asyncio.run(checks))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGTERM)


def add_options(parser):
    parser.add_argument("--beacond", required=True, help="the program to test")
    parser.add_argument("--only", action="append", metavar="NAME", help="this check alone, also one of not_yet.txt")
    parser.add_argument("--all", action="store_true", help="the checks of not_yet.txt too")


def skip(tier, reason):
    """Ends the program because this machine cannot do it: quietly at home, as a failure in CI."""
    if os.environ.get("CI"):
        print(f"FAILED  {tier}: {reason}; CI skips nothing", flush=True)
        sys.exit(UNAVAILABLE)
    print(f"skipped {tier}: {reason}", flush=True)
    sys.exit(0)
