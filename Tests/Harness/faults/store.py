# SPDX-License-Identifier: Apache-2.0
"""The outbox alone, by the unit tests that try it thoroughly: F5, F7 and K."""

import os
import re
import subprocess

from harness import HERE, Failure, Verdict, fault


def swift_test(filter, **environment):
    """The output of the unit tests whose names match; a failure is one here."""
    root = os.path.join(HERE, "../../..")
    found = subprocess.run(
        [*os.environ.get("SWIFT_TEST", "swift test").split(), "--filter", filter], cwd=root, text=True,
        env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if found.returncode != 0 or "No matching test" in found.stdout:
        raise Failure("; ".join(found.stdout.strip().splitlines()[-8:]))
    return found.stdout


def verdict(limits, runs, note):
    result = Verdict(limits, runs=runs)
    result.counts_transitions = False
    result.notes.append(note)
    return result


@fault("F5", "disk full or refusing (unit tests)")
def full_disk(options):
    output = swift_test("aDiskThatRefuses|StoreOverflow|[Ff]ull[Dd]isk|[Dd]isk[Ff]ull")
    passed = re.findall(r"Test \"?(?!run with)(.*?)\"?(?:\(\))? passed after", output)
    return verdict("nothing is lost that is not named in a gap, and it goes on when there is room", len(passed),
                   ", ".join(passed))


@fault("F7", "damaged databases (unit test)")
def damage(options):
    output = swift_test("StoreRecoveryTests/randomDamage", BEACOND_CORRUPTIONS=str(options.damages))
    found = re.search(r"randomDamage: of (\d+) databases (.*)", output)
    return verdict("always opens, every record byte-equal or named in a gap", int(found[1]), found[2])


@fault("K", "SIGKILL amid commits (unit test)")
def kills(options):
    output = swift_test("StoreRecoveryTests/kills", BEACOND_KILLS=str(options.kills))
    found = re.search(r"kills: (\d+) kills, (\d+) transitions committed", output)
    result = verdict("always opens, 0 committed lost, the stream goes on", int(found[1]), "")
    result.transitions, result.counts_transitions, result.notes = int(found[2]), True, []
    return result
