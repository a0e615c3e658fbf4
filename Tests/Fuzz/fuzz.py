#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the fuzz targets and runs them one after the other, each with the corpus in the repository, what seed.py makes
of the fixtures, and what earlier runs here have found.

A target fails when an input ends it, takes longer than ten seconds, leaks, or lets it grow past its bound of memory. The
input is kept, and the command that runs it again is printed.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
WORK = REPOSITORY / ".build-fuzz"
PRODUCTS = WORK / "release"

# Longest input of each target in octets.
TARGETS = {
    "hci": 4096,  # 1,650 octets of data come in eight packets
    "advertising": 1650,  # longest advertising data (Core 5.4, Vol 6, Part B, 2.3.4.9)
    "bindkeys": 512,
    "sightings": 2048,
    "layout": 512,
    "btsnoop": 2048,
    "plugins": 3072,  # the longest file of the fixtures
    "outbox": 1024,  # four texts of 255 octets at most
}
# Seconds on the wall for one input. It takes less than a millisecond; a machine with other work may still stop for
# longer than one second.
TIMEOUT = 10
MEMORY = 256  # MiB resident

ENVIRONMENT = os.environ | {
    # What was freed is kept by AddressSanitizer for a while; its usual 256 MiB would hide growth. Safe Swift has no
    # pointers to a stack frame that could outlive it, and the callers of an allocation are known after a few frames:
    # without these two a target runs half as fast again.
    "ASAN_OPTIONS": "quarantine_size_mb=16:detect_stack_use_after_return=0:malloc_context_size=12",
    "LSAN_OPTIONS": f"suppressions={HERE / 'leaks.txt'}:print_suppressions=0",
    # Swift's own report of a crash comes in libFuzzer's way.
    "SWIFT_BACKTRACE": "enable=no",
}
FIGURES = re.compile(r"cov: (\d+).* rss: (\d+)Mb")


def run(command, **options):
    subprocess.run([str(word) for word in command], cwd=REPOSITORY, check=True, **options)


def build(targets):
    """The modules through SwiftPM, so that it knows their order, then each target with all of them in one archive.

    SwiftPM itself cannot link such a program: libFuzzer brings its own `main`.
    """
    sanitizers = "-sanitize=fuzzer,address"
    run(["swift", "build", "--configuration", "release", "--scratch-path", WORK, "--target", "beacond",
         "-Xswiftc", sanitizers, "-Xswiftc", "-enable-testing"])
    archive = WORK / "modules.a"
    archive.unlink(missing_ok=True)
    run(["ar", "rcs", archive, *sorted(PRODUCTS.glob("*.build/*.o"))])
    modules = [PRODUCTS / "Modules", PRODUCTS / "CLinuxIO.build"]
    modules += [path.parent for path in sorted(REPOSITORY.glob("Sources/C*/module.modulemap"))]
    for target in targets:
        run(["swiftc", "-O", "-parse-as-library", "-swift-version", "6", "-strict-memory-safety",
             "-enable-experimental-feature", "Lifetimes", "-warnings-as-errors", sanitizers, "-use-ld=lld",
             "-module-name", "fuzz", *[f"-I{path}" for path in modules], *sorted(HERE.glob("*.swift")),
             HERE / "targets" / f"{target}.swift", archive, "-o", WORK / target])


def corpora(target):
    """Where inputs are found; libFuzzer writes new ones to the first."""
    found = WORK / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    return [path for path in (found, WORK / "seeds" / target, HERE / "corpus" / target) if path.is_dir()]


def options(target):
    dictionary = WORK / "seeds" / f"{target}.dict"
    return [f"-max_len={TARGETS[target]}", f"-timeout={TIMEOUT}", f"-rss_limit_mb={MEMORY}"] + (
        [f"-dict={dictionary}"] if dictionary.exists() else [])


def fuzz(target, limits):
    """Runs a target; whether it held."""
    findings = WORK / "findings" / target
    findings.mkdir(parents=True, exist_ok=True)
    log = WORK / f"{target}.log"
    start = time.time()
    with open(log, "wb") as file:
        status = subprocess.run(
            [WORK / target, *options(target), *limits, "-print_final_stats=1", f"-artifact_prefix={findings}/",
             *corpora(target)], env=ENVIRONMENT, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            check=False).returncode
    text = log.read_text(errors="replace")
    statistics = dict(re.findall(r"^stat::(\w+):\s+(\d+)", text, re.MULTILINE))
    lines = FIGURES.findall(text) or [("0", "0")]
    print(
        f"{target:<12}{int(statistics.get('number_of_executed_units', 0)):>12,}"
        f"{int(statistics.get('average_exec_per_sec', 0)):>10,}{lines[-1][0]:>8}"
        f"{statistics.get('new_units_added', '?'):>7}{lines[0][1]:>7}{statistics.get('peak_rss_mb', '?'):>7}"
        f"{statistics.get('slowest_unit_time_sec', '?'):>7} s"
        f"  {'ok' if status == 0 else 'FAILED'}", flush=True)
    if status == 0:
        return True
    print(f"\n{target} ended with status {status}; the whole log is {log.relative_to(REPOSITORY)}. Its last lines:")
    print("".join(f"    {line}\n" for line in text.splitlines() if not line.startswith("#"))[-6000:])
    for path in sorted(findings.iterdir()):
        if path.stat().st_mtime >= start - 1:
            replay = f"Tests/Fuzz/fuzz.py --replay {target} {path.relative_to(REPOSITORY)}"
            print(f"the input is kept; run it again with\n    {replay}\n", flush=True)
    return False


def keep(target):
    """Replaces the corpus in the repository by the smallest set of inputs that reaches as much."""
    kept = HERE / "corpus" / target
    fresh = WORK / "kept" / target
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    run([WORK / target, *options(target), "-set_cover_merge=1", fresh, *corpora(target)], env=ENVIRONMENT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(fresh, kept)
    units = list(kept.iterdir())
    print(f"{target:<12}{len(units):>6} inputs, {sum(unit.stat().st_size for unit in units):>8,} octets")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, metavar="N", help="how long to fuzz, all targets together")
    parser.add_argument("--runs", type=int, metavar="N", help="executions of each target")
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "FILE"), help="run one input and say what happens")
    parser.add_argument("--keep", action="store_true", help="write what was found to the corpus in the repository")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all unless given")
    arguments = parser.parse_args()
    targets = [arguments.replay[0]] if arguments.replay else arguments.targets or list(TARGETS)
    for target in targets:
        if target not in TARGETS:
            parser.error(f"no target {target}; there are {', '.join(TARGETS)}")

    build(targets)
    if arguments.replay:
        return subprocess.run([WORK / targets[0], *options(targets[0]), arguments.replay[1]], env=ENVIRONMENT,
                              check=False).returncode
    run([sys.executable, HERE / "seed.py", WORK / "seeds"])
    limits = []
    if arguments.runs:
        limits.append(f"-runs={arguments.runs}")
    if arguments.seconds:
        limits.append(f"-max_total_time={max(1, arguments.seconds // len(targets))}")
    succeeded = True
    if limits:
        print(f"\n{'target':<12}{'executions':>12}{'a second':>10}{'edges':>8}{'new':>7}{'MiB':>7}{'peak':>7}{'slowest':>9}", flush=True)
        for target in targets:
            succeeded = fuzz(target, limits) and succeeded
    if arguments.keep and succeeded:
        for target in targets:
            keep(target)
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
