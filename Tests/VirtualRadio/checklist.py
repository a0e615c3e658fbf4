# SPDX-License-Identifier: Apache-2.0
"""Runs checks and says, one line each, what became of them."""

import asyncio
import os
import signal
import sys
import time

UNAVAILABLE = 69


class Checklist:
    """Lines of `ok` and `FAILED`, and the exit status that they make."""

    def __init__(self, options):
        self.only = options.only
        self.counts = {"ok": 0, "FAILED": 0}
        self.start = time.monotonic()

    def is_wanted(self, name):
        return not self.only or name in self.only

    def say(self, result, name, detail=""):
        self.counts[result] += 1
        print(f"{result:8}{name}{': ' if detail else ''}{detail}", flush=True)

    def finish(self):
        usage = os.times()
        print(f"{self.counts['ok']} ok, {self.counts['FAILED']} failed; {time.monotonic() - self.start:.0f} s, "
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
    parser.add_argument("--only", action="append", metavar="NAME", help="this check alone")


def skip(tier, reason):
    """Ends the program because this machine cannot do it: quietly at home, as a failure in CI."""
    if os.environ.get("CI"):
        print(f"FAILED  {tier}: {reason}; CI skips nothing", flush=True)
        sys.exit(UNAVAILABLE)
    print(f"skipped {tier}: {reason}", flush=True)
    sys.exit(0)
