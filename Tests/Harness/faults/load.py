# SPDX-License-Identifier: Apache-2.0
"""A radio that hangs, more than usual on the air, and less memory: F14, F18 and F24."""

import os
import socket
import struct
import threading
import time
import uuid

from harness import UUID, Bench, Failure, Unavailable, Verdict, fault
from make_capture import ADV_NONCONN_IND, FLAGS, LEGACY, manufacturer, packet

TURN = 0.01  # seconds between two groups of packets


class Radio:
    """A controller at a unix socket: answers every command with success and sends what `hear` gives it.

    While it hangs it neither answers nor sends.
    """

    def __init__(self, path, hear):
        self.hear = hear
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        self.is_scanning = self.stopping = self.hangs = False
        self.sent = 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping = True
        self.listener.close()

    def _run(self):
        while not self.stopping:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.is_scanning = False
            with peer:
                answers = threading.Thread(target=self._answer, args=(peer,), daemon=True)
                answers.start()
                try:
                    self._send(peer, answers)
                except OSError:
                    pass

    def _send(self, peer, answers):
        start, turn = time.monotonic(), 0
        while answers.is_alive() and not self.stopping:
            # What is due by now, whether or not this process was given its time.
            turn += 1
            time.sleep(max(0, start + turn * TURN - time.monotonic()))
            packets = self.hear(turn) if self.is_scanning and not self.hangs else []
            if packets:
                peer.sendall(b"".join(packets))
                self.sent += len(packets)

    def _answer(self, peer):
        held = b""
        try:
            while chunk := peer.recv(4096):
                held = b"" if self.hangs else held + chunk
                while len(held) >= 4 and len(held) >= 4 + held[3]:
                    opcode, length = struct.unpack_from("<H", held, 1)[0], held[3]
                    event = bytearray([0x04, 0x0E, 4 + 64, 1]) + held[1:3] + bytes(1 + 64)
                    if opcode == 0x1009:  # Read BD_ADDR
                        event[7:13] = b"\x01\x02\x03\x04\x05\xc0"
                    peer.sendall(event)
                    if opcode in (0x200C, 0x2042):  # scan enable
                        self.is_scanning = held[4] != 0
                    held = held[4 + length:]
        except OSError:
            pass


def advertisement(identity, major, minor, address, rssi=-60):
    payload = FLAGS + manufacturer(0x004C, b"\x02\x15" + identity + struct.pack(">HHb", major, minor, -59))
    front, back = packet(ADV_NONCONN_IND, payload, address, True, LEGACY)
    return front + struct.pack("b", rssi) + back


class Air:
    """Beacons that are known, some of which come and go, and strangers."""

    def __init__(self, generator, known=40, visitors=20):
        self.generator = generator
        self.known = [advertisement(uuid.UUID(UUID).bytes, 0, number, struct.pack("<HI", number, 0xC0000000))
                      for number in range(known)]
        self.visitors = visitors
        self.strangers = 0  # a second
        self.steady = 0  # advertisements of the known ones a second, besides those below
        self.first_of_visit = {}  # when a visit began, by minor and in order
        self.due = 0.0

    def hear(self, turn):
        packets = []
        # Each known one four times a second; a visitor for 3 of 7 s, each at its own time.
        for number, spelled in enumerate(self.known):
            if (turn + number) % 25 != 0:
                continue
            if number < self.visitors:
                place = (turn * TURN + number * 7 / self.visitors) % 7
                if place >= 3:
                    self.first_of_visit.setdefault(number, []).append(None)
                    continue
                times = self.first_of_visit.setdefault(number, [])
                if not times or times[-1] is None:
                    times.append(time.time())
            packets.append(spelled)
        self.due += (self.strangers + self.steady) * TURN
        count, self.due = int(self.due), self.due % 1
        for _ in range(count):
            if self.generator.random() * (self.strangers + self.steady) < self.strangers:
                packets.append(advertisement(
                    self.generator.randbytes(16), self.generator.randrange(65536), self.generator.randrange(65536),
                    self.generator.randbytes(6)))
            else:
                packets.append(self.known[self.visitors + self.generator.randrange(len(self.known) - self.visitors)])
        return packets

    def starts(self):
        return {number: [moment for moment in times if moment] for number, times in self.first_of_visit.items()}


def waits(bench, air, begin, end):
    """Seconds from the first advertisement of a visit to its enter at the subscriber, sorted, for visits in a span."""
    found = []
    came = {}
    for event, arrival in zip(bench.recorder.kept, bench.recorder.arrivals):
        if event["event"] == "enter":
            came.setdefault(event["minor"], []).append(arrival)
    for number, starts in air.starts().items():
        arrivals = iter(came.get(number, []))
        for start in starts:
            arrival = next((moment for moment in arrivals if moment >= start), None)
            if arrival is not None and begin <= start <= end:
                found.append(arrival - start)
    return sorted(found)


def percentile(values, part):
    if not values:
        raise Failure("no visit was seen")
    return values[min(len(values) - 1, int(len(values) * part))]


def start_radio(bench, air):
    """The gateway with a radio that hears the air."""
    gateway = bench.gateway
    path = os.path.join(bench.folder, "radio.sock")
    bench.radio = Radio(path, air.hear)
    gateway.source = f"unix:{path}"
    gateway.configuration["beacons"] = [
        {"alias": f"beacon {number}", "uuid": UUID, "major": 0, "minor": number} for number in range(len(air.known))]
    # The other sink writes down every stranger, which is what it is for.
    gateway.configuration["sinks"] = gateway.configuration["sinks"][1:]
    gateway.configure()
    bench.recorder.keeps = True
    bench.start_broker()
    gateway.start()
    return bench.radio


def begin(bench, air):
    start_radio(bench, air)
    bench.expect(lambda: bench.recorder.highest >= 40, 60, "40 transitions arrive")


def conclude(bench, verdict):
    bench.sampler = None
    bench.radio.hear = lambda turn: []
    time.sleep(3)
    verdict.status = bench.gateway.stop()
    verdict.must(f"exit status {verdict.status} after SIGTERM", verdict.status == 0)
    stream, last, _ = bench.gateway.outbox()
    time.sleep(1)
    bench.judge(verdict, {stream: last})


@fault("F14", "the only radio hangs, in a quiet room")
def hang(options):
    exit_time, span = 2, 8 if options.quick else options.length(90)
    verdict = Verdict("nobody leaves or comes, the adapter is blind ≤ 2 s after an exit time, all are seen to leave when it is"
                      " back, 0 lost, 0 duplicates", duplicates=0)
    with Bench(options) as bench:
        air = Air(bench.generator, known=3, visitors=0)
        bench.gateway.configuration["presence"]["exit_time"] = f"{exit_time}s"
        radio = start_radio(bench, air)
        bench.expect(lambda: bench.recorder.kinds.get("enter") == 3, 30, "three beacons enter")
        time.sleep(2)
        radio.hangs, hung = True, time.time()
        time.sleep(span)
        turns = {kind: bench.recorder.kinds.get(kind, 0) for kind in ("enter", "exit")}
        verdict.must(f"{turns} after the hang", turns == {"enter": 3, "exit": 0})
        blind = [arrival for event, arrival in zip(bench.recorder.kept, bench.recorder.arrivals)
                 if event["event"] == "adapter" and event["state"] == "blind"]
        verdict.must("the hang was not found", bool(blind))
        radio.hangs = False
        bench.expect(lambda: [event["state"] for event in bench.recorder.kept if event["event"] == "adapter"][-1] == "scanning",
                     60, "the radio scans again")
        time.sleep(exit_time + 2)
        turns = {kind: bench.recorder.kinds.get(kind, 0) for kind in ("enter", "exit")}
        verdict.must(f"{turns} when the radio was back", turns == {"enter": 3, "exit": 0})
        air.known, left = [], time.time()
        bench.expect(lambda: bench.recorder.kinds.get("exit") == 3, 30, "three beacons leave")
        took = bench.recorder.arrivals[-1] - left
        if blind:
            verdict.must_measure(f"blind {blind[0] - hung:.1f} s after the hang", blind[0] - hung <= exit_time + 2 + 1)
            verdict.notes.append(f"hung for {span:.0f} s, found after {blind[0] - hung:.1f} s; exits {took:.1f} s after they left")
        verdict.status = bench.gateway.stop()
        stream, last, _ = bench.gateway.outbox()
        time.sleep(1)
        bench.judge(verdict, {stream: last})
        radio.stop()
    return verdict


@fault("F18", "50,000 invented identities a minute")
def flood(options):
    usual, span = (20, 20) if options.quick else (120, options.length(1800))
    verdict = Verdict("0 lost, ≤ 10,000 beacons tracked, memory ≤ 64 MiB, no topic of a stranger, enters of known beacons"
                      " 99 % as before + 10 % or 100 ms", growth=64 * 1024)
    with Bench(options) as bench:
        air = Air(bench.generator)
        begin(bench, air)
        bench.baseline = bench.gateway.memory()
        bench.watch_memory()
        time.sleep(3)
        first = time.time()
        time.sleep(usual)
        second = time.time()
        air.strangers = 50_000 / 60
        time.sleep(span)
        third = time.time()
        tracked = next(line["tracked"] for line in bench.gateway.ask("state", beacons=0) if "tracked" in line)
        memory = bench.gateway.status("VmHWM")
        verdict.growth = bench.growth()
        conclude(bench, verdict)
        before = percentile(waits(bench, air, first, second - 2), 0.99)
        during = percentile(waits(bench, air, second, third - 2), 0.99)
        strange = [topic for topic in bench.recorder.topics if "/ibeacon/" in topic and UUID not in topic]
        verdict.must(f"{tracked} beacons are tracked", tracked <= 10_000)
        verdict.must(f"{memory} KiB at the most", memory <= 64 * 1024)
        verdict.must(f"{len(strange)} topics of strangers", not strange)
        verdict.must(f"enters after {during * 1000:.0f} ms, {before * 1000:.0f} before",
                     during <= max(before * 1.1, before + 0.1))
        verdict.notes.append(
            f"{span:.0f} s, {bench.radio.sent:,} packets, {tracked:,} tracked, {memory:,} KiB resident at the most, enters"
            f" 99 % after {before * 1000:.0f} ms before and {during * 1000:.0f} ms during")
        bench.radio.stop()
    return verdict


class MemoryLimit:
    """A control group with a limit, of whichever version this machine has."""

    def __init__(self, octets):
        name = f"beacond-faults-{os.getpid()}"
        old, new = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
        try:
            if os.path.isdir(old):
                self.folder, limit = os.path.join(old, name), "memory.limit_in_bytes"
            else:
                with open(os.path.join(new, "cgroup.subtree_control"), "a", encoding="utf-8") as file:
                    file.write("+memory")
                self.folder, limit = os.path.join(new, name), "memory.max"
            os.mkdir(self.folder)
            with open(os.path.join(self.folder, limit), "w", encoding="utf-8") as file:
                file.write(str(octets))
        except OSError as error:
            raise Unavailable(f"no control group for a memory limit: {error}") from error

    @property
    def prefix(self):
        return ["sh", "-c", f'echo $$ >{self.folder}/cgroup.procs && exec "$@"', "sh"]

    def peak(self):
        """KiB charged at the most, page cache and all; None when the kernel does not tell."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    return int(file.read()) // 1024
        return None

    def end(self):
        os.rmdir(self.folder)


@fault("F24", "48 MiB of memory and 2,000 advertisements a second")
def little_memory(options):
    span = 15 if options.quick else options.length(3600)
    verdict = Verdict("survives, 0 lost, ≤ 2 MiB from the first tenth on", growth=2048)
    limit = MemoryLimit(48 << 20)
    try:
        with Bench(options) as bench:
            air = Air(bench.generator, known=500)
            # 500 beacons four times a second are 2,000, less the visitors that are away.
            bench.gateway.prefix = limit.prefix
            begin(bench, air)
            time.sleep(span / 10)
            bench.baseline = bench.gateway.memory()
            bench.watch_memory()
            before, sent, start = bench.gateway.reports(), bench.radio.sent, time.monotonic()
            time.sleep(span)
            if not bench.gateway.is_alive():
                raise Failure(f"it ended with {bench.gateway.process.returncode}")
            reports = bench.gateway.reports() - before
            sent = bench.radio.sent - sent
            rate = reports / (time.monotonic() - start)
            verdict.growth = bench.growth()
            verdict.must(f"{reports} reports of {sent}", abs(reports - sent) <= max(100, sent * 0.001))
            conclude(bench, verdict)
            verdict.notes.append(f"{span:.0f} s at {rate:,.0f} advertisements a second, the group held {limit.peak():,} KiB"
                                 " at the most, page cache and all")
            bench.radio.stop()
    finally:
        limit.end()
    return verdict
