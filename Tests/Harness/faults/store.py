# SPDX-License-Identifier: Apache-2.0
"""The outbox: on a disk that fills (F5), and alone, by the unit tests that try it thoroughly (F7 and K)."""

import os
import re
import subprocess
import sys

from harness import AS_ROOT, HERE, Failure, Verdict, fault, require


def swift_test(filter, **environment):
    """The output of the unit tests whose names match; a failure is one here."""
    root = os.path.join(HERE, "../../..")
    found = subprocess.run(
        [*os.environ.get("SWIFT_TEST", "swift test").split(), "--filter", filter], cwd=root, text=True,
        env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if found.returncode != 0 or "No matching test" in found.stdout:
        raise Failure("; ".join(found.stdout.strip().splitlines()[-8:]))
    return found.stdout


@fault("F5", "disk full while the broker is away, full or read-only at the start")
def full_disk(options):
    require("unshare", "--mount", *AS_ROOT, "true")
    found = subprocess.run(
        [sys.executable, os.path.join(HERE, "../full_disk.py"), "--beacond", options.beacond], text=True,
        stdout=subprocess.PIPE, check=False)
    result = Verdict("nothing is lost but what only memory had at a SIGKILL, ≤ 20 duplicates each; goes on in memory and says"
                     " so, on the disk again ≤ 5 s after there is room", runs=0, duplicates=80)
    for line in found.stdout.splitlines():
        row = re.match(r" *(.*): (\d+) transitions, \d+ arrived, (\d+) lost, (\d+) duplicates, (\d+) inversions", line)
        if row is None:
            # What is wrong, or how long it took.
            (result.problems if found.returncode and not line.startswith(" ") else result.notes).append(line.strip())
            continue
        name, (transitions, lost, duplicates, inversions) = row[1], map(int, row.groups()[1:])
        result.runs += 1
        result.transitions += transitions
        result.duplicates += duplicates
        result.inversions += inversions
        if name == "killed":
            result.notes.append(f"{lost} that only memory had went with the process that was killed")
        else:
            result.lost += lost
    result.must(f"status {found.returncode}", found.returncode == 0)
    return result


@fault("F7", "damaged databases (unit test)")
def damage(options):
    output = swift_test("StoreRecoveryTests/randomDamage", BEACOND_CORRUPTIONS=str(options.damages))
    found = re.search(r"randomDamage: of (\d+) databases (.*)", output)
    result = Verdict("always opens, every record byte-equal or named in a gap", runs=int(found[1]))
    result.counts_transitions = False
    result.notes.append(found[2])
    return result


@fault("K", "SIGKILL amid commits (unit test)")
def kills(options):
    output = swift_test("StoreRecoveryTests/kills", BEACOND_KILLS=str(options.kills))
    found = re.search(r"kills: (\d+) kills, (\d+) transitions committed", output)
    result = Verdict("always opens, 0 committed lost, the stream goes on", runs=int(found[1]))
    result.transitions = int(found[2])
    return result
