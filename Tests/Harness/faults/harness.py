# SPDX-License-Identifier: Apache-2.0
"""What every fault is tried with: a gateway with a simulated radio, a broker, a bad network, a recorder, a verdict."""

import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import Beacon, Broker, end, end_cleanly_when_asked, find_program, wait_until, write_json  # noqa: E402

from proxy import Proxy  # noqa: E402
from recorder import NATS, Recorder  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
GATEWAY = "faults"
ROOT = f"beacond/{GATEWAY}/"
UUID = "6e3f5a10-52c1-4c58-9d0e-0c8f41a7b2d9"
WINDOW = 20  # messages that may be unacknowledged, and so repeated after a break
GROUP = 64  # transitions of one commit, whose acknowledgements a crash may forget
TRANSITIONS = {
    "enter", "exit", "region_enter", "region_exit", "region_unknown", "region_known", "proximity", "clone", "adapter",
    "health", "gap", "flood",
}


def make_scenario(generator, duration, rate=10, steady=8):
    """Beacons that come and go so that `rate` transitions happen in a second, and some that stay."""
    cycle = 8.0
    beacons = []
    for number in range(max(2, round(rate * cycle / 2))):
        visits, start = [], generator.uniform(-3, 4)
        while start < duration:
            stop = start + generator.uniform(2.5, 3.5)
            if stop > 0.1:
                visits.append({"from": f"{max(0, start):.3f}s", "to": f"{stop:.3f}s"})
            start = stop + generator.uniform(4, 6)
        beacons.append({"visits": visits})
    beacons += [{}] * steady
    beacons = [
        beacon | {"alias": f"beacon {number}", "uuid": UUID, "major": number // 64, "minor": number, "interval": "250ms"}
        for number, beacon in enumerate(beacons)
    ]
    return {"seed": generator.randrange(2**31), "duration": f"{duration:.0f}s", "beacons": beacons}


class Gateway:
    """beacond, its configuration, and what the kernel and its files say of it."""

    def __init__(self, bench, **changes):
        self.bench = bench
        self.folder = bench.folder
        self.state = os.path.join(self.folder, "state")
        os.makedirs(self.state, exist_ok=True)
        self.events = os.path.join(self.folder, "events.jsonl")
        self.path = os.path.join(self.folder, "plugins.json")
        self.log_path = os.path.join(self.folder, "log")
        self.control = os.path.join(self.folder, "control.sock")
        self.scenario = os.path.join(self.folder, "scenario.json")
        self.process = None
        self.prefix, self.environment, self.source = [], {}, f"simulate:{self.scenario}"
        self.configuration = {
            "gateway": {"id": GATEWAY},
            "state_directory": self.state,
            "control_socket": self.control,
            "presence": {"enter_count": 1, "exit_time": "1s"},
            "beacons": [],
            "regions": [{"name": "all", "format": "ibeacon", "uuid": UUID}],
            "sinks": [
                {"kind": "json", "config": {"path": self.events}},
                {"kind": "mqtt", "config": {"host": "127.0.0.1", "port": bench.proxy.port}},
            ],
        } | changes
        self.offset, self.rest, self.transitions, self.sightings = 0, b"", 0, 0
        self.peak = 0

    # MARK: Its life

    def use(self, scenario):
        write_json(self.scenario, scenario)
        self.configuration["beacons"] = [Beacon(entry).configuration for entry in scenario["beacons"]]
        self.configure()

    def configure(self):
        write_json(self.path, self.configuration)

    def start(self, ready=True):
        self.began = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, self.bench.beacond, "run", "--config", self.path, "--source", self.source],
                env=os.environ | self.environment, stdout=subprocess.DEVNULL, stderr=log)
        if ready and not wait_until(lambda: os.path.exists(self.control) or not self.is_alive(), 30):
            raise Failure("beacond did not become ready in 30 s")
        if ready and not self.is_alive():
            raise Failure(f"beacond ended with status {self.process.returncode} at its start")

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, seconds=15):
        """Its exit status after SIGTERM."""
        self.ended = time.monotonic()
        return end(self.process, seconds) if self.process else None

    # MARK: What the kernel says

    def status(self, key):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))

    def memory(self):
        """Resident memory that is not of files, in KiB."""
        return self.status("RssAnon")

    def threads(self):
        return self.status("Threads")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def processor_time(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def connection(self, port=None):
        """The local port of its established connection to the broker's port; None without one."""
        port = port or self.bench.proxy.port
        with open(f"/proc/{self.process.pid}/net/tcp", encoding="utf-8") as file:
            next(file)
            for line in file:
                _, local, remote, state = line.split()[:4]
                if state == "01" and int(remote.split(":")[1], 16) == port:
                    return int(local.split(":")[1], 16)
        return None

    # MARK: What it says

    def ask(self, verb, seconds=10, **parameters):
        """The lines with which the control socket answers."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(seconds)
            client.connect(self.control)
            client.sendall(json.dumps({"verb": verb} | parameters).encode() + b"\n")
            data = b""
            while chunk := client.recv(1 << 16):
                data += chunk
                lines = data.split(b"\n")[:-1]
                if lines and not json.loads(lines[-1]).get("more"):
                    return [json.loads(line) for line in lines]
        raise Failure("the control socket closed without an answer")

    def reports(self):
        return next(line["reports"] for line in self.ask("state", beacons=0) if "reports" in line)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def truth(self):
        """How many transitions the engine made since its start, by the json sink's file."""
        if os.path.exists(self.events):
            with open(self.events, "rb") as file:
                file.seek(self.offset)
                data = self.rest + file.read()
                self.offset = file.tell()
            *lines, self.rest = data.split(b"\n")
            for line in lines:
                if json.loads(line)["event"] in TRANSITIONS:
                    self.transitions += 1
                else:
                    self.sightings += 1
        return self.transitions

    # MARK: Its outbox, while it does not run

    def outbox(self):
        """The stream, the last number that was committed, and the numbers that are kept."""
        with tempfile.TemporaryDirectory(dir=self.folder) as copy:
            for suffix in ("", "-wal"):
                path = os.path.join(self.state, "outbox.sqlite" + suffix)
                if os.path.exists(path):
                    shutil.copy(path, copy)
            database = sqlite3.connect(os.path.join(copy, "outbox.sqlite"))
            try:
                stream, last = database.execute("SELECT stream, last FROM meta").fetchone()
                return stream, last, {number for number, in database.execute("SELECT seq FROM outbox")}
            finally:
                database.close()


class Failure(Exception):
    """The run cannot go on, and why."""


class Unavailable(Exception):
    """This machine cannot do it, and why: skipped at home, a failure in CI."""


def require(*command):
    """That the command works here."""
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"{command[0]}: {error}") from error
    if found.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {found.stderr.strip()}")


# What gives a user that is not root a namespace in which it is.
AS_ROOT = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


class Bench:
    """All of it, in a folder of its own; used with `with`."""

    def __init__(self, options, broker=Broker, **changes):
        self.options = options
        self.beacond = options.beacond
        self.generator = random.Random(f"{options.seed} {options.fault}")
        self.temporary = tempfile.TemporaryDirectory(prefix=f"beacond-{options.fault}-")
        self.folder = self.temporary.name
        self.broker = broker(self.folder)
        self.proxy = Proxy(self.broker.port)
        self.recorder = Recorder(self.broker.port, ROOT)
        self.gateway = Gateway(self, **changes)
        self.sampler = None
        self.samples = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.sampler = None
        if self.gateway.is_alive():
            self.gateway.signal(signal.SIGCONT)
            self.gateway.stop()
        self.recorder.stop()
        self.proxy.stop()
        self.broker.stop()
        if kind is not None and os.path.exists(self.gateway.log_path):
            sys.stderr.write("".join(self.gateway.log().splitlines(True)[-30:]))
        self.temporary.cleanup()

    # MARK: The broker behind its network

    def start_broker(self):
        """The recorder listens before the gateway may come in."""
        self.broker.start()
        if not wait_until(lambda: self.recorder.is_ready, 30):
            raise Failure("the recorder does not get in")
        self.proxy.open_door()

    def kill_broker(self):
        self.broker.kill()
        self.proxy.close_door()
        self.proxy.cut()
        self.recorder.is_ready = False

    # MARK: The course of a fault

    def begin(self, duration, rate=10, warm_up=6):
        """Starts all, and waits until transitions arrive."""
        self.started_with = make_scenario(self.generator, duration, rate)
        self.gateway.use(self.started_with)
        self.start_broker()
        self.gateway.start()
        self.expect(lambda: self.recorder.highest >= 20, 60, "20 transitions arrive")
        time.sleep(warm_up)
        self.baseline = self.gateway.memory()
        self.watch_memory()

    def watch_memory(self):
        self.samples = []
        self.sampler = threading.Thread(target=self._sample, daemon=True)
        self.sampler.start()

    def _sample(self):
        while self.sampler is threading.current_thread():
            try:
                self.samples.append(self.gateway.memory())
            except (OSError, StopIteration, AttributeError):
                pass
            time.sleep(0.5)

    def growth(self):
        """KiB of memory above that at the beginning, at the worst moment."""
        return max(self.samples, default=self.baseline) - self.baseline

    def expect(self, condition, within, what):
        if not wait_until(condition, within):
            raise Failure(f"not within {within:.0f} s: {what}")

    def drained(self, within=120):
        """Seconds until everything that has happened by now was read; None when it takes longer."""
        start, count = time.monotonic(), self.gateway.truth()
        if wait_until(lambda: self.recorder.highest >= count, within):
            return time.monotonic() - start
        return None

    def finish(self, verdict):
        """Lets what happened last arrive, ends the gateway and writes the common figures into the verdict."""
        if not self.gateway.is_alive():
            raise Failure(f"beacond ended by itself with status {self.gateway.process.returncode}")
        if self.drained() is None:
            verdict.must(f"the last of {self.gateway.truth()} transitions never came", False)
        self.sampler = None
        verdict.status = self.gateway.stop()
        verdict.must(f"exit status {verdict.status} after SIGTERM", verdict.status == 0)
        stream, last, _ = self.gateway.outbox()
        wait_until(lambda: not self._missing(stream, last), 5)
        self.judge(verdict, {stream: last})

    def _missing(self, stream, last):
        return self.recorder.streams[stream].lost(last) if stream in self.recorder.streams else set(range(1, last + 1))

    def judge(self, verdict, lasts):
        """`lasts`: the last committed number of each stream."""
        missing = {stream: self._missing(stream, last) for stream, last in lasts.items()}
        verdict.transitions += sum(lasts.values())
        verdict.lost += sum(map(len, missing.values()))
        verdict.duplicates += self.recorder.duplicates
        verdict.inversions += self.recorder.inversions
        verdict.regressions += len(self.recorder.regressions)
        contradictions = sum(stream.contradictions for stream in self.recorder.streams.values())
        verdict.must(f"{contradictions} transitions came again with another content", contradictions == 0)
        verdict.repeated += len(self.recorder.repeated_turns)
        verdict.notes += [f"missing {sorted(numbers)[:5]}" for numbers in missing.values() if numbers]
        verdict.notes += self.recorder.regressions[:2] + self.recorder.repeated_turns[:2]


IS_QUICK = "--quick" in sys.argv


class Verdict:
    """A row of the table. `limits` says with what numbers the fault passes."""

    def __init__(self, limits, runs=1, duplicates=WINDOW, growth=None, recovery=None):
        self.limits, self.runs = limits, runs
        self.allowed_duplicates, self.allowed_growth, self.allowed_recovery = duplicates, growth, recovery
        self.transitions = self.lost = self.duplicates = self.inversions = self.regressions = 0
        self.growth = None
        self.recoveries = []
        self.notes, self.problems = [], []
        self.status = None
        self.counts_transitions = True
        self.repeated = 0  # enters of who was there, exits of who was not

    def must(self, what, is_so):
        if not is_so:
            self.problems.append(what)

    def must_measure(self, what, is_so):
        """What depends on how busy the machine is: in the quick form, a part of every run of the tests, a note."""
        if is_so:
            return
        (self.notes if IS_QUICK else self.problems).append(what)

    def recovered(self, seconds, what="recovery"):
        """None: never."""
        if seconds is None:
            self.problems.append(f"{what}: never")
        else:
            self.recoveries.append(seconds)

    def row(self):
        self.must(f"{self.lost} lost", self.lost == 0)
        self.must(f"{self.inversions} out of order", self.inversions == 0)
        self.must(f"{self.regressions} states older than one read before", self.regressions == 0)
        self.must(f"{self.repeated} enters of who was there or exits of who was not", self.repeated == 0)
        self.must(f"{self.duplicates} duplicates, {self.allowed_duplicates} allowed",
                  self.duplicates <= self.allowed_duplicates)
        if self.growth is not None and self.allowed_growth is not None:
            self.must(f"{self.growth:+} KiB, {self.allowed_growth} allowed", self.growth <= self.allowed_growth)
        slowest = max(self.recoveries, default=None)
        if slowest is not None and self.allowed_recovery is not None:
            self.must_measure(f"recovered in {slowest:.1f} s, {self.allowed_recovery:.0f} allowed",
                              slowest <= self.allowed_recovery)
        if self.counts_transitions:
            self.must("no transition was recorded", self.transitions > 0)
        counts = self.counts_transitions
        return {
            "runs": self.runs, "transitions": self.transitions if counts else None,
            "lost": self.lost if counts else None, "duplicates": self.duplicates if counts else None,
            "inversions": self.inversions if counts else None, "regressions": self.regressions if counts else None,
            "recovery": slowest, "growth": self.growth, "limits": self.limits, "problems": self.problems,
            "notes": self.notes,
        }


FAULTS = {}


def fault(name, title):
    """Registers a function that takes the options, injects the fault and returns a verdict."""

    def register(function):
        FAULTS[name] = (title, function)
        return function

    return register
