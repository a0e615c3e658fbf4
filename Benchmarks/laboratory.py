# SPDX-License-Identifier: Apache-2.0
"""What the parts of the benchmark share: measured runs and processes, inputs, peers, tables, and the page."""

import argparse
import json
import os
import platform
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
HARNESS = os.path.join(ROOT, "Tests/Harness")
COUNTER = os.path.join(HARNESS, "allocations/count_allocations.c")
PEERS = os.path.join(ROOT, ".cache/peers/tree")
PYTHON = os.path.join(ROOT, ".cache/venv-bench/bin/python")
LIBRARIES = {"publisher": ["-lmosquitto"], "subscriber": ["-lmosquitto"]}
# Broker, ports and the ending of processes are those of the other tests.
sys.path.insert(0, HARNESS)
from captures import write_rounds  # noqa: E402
from support import Broker, end  # noqa: E402


def build(source, target, *flags):
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-O2", "-o", target, source, *flags], check=True)
    return target


class Run:
    """What one run of a program took: seconds and bytes."""

    def __init__(self, wall, user, system, peak):
        self.wall, self.cpu, self.peak = wall / 1e9, (user + system) / 1e9, peak


class Laboratory:
    """Runs programs under measurement; its own tools and what it makes are in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, name):
        """One of the C programs, built when it is first asked for."""
        if name not in self.programs:
            source = os.path.join(HERE, "programs", f"{name}.c")
            self.programs[name] = build(source, self.path(name), "-D_DEFAULT_SOURCE", *LIBRARIES.get(name, []))
        return self.programs[name]

    def counter(self):
        if "counter" not in self.programs:
            self.programs["counter"] = build(COUNTER, self.path("count.so"), "-shared", "-fPIC")
        return self.programs["counter"]

    def measure(self, command, input_path=os.devnull, environment=None):
        result = self.path("result")
        with open(input_path, "rb") as file:
            done = subprocess.run(
                [self.program("measure"), result, *command], stdin=file, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, env=environment, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr.decode()}")
        with open(result, encoding="ascii") as file:
            return Run(*map(int, file.read().split()))

    def allocations(self, command, input_path):
        """How often the program asked for memory, all threads together."""
        counts = self.path("counts")
        environment = dict(os.environ, LD_PRELOAD=self.counter(), ALLOCATION_COUNTS=counts)
        with open(input_path, "rb") as file:
            subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, env=environment, check=True)
        with open(counts, encoding="ascii") as file:
            return sum(map(int, file.read().split()))

    def capture(self, packets, devices=500, seed=1):
        """A capture of the generator's mix, made when it is first asked for."""
        path = self.path(f"{packets}-{devices}-{seed}.btsnoop")
        if not os.path.exists(path):
            command = [os.path.join(HARNESS, "make_capture.py"), path, "--packets", str(packets), "--devices"]
            subprocess.run([*command, str(devices), "--seed", str(seed)], stdout=subprocess.DEVNULL, check=True)
        return path

    def configuration(self, name, value):
        path = self.path(f"{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
        return path

    def stripped(self, program):
        """A copy as it is installed, without symbols."""
        target = self.path("beacond.stripped")
        subprocess.run(["strip", "-o", target, program], check=True)
        return target


def argument_parser(description):
    """What every part of the benchmark can be told."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--beacond", required=True, help="the release build")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    parser.add_argument("--write", metavar="PAGE", help="writes the section of this page")
    return parser


def conclude(arguments, name, text):
    """Prints a section, and writes it when that is wanted."""
    form = "- Form: quick, fewer and shorter runs than the figures of a release want\n" if arguments.quick else ""
    # Facts that the part adds go on in the list.
    text = machine(arguments.beacond) + "\n" + form + ("" if text.startswith("- ") else "\n") + text
    print("\n" + text, flush=True)
    if arguments.write:
        write_section(arguments.write, name, text)


def in_turn(runs, measurements):
    """Runs by name. They take turns, so that a noisy minute does not fall on one of them."""
    results = {name: [] for name in measurements}
    for _ in range(runs):
        for name, measurement in measurements.items():
            results[name].append(measurement())
    return results


def median(values):
    return statistics.median(values)


def three(values, form):
    """The median, with the least and the most behind it."""
    low, middle, high = spread(values)
    return f"{format(middle, form)} ({format(low, form)}–{format(high, form)})"


# MARK: Tools that Debian has


def peer_environment():
    """Where programs that were unpacked and not installed find their libraries."""
    libraries = [os.path.join(PEERS, "usr/lib", f"{platform.machine()}-linux-gnu"), os.environ.get("LD_LIBRARY_PATH", "")]
    return dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, libraries)))


def peer(name):
    unpacked = os.path.join(PEERS, "usr/bin", name)
    return unpacked if os.path.exists(unpacked) else shutil.which(name)


def versions():
    """Of what it was measured beside, as a sentence."""
    environment = peer_environment()
    tools = [first_line([peer(name) or name, "--version"], environment) for name in ("tshark", "btmon")]
    with open(os.path.join(HERE, "requirements.txt"), encoding="utf-8") as file:
        libraries = [line.strip().replace("==", " ") for line in file if "==" in line]
    tools[0] = " ".join(tools[0].split()[:3]).replace("(Wireshark) ", "").rstrip(".")
    python = first_line([PYTHON, "--version"])
    return (f"Beside it: {tools[0]}, btmon and hcidump of BlueZ {tools[1]}, {first_line(['cc', '--version'])}; {python} "
            f"with {', '.join(libraries)}")


# MARK: Processes that go on


class Usage:
    """What a running process has taken so far."""

    def __init__(self, pid):
        self.moment = time.monotonic()
        self.cpu = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                self.cpu += int(file.read().split()[0]) / 1e9
        self.switches = sum(
            number(f"/proc/{pid}/task/{task}/status", "voluntary_ctxt_switches") for task in os.listdir(f"/proc/{pid}/task"))

    def share_since(self, earlier):
        """CPU in per cent of one core."""
        return (self.cpu - earlier.cpu) / (self.moment - earlier.moment) * 100

    def wakeups_since(self, earlier):
        """A second."""
        return (self.switches - earlier.switches) / (self.moment - earlier.moment)


def number(path, key):
    with open(path, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))


def private_memory(pid):
    """Bytes that a process has for itself and that cannot be had again from a file."""
    return number(f"/proc/{pid}/smaps_rollup", "Anonymous") * 1024


def mapped_memory(pid):
    """Bytes of files, above all of its own program, that nobody else has mapped; the kernel takes them when it must."""
    rollup = f"/proc/{pid}/smaps_rollup"
    # A program that was built a moment ago is dirty, because it is not on the disk yet.
    return (number(rollup, "Private_Clean") + number(rollup, "Private_Dirty")) * 1024 - private_memory(pid)


def written_to_disk(pid):
    return number(f"/proc/{pid}/io", "write_bytes")


class Controller:
    """programs/controller.c, which hears a capture at a rate. Both sides end with the `with`."""

    def __init__(self, laboratory, capture, rate, seconds, times=None):
        self.socket = laboratory.path("radio.sock")
        command = [laboratory.program("controller"), self.socket, capture, str(rate), str(seconds)]
        self.process = subprocess.Popen(command + ([times] if times else []), stdout=subprocess.PIPE, bufsize=0)
        self.patience = seconds + 30
        self.said = b""
        self.expect("listening")

    def expect(self, word):
        """The rest of the line that begins with the word."""
        while b"\n" not in self.said:
            if not select.select([self.process.stdout], [], [], self.patience)[0]:
                raise SystemExit(f"controller: expected {word} within {self.patience:.0f} s; nobody turned scanning on?")
            chunk = os.read(self.process.stdout.fileno(), 4096)
            if not chunk:
                raise SystemExit(f"controller: expected {word}, and it ended")
            self.said += chunk
        line, self.said = self.said.split(b"\n", 1)
        if not line.startswith(word.encode()):
            raise SystemExit(f"controller: expected {word}, found {line!r}")
        return line.split()[1:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)
        self.process.stdout.close()


class Daemon:
    """`beacond run` or something in its place, ended with the `with`; what it says goes to a file."""

    def __init__(self, laboratory, command):
        self.log = open(laboratory.path("daemon.log"), "wb")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        end(self.process)
        self.log.close()


def beacond_run(laboratory, beacond, controller, configuration):
    """The daemon that hears a controller, with what else is configured."""
    value = {
        "gateway": {"id": "bench"}, "log_level": "warning", "control_socket": "none",
        "sources": [f"unix:{controller.socket}"],
        # Without a sink nobody wants to hear anything, and it does not scan.
        "sinks": [{"kind": "null"}],
    } | configuration
    return Daemon(laboratory, [beacond, "run", "--config", laboratory.configuration("run", value)])


def mqtt_sink(port, **keys):
    return {"kind": "mqtt", "config": {"host": "127.0.0.1", "port": port} | keys}


def memory_with_beacons(laboratory, beacond, count, maximum=100_000):
    """Private bytes of a daemon that tracks so many iBeacons, and could track so many."""
    # Two advertisements are an enter, the third is of one that stays.
    capture = write_rounds(laboratory.path("tracked"), count, count * 3, 1000)
    with Controller(laboratory, capture, 0, 0) as controller:
        presence = {"maximum_beacons": maximum, "exit_time": "1h"}
        with beacond_run(laboratory, beacond, controller, {"presence": presence}) as daemon:
            controller.expect("scanning")
            controller.expect("done")
            time.sleep(0.5)
            return private_memory(daemon.pid)


class Subscriber:
    """programs/subscriber.c on every topic of a broker."""

    def __init__(self, laboratory, port, topic="#", log=None):
        command = [laboratory.program("subscriber"), str(port), topic] + ([log] if log else [])
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit("the subscriber could not subscribe")

    def stop(self):
        """How many messages came, and seconds from the first to the last."""
        self.process.send_signal(signal.SIGTERM)
        count, first, last = map(int, self.process.stdout.read().split())
        self.process.wait()
        self.process.stdout.close()
        return count, (last - first) / 1e9


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


def first_line(command, environment=None):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()[0].strip()
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
