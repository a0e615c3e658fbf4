#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `beacond replay FILE --emit reports` with what tshark read from the same captures.

Every FILE.btsnoop of the folder that has a FILE.tshark.jsonl beside it is replayed. Each advertising report must agree
in frame number, time, event type, address type, address, RSSI, length of the data and the fields of an iBeacon, and
there must be as many reports. Where tshark gave up inside of a payload it has no RSSI to compare, which is counted.
"""

import argparse
import datetime
import glob
import json
import os
import subprocess
import sys

SHOWN = 5  # differences that are printed for each capture
RSSI_NOT_AVAILABLE = 127


def tshark_reports(path):
    """The reports of a file, one after the other: tshark has a line for each event."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            count = event["num_reports"]
            beacons = [beacon_fields(beacon) for beacon in event.get("ibeacon", [])]
            for index in range(count):
                report = {
                    "frame": event["frame"],
                    "time": float(event["time"]),
                    "event_type": event["event_type"][index],
                    "address_type": event["address_type"][index],
                    "address": event["address"][index].lower(),
                    "data_length": event["data_length"][index],
                    # tshark says which event has an iBeacon, not which report: comparable when there is one report.
                    "ibeacon": beacons if count == 1 else None,
                }
                if len(event.get("rssi", [])) == count:
                    rssi = event["rssi"][index]
                    report["rssi"] = None if rssi == RSSI_NOT_AVAILABLE else rssi
                yield report


def beacon_fields(frame):
    return {key: frame.get(key) for key in ("uuid", "major", "minor", "tx_power")}


def beacond_reports(program, capture):
    """The reports that the program prints."""
    command = [program, "replay", capture, "--emit", "reports"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines, log = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{log}")
    for line in lines.splitlines():
        report = json.loads(line)
        time = datetime.datetime.fromisoformat(report["time"].replace("Z", "+00:00"))
        yield {
            "frame": report["frame"],
            "time": time.timestamp(),
            "event_type": report["event_type"],
            "address_type": report["address_type"],
            "address": report["address"],
            "rssi": report["rssi"],
            "data_length": len(report["data"]) // 2,
            "ibeacon": [beacon_fields(frame) for frame in report["frames"] if frame["format"] == "ibeacon"],
        }


def differences(ours, theirs):
    """The keys in which two reports differ, as `key ours/theirs`."""
    for key, expected in theirs.items():
        if key == "ibeacon" and expected is None:
            continue
        found = ours[key]
        # beacond prints milliseconds.
        agrees = abs(found - expected) < 0.001 if key == "time" else found == expected
        if not agrees:
            yield f"{key} {found}/{expected}"


def compare(program, capture, reference):
    """Prints a line on a capture and returns whether everything agrees."""
    ours = list(beacond_reports(program, capture))
    theirs = list(tshark_reports(reference))
    found = []
    if len(ours) != len(theirs):
        found.append(f"{len(ours)} reports, tshark has {len(theirs)}")
    for our, their in zip(ours, theirs):
        keys = list(differences(our, their))
        if keys:
            found.append(f"frame {their['frame']}: " + ", ".join(keys) + " (beacond/tshark)")
    beacons = sum(len(report["ibeacon"] or []) for report in theirs)
    without_rssi = sum("rssi" not in report for report in theirs)
    name = os.path.basename(capture).removesuffix(".btsnoop")
    print(f"{name:<20} {len(theirs):>8} {beacons:>9} {without_rssi:>16} {len(found):>12}")
    for text in found[:SHOWN]:
        print(f"    {text}")
    return len(theirs), not found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="where the captures are")
    parser.add_argument("--beacond", required=True, help="the program")
    arguments = parser.parse_args()
    captures = [
        (capture, reference)
        for capture in sorted(glob.glob(os.path.join(arguments.folder, "*.btsnoop")))
        if os.path.exists(reference := capture.removesuffix(".btsnoop") + ".tshark.jsonl")
    ]
    if not captures:
        raise SystemExit(f"{arguments.folder} has no NAME.btsnoop with a NAME.tshark.jsonl beside it")
    print(f"{'capture':<20} {'reports':>8} {'ibeacons':>9} {'rssi not given':>16} {'differences':>12}")
    results = [compare(arguments.beacond, *pair) for pair in captures]
    print(f"{'all':<20} {sum(count for count, _ in results):>8}")
    return 0 if all(agrees for _, agrees in results) else 1


if __name__ == "__main__":
    sys.exit(main())
