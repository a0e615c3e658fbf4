#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `beacond decode`: payloads a second, CPU, memory, allocations, and the share of time of each format.

Made-up payloads (payloads.py) go from a file into the program, whose answers go nowhere. Allocations of a payload are
the difference between an input and its first half; anything but none is a failure.
"""

import random
import sys
import tempfile

import payloads
from laboratory import Laboratory, argument_parser, conclude, spread, table

# Distinct payloads of one format alone, repeated up to the count: nothing in `decode` remembers a payload.
DISTINCT = 50_000


def write_lines(path, lines):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(line + "\n" for line in lines)


def write_payloads(path, name, count, seed):
    distinct = count if name == "mix" else min(count, DISTINCT)
    lines = [payload.hex() for payload in payloads.payloads(name, distinct, seed)]
    write_lines(path, (lines[index % distinct] for index in range(count)))


def inputs_of_other_kinds(count, seed):
    """(name, kind, lines) of what is not a sound payload of advertising data."""
    generator = random.Random(seed)
    mix = list(payloads.payloads("mix", count, seed))
    yield "damaged", "adv-data", [
        payload[: generator.randrange(len(payload))].hex() + generator.choice(("", "", "0", "zz")) for payload in mix
    ]
    events = [payloads.hci_event(payload, generator) for payload in mix]
    yield "hci-event", "hci-event", [event.hex() for event in events]
    yield "damaged hci-event", "hci-event", [event[: generator.randrange(len(event))].hex() for event in events]
    yield "hci-sequence", "hci-sequence", [
        f"{first.hex()} {payloads.first_fragment(generator).hex()} {second.hex()}"
        for first, second in zip(events, reversed(events))
    ]


def check_allocations(laboratory, beacond, count, seed):
    """Prints what each kind of input makes the program ask for; the allocations of a payload by name."""
    result, rows = {}, []

    def check(name, kind, lines):
        command = [beacond, "decode", "--kind", kind]
        write_lines(laboratory.path("whole"), lines)
        write_lines(laboratory.path("half"), lines[: count // 2])
        half = laboratory.allocations(command, laboratory.path("half"))
        whole = laboratory.allocations(command, laboratory.path("whole"))
        result[name] = (whole - half) / (count - count // 2)
        rows.append([name, f"{half}", f"{whole}", f"{result[name]:g}"])

    for name in ["mix"] + [name for name, _, _ in payloads.FORMATS]:
        check(name, "adv-data", [payload.hex() for payload in payloads.payloads(name, count, seed)])
    for name, kind, lines in inputs_of_other_kinds(count, seed):
        check(name, kind, lines)
    print(table(["allocations", f"{count // 2:,} lines", f"{count:,} lines", "a line behind the first half"], rows))
    return result


def measure(laboratory, beacond, counts, runs, seed):
    """Runs by name. The inputs take turns, so that a noisy minute does not fall on one of them."""
    for name, count in counts.items():
        write_payloads(laboratory.path(name), name, count, seed)
    results = {name: [] for name in counts}
    for _ in range(runs):
        for name in counts:
            results[name].append(laboratory.measure([beacond, "decode"], laboratory.path(name)))
    return results


def report(results, counts, allocations, runs, seed):
    """The section of the page."""
    def cpu(name):
        """Seconds for a million."""
        return spread([run.cpu * 1e6 / counts[name] for run in results[name]])

    speed = spread([counts["mix"] / run.wall for run in results["mix"]])
    mix_median = cpu("mix")[1]
    peak = max(run.peak for run in results["mix"]) / (1 << 20)
    total = table(["decode, the mix", "minimum", "median", "maximum"], [
        ["payloads a second", *(f"{value:,.0f}" for value in speed)],
        ["payloads a CPU second", *(f"{1e6 / value:,.0f}" for value in reversed(cpu("mix")))],
        ["CPU seconds for a million", *(f"{value:.2f}" for value in cpu("mix"))],
        ["peak memory, MiB", "", "", f"{peak:.1f}"],
        ["allocations a payload", "", "", f"{allocations['mix']:g}"],
    ])
    weighted = {name: cpu(name)[1] * share / 100 for name, share, _ in payloads.FORMATS}
    whole = sum(weighted.values())
    rows = []
    for name, share, _ in payloads.FORMATS:
        low, median, high = cpu(name)
        rows.append([
            name, f"{1e6 / median:,.0f}", f"{low:.2f}", f"{median:.2f}", f"{high:.2f}", f"{allocations[name]:g}",
            f"{share} %", f"{weighted[name] / whole * 100:.1f} %",
        ])
    formats = table(
        ["format alone", "payloads a CPU second", "CPU s a million, minimum", "median", "maximum", "allocations",
         "share of payloads", "share of time"], rows)
    return f"""{total}

{runs} runs of {counts['mix']:,} payloads (seed {seed}), each another one; hexadecimal lines from a file in, JSON to nowhere.

{formats}

Each format alone: {runs} runs of {counts[payloads.FORMATS[0][0]]:,} payloads. The share of time is reckoned, not measured inside of the mix: the median of the format alone times its share of the payloads. These products sum up to {whole:.2f} CPU seconds for a million; the mix itself took {mix_median:.2f}. "none" are advertisements of other devices, with a name, services and data of some manufacturer. A quarter of BTHome's payloads are encrypted, without a key here."""


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only-allocations", action="store_true", help="no measurement of time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(folder)
        count = 10_000 if arguments.quick else 40_000
        allocations = check_allocations(laboratory, arguments.beacond, count, arguments.seed)
        if not arguments.only_allocations:
            runs = 2 if arguments.quick else 5
            counts = {"mix": 100_000 if arguments.quick else 1_000_000}
            counts |= {name: 10_000 if arguments.quick else 200_000 for name, _, _ in payloads.FORMATS}
            results = measure(laboratory, arguments.beacond, counts, runs, arguments.seed)
            conclude(arguments, "decoding", report(results, counts, allocations, runs, arguments.seed))
    guilty = [name for name, count in allocations.items() if count != 0]
    if guilty:
        sys.exit(f"decode must allocate nothing for a line, and does for: {', '.join(guilty)}")


if __name__ == "__main__":
    main()
