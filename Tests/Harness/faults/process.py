# SPDX-License-Identifier: Apache-2.0
"""The process and what belongs to it: signals, configuration, descriptors, state directory. F6, F9 to F12, F20 to F23."""

import hashlib
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time

from harness import AS_ROOT, GROUP, WINDOW, Bench, Failure, Verdict, fault, make_scenario, require, wait_until
from network import await_birth

MIB = 1024


@fault("F6", "SIGKILL at random moments")
def kills(options):
    count = 12 if options.quick else options.kills
    verdict = Verdict("always starts, 0 committed lost, numbers never go back, ≤ 20 + 64 duplicates a kill, "
                      "reading again ≤ 10 s after the last start", runs=count, duplicates=(WINDOW + GROUP) * count,
                      recovery=10)
    with Bench(options) as bench:
        gateway = bench.gateway
        gateway.configuration["sinks"] = gateway.configuration["sinks"][1:]
        bench.start_broker()
        committed = {}
        for number in range(count):
            # Another world each time: half of the beacons are there or come, so that some leave and some enter.
            gateway.use(make_scenario(bench.generator, 30, rate=30))
            gateway.start(ready=False)
            time.sleep(bench.generator.uniform(0.02, 1.6))
            if not gateway.is_alive():
                raise Failure(f"kill {number}: it ended by itself with status {gateway.process.returncode}")
            gateway.kill()
            try:
                stream, last, _ = gateway.outbox()
            except sqlite3.OperationalError:
                verdict.must(f"kill {number}: the outbox is gone", not committed)
                continue
            verdict.must(f"kill {number}: committed {last} after {committed.get(stream)}",
                         last >= committed.get(stream, 0))
            verdict.must(f"kill {number}: another stream", not committed or stream in committed)
            committed[stream] = last
        gateway.use(make_scenario(bench.generator, 120))
        back = time.monotonic()
        gateway.start()
        if not wait_until(lambda: bench.recorder.highest > last, 60):
            raise Failure("nothing is read after the last start")
        verdict.recovered(time.monotonic() - back)
        verdict.status = gateway.stop()
        verdict.must(f"exit status {verdict.status} after SIGTERM", verdict.status == 0)
        stream, last, _ = gateway.outbox()
        time.sleep(1)
        bench.judge(verdict, {stream: last})
    return verdict


def region(name):
    return {"name": name, "format": "ibeacon", "uuid": "00000000-0000-0000-0000-000000000001"}


@fault("F9", "SIGHUP with a changed configuration, under load")
def reloads(options):
    count = 50 if options.quick else 1000
    verdict = Verdict("each takes effect, 0 lost, ≤ 20 duplicates, descriptors and threads ± 0, ≤ 1 MiB", runs=count,
                      growth=MIB)
    with Bench(options) as bench:
        gateway = bench.gateway
        bench.begin(count + 120, rate=20)

        def change(number):
            gateway.configuration["regions"] = gateway.configuration["regions"][:1] + [region("odd")] * (number % 2)
            gateway.configure()
            gateway.signal(signal.SIGHUP)
            bench.expect(lambda: gateway.ask("state", region="odd")[-1]["ok"] == (number % 2 == 1), 30,
                         f"reload {number} takes effect")

        for number in range(10):
            change(number)
        bench.baseline = gateway.memory()
        bench.samples = []
        time.sleep(1)
        before = gateway.descriptors(), gateway.threads()
        for number in range(count):
            change(number)
        # The connection that asked last is closed a moment later.
        wait_until(lambda: (gateway.descriptors(), gateway.threads()) == before, 10)
        after = gateway.descriptors(), gateway.threads()
        verdict.must(f"descriptors and threads were {before} and are {after}", before == after)
        verdict.growth = bench.growth()
        bench.finish(verdict)
    return verdict


@fault("F10", "SIGHUP with an invalid configuration")
def invalid_reload(options):
    count = 5 if options.quick else 50
    verdict = Verdict("goes on as before, says why, 0 lost", runs=count, growth=MIB)
    with Bench(options) as bench:
        gateway = bench.gateway
        bench.begin(count + 60, warm_up=2)
        gateway.configuration["presence"]["exit_time"] = "nonsense"
        gateway.configure()
        for _ in range(count):
            gateway.signal(signal.SIGHUP)
            time.sleep(0.1)
            answer = gateway.ask("reload")[-1]
            verdict.must(f"reload answers {answer}", not answer["ok"] and "exit_time" in answer["error"])
        verdict.must("the log does not say what is wrong", "$.presence.exit_time" in gateway.log())
        verdict.growth = bench.growth()
        bench.finish(verdict)
    return verdict


def digest(folder):
    """What is in a folder, octet by octet."""
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = hashlib.sha256(file.read()).hexdigest()
    return found


def make_backlog(bench, wanted, rate=10):
    """Runs without a broker until so many transitions wait, and kills: the stream and how many they are."""
    gateway = bench.gateway
    gateway.use(make_scenario(bench.generator, wanted / rate * 3 + 60, rate))
    gateway.start()
    bench.expect(lambda: gateway.truth() >= wanted, wanted / rate * 3 + 60, f"{wanted} transitions")
    time.sleep(1.5)
    gateway.kill()
    stream, last, kept = gateway.outbox()
    if len(kept) < wanted * 0.9:
        raise Failure(f"{len(kept)} transitions are kept, {wanted} wanted")
    return stream, last


def deliver(bench, verdict, last):
    """Starts the broker and the gateway: the backlog comes, and all that follows."""
    back = time.monotonic()
    bench.start_broker()
    if not bench.gateway.is_alive():
        bench.gateway.start()
    born = await_birth(bench, back, 90)
    if born is None or not wait_until(lambda: bench.recorder.highest >= last, 60):
        raise Failure(f"{bench.recorder.highest} of {last} transitions came")
    verdict.recovered(time.monotonic() - born)
    verdict.status = bench.gateway.stop()
    stream, last, _ = bench.gateway.outbox()
    time.sleep(1)
    bench.judge(verdict, {stream: last})


@fault("F11", "started with an invalid configuration and a backlog")
def invalid_start(options):
    verdict = Verdict("ends with 78, backlog octet by octet the same, then delivered: 0 lost, 0 duplicates", duplicates=0)
    with Bench(options) as bench:
        gateway = bench.gateway
        _, last = make_backlog(bench, 30 if options.quick else 300)
        before = digest(gateway.state)
        good = gateway.configuration["presence"]["exit_time"]
        gateway.configuration["presence"]["exit_time"] = "nonsense"
        gateway.configure()
        gateway.start(ready=False)
        status = gateway.process.wait(30)
        verdict.must(f"exit status {status}", status == 78)
        verdict.must("the state directory changed", digest(gateway.state) == before)
        gateway.configuration["presence"]["exit_time"] = good
        gateway.configure()
        os.remove(gateway.control) if os.path.exists(gateway.control) else None
        deliver(bench, verdict, last)
    return verdict


@fault("F12", "no descriptor left (RLIMIT_NOFILE)")
def descriptors(options):
    span = 8 if options.quick else 60
    verdict = Verdict("no crash, CPU ≤ 5 % (of a core, besides what the radio costs), 0 lost, connected ≤ 5 s after it or"
                      " half its length, ≤ 20 duplicates", growth=MIB, recovery=max(5, span / 2 + 1))
    with Bench(options) as bench:
        gateway = bench.gateway
        bench.begin(span + 120, warm_up=2)
        start, used = time.monotonic(), gateway.processor_time()
        time.sleep(4 if options.quick else 20)
        usual = (gateway.processor_time() - used) / (time.monotonic() - start)

        def limit(number):
            subprocess.run(["prlimit", f"--pid={gateway.process.pid}", f"--nofile={number}:1024"], check=True)

        limit(3)
        with socket.socket(socket.AF_UNIX) as visitor:
            # Somebody knocks and cannot be let in, which must not keep the loop busy.
            visitor.connect(gateway.control)
            bench.proxy.cut()
            start, used = time.monotonic(), gateway.processor_time()
            time.sleep(span)
            cost = (gateway.processor_time() - used) / (time.monotonic() - start) - usual
            verdict.must("it connected without a descriptor", gateway.connection() is None)
        limit(1024)
        back = time.monotonic()
        born = await_birth(bench, back, 90)
        verdict.recovered(born and born - back)
        verdict.must_measure(f"{cost:.1%} of a core more than before", cost <= 0.05)
        verdict.notes.append(f"CPU {usual:.1%} of a core before, {cost:+.1%} during it")
        bench.expect(lambda: gateway.ask("health")[-1]["ok"], 10, "the control socket answers")
        verdict.growth = bench.growth()
        bench.finish(verdict)
    return verdict


@fault("F20", "SIGTERM with a backlog and a dead broker")
def stop_with_backlog(options):
    wanted = 150 if options.quick else 10_000
    verdict = Verdict("ends in ≤ 10 s with 0, backlog intact and delivered by the next start: 0 lost, ≤ 20 duplicates",
                      runs=2, duplicates=2 * WINDOW)
    with Bench(options) as bench:
        gateway = bench.gateway
        rate = 30 if options.quick else 200
        gateway.use(make_scenario(bench.generator, wanted / rate * 4 + 200, rate))
        bench.start_broker()
        gateway.start()
        bench.expect(lambda: bench.recorder.highest >= 20, 60, "20 transitions arrive")
        for name, begin in (("frozen", bench.broker.freeze), ("refusing", bench.proxy.close_door)):
            before = gateway.truth()
            begin()
            bench.proxy.cut() if name == "refusing" else None
            bench.expect(lambda: gateway.truth() >= before + wanted, wanted / rate * 3 + 60, f"{wanted} transitions wait")
            start = time.monotonic()
            gateway.signal(signal.SIGTERM)
            try:
                status = gateway.process.wait(30)
            except subprocess.TimeoutExpired as error:
                raise Failure(f"{name} broker: it did not end in 30 s after SIGTERM") from error
            took = time.monotonic() - start
            verdict.must(f"{name} broker: ended after {took:.1f} s with {status}", took <= 10 and status == 0)
            _, last, kept = gateway.outbox()
            verdict.must(f"{name} broker: {len(kept)} transitions kept, {wanted} wanted", len(kept) >= wanted * 0.95)
            verdict.notes.append(f"{name} broker: ended after {took:.1f} s, {len(kept):,} transitions kept")
            bench.broker.thaw()
            if name == "frozen":
                gateway.transitions, gateway.offset = 0, os.path.getsize(gateway.events)
                gateway.start()
                bench.expect(lambda: bench.recorder.highest >= last, 120, "the backlog comes")
        bench.broker.stop()
        deliver(bench, verdict, last)
    return verdict


class ServiceManager:
    """What systemd does for a service with WatchdogSec= and Restart=on-failure: the notifications, SIGABRT, the restart."""

    def __init__(self, gateway, watchdog):
        self.gateway, self.watchdog = gateway, watchdog
        self.path = os.path.join(gateway.folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.last_sign = time.monotonic()
        self.kills = 0
        self.killed_at = None
        self.stopping = False
        gateway.environment |= {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(int(watchdog * 1e6))}
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self.gateway.start()
        self.last_sign = time.monotonic()
        self.thread.start()

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.socket.close()

    def _run(self):
        self.socket.settimeout(0.2)
        while not self.stopping:
            try:
                if b"WATCHDOG=1" in self.socket.recv(65536) or self.last_sign == 0:
                    self.last_sign = time.monotonic()
            except TimeoutError:
                pass
            if time.monotonic() - self.last_sign < self.watchdog:
                continue
            self.kills += 1
            self.killed_at = time.monotonic()
            # A process that is stopped does not notice the first.
            self.gateway.signal(signal.SIGABRT)
            time.sleep(0.5)
            self.gateway.kill()
            self.gateway.start(ready=False)
            self.last_sign = time.monotonic()


@fault("F21", "SIGSTOP for longer than the watchdog, and for less")
def stopped(options):
    watchdog, pause = (6, 3) if options.quick else (60, 30)
    verdict = Verdict("the watchdog kills it, reading again ≤ 10 s after the restart, 0 committed lost, ≤ 20 + 64"
                      " duplicates; a shorter stop costs nothing", runs=2, duplicates=2 * WINDOW + GROUP, recovery=10)
    with Bench(options) as bench:
        gateway = bench.gateway
        gateway.use(make_scenario(bench.generator, 400))
        bench.start_broker()
        manager = ServiceManager(gateway, watchdog)
        manager.start()
        try:
            bench.expect(lambda: bench.recorder.highest >= 20, 60, "20 transitions arrive")
            gateway.signal(signal.SIGSTOP)
            time.sleep(pause)
            gateway.signal(signal.SIGCONT)
            before = bench.recorder.highest
            bench.expect(lambda: bench.recorder.highest > before + 10, 60, "it goes on after a short stop")
            verdict.must("the watchdog came too early", manager.kills == 0)
            # What had to wait has come, and its acknowledgements are committed.
            time.sleep(3)
            gateway.signal(signal.SIGSTOP)
            bench.expect(lambda: manager.kills == 1, watchdog * 2 + 10, "the watchdog kills it")
            before = bench.recorder.highest
            if await_birth(bench, manager.killed_at, 60) is None:
                raise Failure("no connection after the restart")
            bench.expect(lambda: bench.recorder.highest > before, 60, "transitions come again")
            verdict.recovered(time.monotonic() - manager.killed_at)
            time.sleep(2)
        finally:
            manager.stop()
        verdict.must(f"{manager.kills} kills by the watchdog", manager.kills == 1)
        verdict.status = gateway.stop()
        stream, last, _ = gateway.outbox()
        time.sleep(1)
        bench.judge(verdict, {stream: last})
    return verdict


@fault("F22", "a second instance")
def second_instance(options):
    verdict = Verdict("the second ends with a status and a sentence, the first goes on: 0 lost, 0 duplicates", runs=2,
                      duplicates=0)
    with Bench(options) as bench:
        gateway = bench.gateway
        bench.begin(120, warm_up=1)
        for name, changes, wanted in (
            ("the same configuration", {}, {75}),
            ("the same state directory", {"control_socket": os.path.join(bench.folder, "second.sock")}, {75}),
        ):
            path = os.path.join(bench.folder, "second.json")
            before, gateway.path, gateway.configuration = (
                (gateway.path, gateway.configuration), path, gateway.configuration | changes)
            gateway.configure()
            gateway.path, gateway.configuration = before
            found = subprocess.run(
                [bench.beacond, "run", "--config", path, "--source", gateway.source], capture_output=True, text=True,
                timeout=60, check=False)
            verdict.must(f"{name}: status {found.returncode}", found.returncode in wanted)
            said = found.stderr.strip().splitlines()
            verdict.must(f"{name}: it says {said}", said and ("process" in said[-1] or "another" in said[-1]))
            verdict.notes.append(f"{name}: {found.returncode}, {said[-1] if said else 'nothing'}".replace(bench.folder, "…"))
        bench.finish(verdict)
    return verdict


@fault("F23", "state directory on a read-only file system")
def read_only(options):
    verdict = Verdict("goes on in memory and says why, backlog octet by octet the same, delivered by the next start:"
                      " 0 lost, 0 duplicates", duplicates=0)
    require("unshare", "--mount", *AS_ROOT, "true")
    with Bench(options) as bench:
        gateway = bench.gateway
        _, last = make_backlog(bench, 30 if options.quick else 300)
        before = digest(gateway.state)
        if os.path.exists(gateway.control):
            os.remove(gateway.control)
        gateway.prefix = ["unshare", "--mount", *AS_ROOT, "sh", "-c",
                          'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"', gateway.state]
        gateway.start(ready=False)
        said = []

        def says_so():
            said[:] = [line for line in gateway.log().splitlines() if "in memory" in line]
            return said or gateway.process.poll() is not None

        wait_until(says_so, 30)
        verdict.must("it does not say that transitions are in memory", bool(said))
        verdict.must(f"it ended with {gateway.process.poll()}", gateway.process.poll() is None)
        gateway.process.terminate()
        status = gateway.process.wait(30)
        gateway.prefix = []
        verdict.must(f"exit status {status}", status == 0)
        verdict.notes.append((said or ["nothing"])[0].replace(bench.folder, "…"))
        verdict.must("the state directory changed", digest(gateway.state) == before)
        deliver(bench, verdict, last)
    return verdict
