#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what beacond takes of a machine: its program, its memory with each sink, and what it writes to a disk."""

import os
import tempfile
import time

from captures import known, visits, write
from laboratory import (
    Broker, Controller, Laboratory, argument_parser, beacond_run, conclude, mapped_memory, mqtt_sink, number,
    private_memory, table, written_to_disk)

MIB = 1 << 20
BEACONS, VISITORS = 500, 20


def memory(laboratory, beacond, sinks):
    """Private, mapped and resident bytes of a daemon that has started and hears nothing."""
    with Controller(laboratory, "none", 0, 1) as controller:
        # Somebody must want to hear something: a sink, or a region.
        configuration = {"sinks": sinks, "regions": [{"name": "all", "format": "ibeacon"}]}
        with beacond_run(laboratory, beacond, controller, configuration) as daemon:
            controller.expect("scanning")
            time.sleep(1)
            resident = number(f"/proc/{daemon.pid}/status", "VmRSS") * 1024
            return private_memory(daemon.pid), mapped_memory(daemon.pid), resident


def writes(laboratory, beacond, port, rate, seconds):
    """Enters and exits a day at this rate of advertisements, and bytes written to the disk of the outbox for them."""
    capture = write(laboratory.path("visits"), visits(int(rate * (seconds + 20)), BEACONS, VISITORS), rate)
    configuration = {
        "state_directory": tempfile.mkdtemp(dir=os.path.dirname(os.path.abspath(beacond))),
        # Visitors leave between two advertisements, the others never do.
        "beacons": known(BEACONS, exit_time="1h") + known(VISITORS, BEACONS, exit_time="1s", enter_count=1),
        "sinks": [mqtt_sink(port)]}
    with Controller(laboratory, capture, rate, seconds + 20) as controller:
        with beacond_run(laboratory, beacond, controller, configuration) as daemon:
            controller.expect("scanning")
            # Each beacon has entered.
            time.sleep(2 * BEACONS / rate + 3)
            before = written_to_disk(daemon.pid)
            time.sleep(seconds)
            written = (written_to_disk(daemon.pid) - before) / seconds
    transitions = 2 * rate / 20
    return transitions * 86_400, written * 86_400


def main():
    arguments = argument_parser(__doc__).parse_args()
    quick = arguments.quick
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(folder)
        beacond = laboratory.stripped(arguments.beacond)
        broker = Broker(folder)
        broker.start()
        try:
            sinks = {"none, one region": [], **{f"{kind}": [{"kind": kind}] for kind in ("null", "stdout", "json")}}
            sinks["mqtt"] = [mqtt_sink(broker.port)]
            sinks["stdout and json"] = [{"kind": "stdout"}, {"kind": "json"}]
            sinks["stdout, json and mqtt"] = [*sinks["stdout and json"], mqtt_sink(broker.port)]
            taken = {name: memory(laboratory, beacond, of) for name, of in sinks.items()}
            days = [] if quick else [writes(laboratory, beacond, broker.port, rate, 30) for rate in (100, 200)]
        finally:
            broker.stop()
        minute, hour = (60_000, 120_000) if quick else (60_000, 3_600_000)
        command = [beacond, "replay", "--sink", "null"]
        peaks = {count: laboratory.measure([*command, laboratory.capture(count)]).peak for count in (minute, hour)}

        least = taken["none, one region"][0]
        text = "\n\n".join([
            table(["program", "bytes"], [
                ["stripped, Swift's runtime inside", f"{os.path.getsize(beacond):,}"],
                ["with symbols", f"{os.path.getsize(arguments.beacond):,}"]]),
            table(["memory after the start, with the sinks", "private MiB", "more than without, KiB", "its files, MiB", "resident MiB"], [
                [name, f"{private / MIB:.2f}", f"{(private - least) / 1024:,.0f}", f"{mapped / MIB:.2f}", f"{resident / MIB:.1f}"]
                for name, (private, mapped, resident) in taken.items()]),
            table(["replay of 500 devices at 1,000 a second", "peak MiB"], [
                [f"{count / 60_000:,.0f} min", f"{peak / MIB:.1f}"] for count, peak in peaks.items()]),
            *([table(["enters and exits a day", "written to the disk a day, MiB", "bytes for each"], [
                [f"{transitions:,.0f}", f"{written / MIB:,.0f}", f"{written / transitions:,.0f}"]
                for transitions, written in days])] if days else []),
            "Goals: at most 6 MiB private with stdout and json, 10 MiB with mqtt. Private are pages that the program has "
            "written to; \"its files\" are pages of the program and its libraries that nobody else has mapped, which the "
            "kernel can take and read again. What is written is what the kernel "
            "writes for the outbox, with its journal.",
        ])
        conclude(arguments, "footprint", text)


if __name__ == "__main__":
    main()
