# SPDX-License-Identifier: Apache-2.0
"""What the parts of the benchmark share: measured runs, counted allocations, tables, and the page they are written to."""

import os
import platform
import re
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
COUNTER = os.path.join(ROOT, "Tests/Harness/allocations/count_allocations.c")


def build(source, target, *flags):
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-O2", *flags, "-o", target, source], check=True)
    return target


class Run:
    """What one run of a program took."""

    def __init__(self, wall, user, system, peak):
        self.wall, self.cpu, self.peak = wall / 1e9, (user + system) / 1e9, peak


class Laboratory:
    """Runs programs under measurement; its tools are built into `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.measurer = build(os.path.join(HERE, "measure.c"), os.path.join(folder, "measure"))
        self.counter = build(COUNTER, os.path.join(folder, "count.so"), "-shared", "-fPIC")

    def path(self, name):
        return os.path.join(self.folder, name)

    def measure(self, command, input_path):
        result = self.path("result")
        with open(input_path, "rb") as file:
            subprocess.run([self.measurer, result, *command], stdin=file, stdout=subprocess.DEVNULL, check=True)
        with open(result, encoding="ascii") as file:
            return Run(*map(int, file.read().split()))

    def allocations(self, command, input_path):
        """How often the program asked for memory, all threads together."""
        counts = self.path("counts")
        environment = dict(os.environ, LD_PRELOAD=self.counter, ALLOCATION_COUNTS=counts)
        with open(input_path, "rb") as file:
            subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, env=environment, check=True)
        with open(counts, encoding="ascii") as file:
            return sum(map(int, file.read().split()))


def spread(values):
    """(minimum, median, maximum)"""
    return min(values), statistics.median(values), max(values)


def table(header, rows):
    """A table of Markdown that is as readable in a terminal; numbers stand to the right."""
    cells = [header, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for row in cells:
        parts = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("| " + " | ".join(parts) + " |")
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    lines.insert(1, "| " + " | ".join(rule) + " |")
    return "\n".join(lines)


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "not known"


def machine(program):
    """What was measured on what, as a sentence each."""
    processor = "not known"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if re.match(r"(model name|Model)\s*:", line):
                processor = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1]) / (1 << 20)
    swift = re.search(r"Swift version [0-9.]+", first_line(["swift", "--version"]))
    return "\n".join([
        f"- Machine: {processor}, {os.cpu_count()} cores, {memory:.1f} GiB, {platform.machine()}",
        f"- System: {platform.system()} {platform.release()}, {platform.libc_ver()[0]} {platform.libc_ver()[1]}",
        f"- Program: {first_line([program, '--version'])}, release build, "
        f"{swift.group(0) if swift else 'Swift version not known'}",
        f"- Load when it began: {os.getloadavg()[0]:.1f} (others on the machine make wall time much longer and CPU time somewhat)",
    ])


def write_section(page, name, text):
    """Puts the text between the markers of a section of the page."""
    with open(page, encoding="utf-8") as file:
        content = file.read()
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if begin not in content or end not in content:
        raise SystemExit(f"{page}: expected the lines {begin.strip()} and {end}")
    front, rest = content.split(begin, 1)
    with open(page, "w", encoding="utf-8") as file:
        file.write(front + begin + text + "\n" + end + rest.split(end, 1)[1])
