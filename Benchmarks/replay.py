#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `beacond replay` beside what else reads captures of HCI, and beside the least that a program can do.

Every program reads the same capture and takes its turn in every round. What it takes for a capture of one packet is its
start-up, and is taken off.
"""

import tempfile

from laboratory import (
    PYTHON, HERE, Laboratory, argument_parser, conclude, in_turn, median, peer, peer_environment, spread, table, three,
    versions)

FIELDS = ("bthci_evt.bd_addr", "bthci_evt.rssi", "btcommon.eir_ad.entry.company_id", "btcommon.eir_ad.entry.data",
          "btcommon.eir_ad.entry.service_data")


class Case:
    """One program: how many packets of the mix it reads, its command for a capture, and what it does for each."""

    def __init__(self, name, packets, command, does, against, environment=None):
        self.name, self.packets, self.command, self.does = name, packets, command, does
        # The way of beacond that does the like of it.
        self.against = against
        self.environment = environment


def cases(laboratory, beacond, quick):
    each = laboratory.configuration("each", {"presence": {"report_interval": "0s"}})
    near_limit = laboratory.program("near_limit")
    whole, tenth, few, least = (200_000, 10_000, 1000, 500) if quick else (1_000_000, 100_000, 10_000, 4000)

    def replay(*options):
        return lambda capture: [beacond, "replay", *options, capture]

    yield Case("beacond null", whole, replay("--sink", "null"), "all formats, presence", None)
    yield Case("C, table", whole, lambda capture: [near_limit, "table", capture],
               "the near-limit: iBeacon, AltBeacon, Eddystone, a table", "beacond null")
    for name, packets, does in (
        ("habluetooth", whole // 2, "AD structures, history of devices; no beacons"),
        ("bleparser", tenth, "sensors and beacons, no presence"),
        ("beacontools", few, "beacons, no presence"),
        ("aioblescan", few, "AD structures, Eddystone; no presence"),
        ("theengsgateway", least, "devices by its models, up to publish()"),
    ):
        command = [PYTHON, f"{HERE}/python_peers.py", name, "--packets", str(packets), "--capture"]
        yield Case(name, packets, lambda capture, command=command: [*command, capture], does, "beacond null")
    yield Case("beacond json", whole, replay("--sink", "json", "--config", each),
               "presence, and JSON for each advertisement of a beacon", None)
    yield Case("C, JSON", whole, lambda capture: [near_limit, "json", capture],
               "the near-limit: the table, and JSON likewise", "beacond json")
    tshark = [peer("tshark"), "-n", "-T", "fields", *(word for field in FIELDS for word in ("-e", field)), "-r"]
    yield Case("tshark -T fields", tenth, lambda capture: [*tshark, capture],
               "five fields of each packet, no beacons", "beacond json", peer_environment())
    yield Case("beacond stdout", whole, replay("--sink", "stdout", "--config", each),
               "presence, and text for each advertisement of a beacon", None)
    yield Case("btmon -r", tenth, lambda capture: [peer("btmon"), "-r", capture],
               "all of each packet as text", "beacond stdout", peer_environment())
    yield Case("hcidump", tenth, lambda capture: [peer("hcidump"), "-r", capture],
               "AD types as text; takes extended reports for something else", "beacond stdout", peer_environment())


PROMISES = [
    ("beacond null", "C, table", 0.5), ("beacond json", "C, JSON", 0.5), ("beacond null", "hcidump", 10),
    ("beacond null", "habluetooth", 5), ("beacond null", "theengsgateway", 1000),
]


def report(all_cases, begins, runs):
    """The section, from the start-ups and the runs by name."""
    # The least, so that a slow start in a noisy moment does not make a fast program of what follows.
    begin = {name: (min(run.wall for run in of), min(run.cpu for run in of)) for name, of in begins.items()}
    packets = {case.name: case.packets for case in all_cases}
    speed = {name: [packets[name] / max(run.wall - begin[name][0], 1e-4) for run in of] for name, of in runs.items()}
    cpu = {name: [max(run.cpu - begin[name][1], 1e-4) * 1e6 / packets[name] for run in of] for name, of in runs.items()}

    def ratio(ours, theirs):
        """beacond's speed divided by the other's, and the same by CPU time: medians of the rounds."""
        return (median([a / b for a, b in zip(speed[ours], speed[theirs])]),
                median([b / a for a, b in zip(cpu[ours], cpu[theirs])]))

    rows = []
    for case in all_cases:
        ratios = [f"{value:,.2f}" for value in ratio(case.against, case.name)] if case.against else ["", ""]
        rows.append([
            case.name, case.does, three(speed[case.name], ",.0f"), f"{median(cpu[case.name]):,.2f}",
            f"{max(run.peak for run in runs[case.name]) / 1048576:,.1f}", f"{begin[case.name][0] * 1000:,.0f}", *ratios,
            case.against or "",
        ])
    promised = [
        [f"{ours} : {theirs}", f"{least:g}", *(f"{value:,.2f}" for value in ratio(ours, theirs))]
        for ours, theirs, least in PROMISES
    ]
    widest = max((spread(values)[2] / spread(values)[0], name) for name, values in speed.items())
    rounds = len(next(iter(runs.values())))
    return f"""- {versions()}

{table(["program", "for each packet", "packets a second, median (range)", "CPU s a million", "peak MiB", "start-up ms",
        "beacond is faster by", "by CPU", "which way of beacond"], rows)}

{rounds} rounds; the slowest of one program took up to {widest[0]:.1f} times as long as its fastest ({widest[1]}). Each reads the front of one capture ({packets["beacond null"]:,} packets of 500 devices; slower programs fewer of them) and writes to nowhere. The peak of a program that maps the file has the file in it.

{table(["goal", "wanted", "reached", "by CPU"], promised)}"""


def main():
    arguments = argument_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(folder)
        all_cases = list(cases(laboratory, arguments.beacond, arguments.quick))

        def measurements(one):
            return {
                case.name: lambda case=case: laboratory.measure(
                    case.command(laboratory.capture(1 if one else case.packets)), environment=case.environment)
                for case in all_cases
            }

        for each in {case.packets for case in all_cases}:
            laboratory.capture(each)
        begins = in_turn(2 if arguments.quick else 5, measurements(True))
        runs = in_turn(2 if arguments.quick else 5, measurements(False))
        conclude(arguments, "replay", report(all_cases, begins, runs))


if __name__ == "__main__":
    main()
