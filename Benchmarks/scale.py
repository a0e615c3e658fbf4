#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how the costs grow: with the beacons that are heard, the regions, the sinks, and what is configured."""

import os
import tempfile
import time

import plot
from captures import known, uuid_text, write_rounds
from laboratory import (
    Controller, Laboratory, Usage, argument_parser, beacond_run, conclude, in_turn, median, memory_with_beacons, private_memory,
    table, three)

BEACONS = (100, 1000, 10_000, 100_000)
# The configuration takes no more regions than 10,000, and no more beacons.
REGIONS = (1, 100, 1000, 10_000)
CONFIGURED = (1, 100, 1000, 10_000)
SINKS = (1, 4, 16)
PRESENCE = {"maximum_beacons": 100_000}


def time_of_a_sighting(laboratory, beacond, configuration, devices, packets):
    """Microseconds of CPU: what the second half of a capture takes, so that the tables are filled before."""
    command = [beacond, "replay", "--sink", "null", "--config", configuration]
    half, whole = (laboratory.capture(count, devices) for count in (packets // 2, packets))

    def run():
        first, both = laboratory.measure([*command, half]), laboratory.measure([*command, whole])
        return max(both.cpu - first.cpu, 1e-6) * 1e6 / (packets // 2)

    return run


def start_up(laboratory, beacond, configuration):
    """Milliseconds from the start of the process to the command that turns scanning on."""

    def run():
        with Controller(laboratory, "none", 0, 0.2) as controller:
            began = time.monotonic()
            with beacond_run(laboratory, beacond, controller, configuration):
                controller.expect("scanning")
                return (time.monotonic() - began) * 1000

    return run


def cost_of_sinks(laboratory, beacond, count, seconds):
    """CPU in per cent of a core at 1,000 advertisements a second, private bytes."""
    capture = write_rounds(laboratory.path("steady"), 500, 5000, 1000)
    sinks = [{"kind": "null", "name": f"null-{number}"} for number in range(count)]

    def run():
        with Controller(laboratory, capture, 1000, seconds + 3) as controller:
            with beacond_run(laboratory, beacond, controller, {"sinks": sinks}) as daemon:
                controller.expect("scanning")
                time.sleep(2)
                before = Usage(daemon.pid)
                time.sleep(seconds)
                return Usage(daemon.pid).share_since(before), private_memory(daemon.pid)

    return run


def main():
    arguments = argument_parser(__doc__).parse_args()
    quick = arguments.quick
    runs = 1 if quick else 5

    def ends(values):
        return values[:: len(values) - 1] if quick else values

    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(folder)
        beacond = laboratory.stripped(arguments.beacond)
        plain = laboratory.configuration("plain", {"presence": PRESENCE})
        beacons = BEACONS[::2] if quick else BEACONS
        sighting = in_turn(runs, {
            count: time_of_a_sighting(laboratory, beacond, plain, count, 200_000 if quick else max(1_000_000, count * 10))
            for count in beacons})

        def with_regions(count):
            entries = [
                {"name": f"region {number}", "uuid": uuid_text(), "major": 1, "minor": number} for number in range(count)]
            return laboratory.configuration(f"regions-{count}", {"regions": entries})

        regions = in_turn(runs, {
            count: time_of_a_sighting(laboratory, beacond, with_regions(count), 500, 200_000 if quick else 1_000_000)
            for count in ends(REGIONS)})
        memory = {
            count: [memory_with_beacons(laboratory, beacond, tracked) for tracked in (1, count)]
            for count in ((10_000,) if quick else (100, 10_000, 100_000))}
        starts = in_turn(runs, {
            count: start_up(laboratory, beacond, {"beacons": known(count)}) for count in ends(CONFIGURED)})
        sinks = in_turn(1 if quick else 3, {
            count: cost_of_sinks(laboratory, beacond, count, 1 if quick else 10) for count in ends(SINKS)})

        panels = [
            ("CPU for a sighting", "beacons", "µs", [(count, median(values)) for count, values in sighting.items()]),
            ("CPU for a sighting", "regions", "µs", [(count, median(values)) for count, values in regions.items()]),
            ("Start to first scan command", "configured beacons", "ms",
             [(count, median(values)) for count, values in starts.items()]),
        ]
        text = "\n\n".join([
            table(["beacons heard", "CPU µs for an advertisement, median (range)"],
                  [[f"{count:,}", three(values, ".3f")] for count, values in sighting.items()]),
            table(["beacons tracked", "private MiB", "bytes a beacon"],
                  [[f"{count:,}", f"{whole / 1048576:.1f}", f"{(whole - one) / (count - 1):,.0f}"]
                   for count, (one, whole) in memory.items()]),
            table(["regions", "CPU µs for an advertisement, median (range)"],
                  [[f"{count:,}", three(values, ".3f")] for count, values in regions.items()]),
            table(["configured beacons", "start to first scan command, ms, median (range)"],
                  [[f"{count:,}", three(values, ".1f")] for count, values in starts.items()]),
            table(["null sinks", "CPU, % of a core at 1,000 a second, median (range)", "private MiB"],
                  [[f"{count}", three([share for share, _ in values], ".2f"),
                    f"{max(private for _, private in values) / 1048576:.1f}"] for count, values in sinks.items()]),
            "The time of an advertisement is that of the second half of a replay of the mix, of which two thirds are of "
            "beacons. Bytes a beacon are private pages of the daemon, against one that tracks a single beacon. The "
            "configuration takes at most 10,000 regions and 10,000 beacons.",
            "![How the costs grow](performance-scale.svg)",
        ])
        conclude(arguments, "scale", text)
        if arguments.write:
            plot.write(os.path.join(os.path.dirname(arguments.write), "performance-scale.svg"), panels)


if __name__ == "__main__":
    main()
