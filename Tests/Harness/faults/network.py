# SPDX-License-Identifier: Apache-2.0
"""The broker and the way to it: F1 to F4 and F19."""

import datetime
import os
import shutil
import socket
import subprocess
import time

from harness import NATS, WINDOW, Bench, Broker, Failure, Verdict, fault, wait_until

HOST = "10.231.0.2"  # of the broker in F3's private network
MIB = 1024


def await_birth(bench, since, within=120):
    """When the gateway was connected again after that moment; None if it was not."""
    if wait_until(lambda: any(birth > since for birth in list(bench.recorder.births)), within):
        return min(birth for birth in bench.recorder.births if birth > since)
    return None


def stay_away(options, broker, span, verdict, rate=10):
    """A broker that is not there for a while; how long what it missed takes, from the birth on, is the recovery."""
    with Bench(options, broker) as bench:
        bench.begin(span + 200, rate)
        bench.kill_broker()
        before = bench.gateway.truth()
        time.sleep(span)
        missed = bench.gateway.truth() - before
        back = time.monotonic()
        bench.start_broker()
        born = await_birth(bench, back, 90)
        if born is None:
            raise Failure("no connection within 90 s of the broker's return")
        took = bench.drained()
        verdict.recovered(took)
        verdict.notes.append(
            f"{broker.__name__}: {missed:,} transitions in {span} s without a broker, connected {born - back:.1f} s after"
            f" its return, all read {took or 0:.1f} s later")
        verdict.must_measure(f"{missed} transitions in {span} s, {0.8 * rate:.0f} a second wanted", missed >= 0.8 * rate * span)
        verdict.growth = max(verdict.growth or 0, bench.growth())
        verdict.runs += 1
        bench.finish(verdict)


@fault("F1", "broker killed, away for a while")
def broker_away(options):
    verdict = Verdict("0 lost, ≤ 20 duplicates each, drained ≤ 10 s after CONNACK, ≤ 4 MiB", runs=0,
                      growth=4 * MIB, recovery=10)
    stay_away(options, Broker, 8 if options.quick else options.length(600), verdict)
    if not options.quick:
        stay_away(options, NATS, options.length(120), verdict)
    verdict.allowed_duplicates = WINDOW * verdict.runs
    return verdict


@fault("D", "broker away for as many transitions as a day has at 0.5 a second")
def day(options):
    rate = 200
    verdict = Verdict("0 lost, ≤ 20 duplicates, ≤ 4 MiB", runs=0, growth=4 * MIB)
    stay_away(options, Broker, options.length(86_400 / 2 / rate * 1.1), verdict, rate)
    return verdict


def restart_again_and_again(options, broker, count, verdict):
    verdict.runs += count
    verdict.allowed_duplicates += WINDOW * count
    with Bench(options, broker) as bench:
        bench.begin(count * 12 + 100)
        waits = []
        for _ in range(count):
            bench.kill_broker()
            time.sleep(bench.generator.uniform(0.2, 1))
            back = time.monotonic()
            bench.start_broker()
            born = await_birth(bench, back, 60)
            if born is None:
                raise Failure("no connection within 60 s of the broker's return")
            waits.append(born - back)
            time.sleep(max(0.5, back + (1.5 if options.quick else 5) - time.monotonic()))
        waits.sort()
        verdict.recoveries.append(waits[int(len(waits) * 0.95)] if len(waits) > 20 else waits[len(waits) // 2])
        verdict.growth = max(verdict.growth or 0, bench.growth())
        verdict.notes.append(
            f"{broker.__name__}: {count} restarts, connected after {waits[len(waits) // 2]:.1f} s in the median,"
            f" {waits[-1]:.1f} s at most")
        bench.finish(verdict)


@fault("F2", "broker restarted every 5 s")
def broker_restarts(options):
    verdict = Verdict("0 lost, ≤ 20 duplicates a restart, 95 % connected ≤ 3 s (quick: half of them), ≤ 4 MiB", runs=0,
                      duplicates=0, growth=4 * MIB, recovery=3)
    restart_again_and_again(options, Broker, 4 if options.quick else options.length(60), verdict)
    restart_again_and_again(options, NATS, 2 if options.quick else options.length(20), verdict)
    return verdict


class PrivateNetwork:
    """Two network namespaces with a cable between them: the broker's, in which this process is, and the gateway's.

    A cable that is pulled at the broker's side drops every packet, and neither side is told.
    """

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        time.sleep(0.3)
        inside = self.inside
        for command in (
            ["ip", "link", "set", "lo", "up"],
            ["ip", "link", "add", "fault0", "type", "veth", "peer", "name", "fault1"],
            ["ip", "link", "set", "fault1", "netns", str(self.holder.pid)],
            ["ip", "addr", "add", f"{HOST}/30", "dev", "fault0"],
            ["ip", "link", "set", "fault0", "up"],
            [*inside, "ip", "link", "set", "lo", "up"],
            [*inside, "ip", "addr", "add", "10.231.0.1/30", "dev", "fault1"],
            [*inside, "ip", "link", "set", "fault1", "up"],
        ):
            subprocess.run(command, check=True)

    @property
    def inside(self):
        """What a command begins with to run on the gateway's side."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]

    def pull(self):
        subprocess.run(["ip", "link", "set", "fault0", "down"], check=True)

    def plug(self):
        subprocess.run(["ip", "link", "set", "fault0", "up"], check=True)

    def end(self):
        self.holder.kill()
        self.holder.wait()


class OpenBroker(Broker):
    """Listens on the private network, too."""

    def __init__(self, folder):
        super().__init__(folder)
        with open(self.configuration, encoding="utf-8") as file:
            text = file.read().replace("127.0.0.1", "0.0.0.0")
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(text + "max_inflight_messages 0\n")


def hold_up(options, name, begin, stop, span, verdict, broker=Broker, network=None):
    """One kind of black hole: how soon the gateway gives the connection up, and what it does meanwhile."""
    with Bench(options, broker) as bench:
        port = None
        if network:
            bench.gateway.prefix = network.inside
            port = bench.broker.port
            bench.gateway.configuration["sinks"][1]["config"] |= {"host": HOST, "port": port}
        bench.begin(span + 300)
        time.sleep(1)
        before, start = bench.gateway.reports(), time.monotonic()
        time.sleep(4 if options.quick else 20)
        usual = (bench.gateway.reports() - before) / (time.monotonic() - start)
        connection = bench.gateway.connection(port)
        if connection is None:
            raise Failure("there is no connection")
        before, start = bench.gateway.reports(), time.monotonic()
        begin(bench)
        noticed = None
        try:
            if wait_until(lambda: bench.gateway.connection(port) != connection, max(span, 60)):
                noticed = time.monotonic() - start
            time.sleep(max(0, start + span - time.monotonic()))
            during = (bench.gateway.reports() - before) / (time.monotonic() - start)
        finally:
            # A connection that is forgotten is not the network's end: the next one works at once.
            back = start if stop is None else time.monotonic()
            if stop is not None:
                stop(bench)
        born = await_birth(bench, back, 90)
        if born is None:
            raise Failure(f"{name}: no connection within 90 s of its end")
        took = bench.drained()
        verdict.must(f"{name}: drained in {took} s, 10 allowed", took is not None and took <= 10)
        if stop is not None:
            verdict.recoveries.append(born - back)
        verdict.must(f"{name}: noticed after {noticed} s, 45 allowed", noticed is not None and noticed <= 45)
        slack = 0.2 if options.quick else 0.02
        verdict.must_measure(f"{name}: {during:.1f} reports a second, {usual:.1f} before", during >= usual * (1 - slack))
        growth = bench.growth()
        verdict.growth = max(verdict.growth or 0, growth)
        verdict.notes.append(
            f"{name}, {span} s: noticed after {noticed or 0:.1f} s, connected {born - back:.1f} s after its {'beginning' if stop is None else 'end'},"
            f" reports a second {usual:.1f} before and {during:.1f} during, {growth:+} KiB")
        bench.finish(verdict)


def fill(bench):
    bench.proxy.hole = True


def clear(bench):
    bench.proxy.hole = False


@fault("F3", "black holes: frozen broker, silent network, half-open connection, lost packets, RST")
def black_holes(options):
    # Behind a long outage a wait is at most half as long as the outage was.
    verdict = Verdict("noticed ≤ 45 s, 0 lost, ≤ 20 duplicates each, ≤ 2 MiB, scanning rate −2 % (quick: −20 %)", runs=0,
                      duplicates=0, growth=2 * MIB)
    kinds = [
        ("frozen broker (SIGSTOP)", lambda bench: bench.broker.freeze(), lambda bench: bench.broker.thaw()),
        ("silent network", fill, clear),
        ("half-open connection", lambda bench: bench.proxy.half_open(), None),
    ]
    if options.quick:
        kinds = kinds[2:]
    for name, begin, stop in kinds:
        hold_up(options, name, begin, stop, 18 if options.quick else options.length(300), verdict)
        verdict.runs += 1
    if not options.quick:
        network = PrivateNetwork()
        try:
            hold_up(options, "lost packets", lambda bench: network.pull(), lambda bench: network.plug(), options.length(300),
                    verdict,
                    OpenBroker, network)
            verdict.runs += 1
        finally:
            network.end()
    count = 3 if options.quick else 30
    with Bench(options) as bench:
        bench.begin(count * 12 + 60, warm_up=2)
        for number in range(count):
            cut = time.monotonic()
            bench.proxy.cut(reset=number % 3 != 2)
            if await_birth(bench, cut, 60) is None:
                raise Failure("no connection within 60 s of a RST")
            time.sleep(bench.generator.uniform(0.2, 2))
        verdict.runs += count
        bench.finish(verdict)
    verdict.notes.append(f"{count} connections ended by RST or FIN")
    verdict.allowed_duplicates = WINDOW * verdict.runs
    return verdict


@fault("F4", "slow broker, a message a second")
def slow_broker(options):
    span = 10 if options.quick else options.length(600)
    verdict = Verdict("0 lost, sightings replaced and not queued, ≤ 20 duplicates a connection, drained after it,"
                      " loop answers: 99 % in 50 ms, or as late as a process here wakes up, ≤ 4 MiB", growth=4 * MIB)

    def answers(count, pause):
        """99 % of the control socket's answers come within this, and a sleep of this process is late by that."""
        waits, delays = [], []
        for _ in range(count):
            start = time.monotonic()
            bench.gateway.ask("health")
            asked = time.monotonic()
            time.sleep(pause)
            waits.append(asked - start)
            delays.append(time.monotonic() - asked - pause)
        return sorted(waits)[int(count * 0.99)], sorted(delays)[int(count * 0.99)]

    with Bench(options) as bench:
        bench.begin(span + 240)
        usual, _ = answers(30 if options.quick else 300, 0.02)
        births, sightings = len(bench.recorder.births), bench.recorder.messages.get("sighting", 0)
        transitions = bench.recorder.highest
        bench.proxy.rate = 1
        start = time.monotonic()
        slow, late = answers(span * 2, 0.5)
        span = time.monotonic() - start
        behind = bench.gateway.truth() - bench.recorder.highest
        came = bench.recorder.messages.get("sighting", 0) - sightings
        passed = bench.recorder.highest - transitions
        bench.proxy.rate = None
        connections = len(bench.recorder.births) - births
        verdict.recovered(bench.drained())
        verdict.allowed_duplicates = WINDOW * (connections + 1)
        verdict.must_measure(f"the loop answered in {slow * 1000:.0f} ms, {usual * 1000:.0f} before",
                             slow <= max(0.05, usual * 3, late * 3))
        verdict.must("the broker was not slow: nothing stayed behind", behind > 2 * span)
        verdict.notes.append(
            f"{passed} transitions and {came} sightings in {span:.0f} s, {behind} transitions behind at its end;"
            f" {connections} connections meanwhile; loop answers 99 % in {usual * 1000:.1f} ms before,"
            f" {slow * 1000:.1f} ms during, a sleep is {late * 1000:.1f} ms late")
        verdict.growth = bench.growth()
        bench.finish(verdict)
    return verdict


# MARK: Certificates


class SecureBroker(Broker):
    """Speaks TLS on one port, with the certificate that it is told, and in the clear with the recorder on another."""

    def __init__(self, folder):
        super().__init__(folder)
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.secure_port = probe.getsockname()[1]
        with open(self.configuration, "a", encoding="utf-8") as file:
            file.write(f"listener {self.secure_port} 127.0.0.1\ncertfile {folder}/now.crt\nkeyfile {folder}/now.key\n")
        self._openssl("req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=authority", "-days", "2")
        open(os.path.join(folder, "index"), "w", encoding="utf-8").close()
        with open(os.path.join(folder, "ca.conf"), "w", encoding="utf-8") as file:
            file.write("[ca]\ndefault_ca=a\n[a]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\n"
                       "policy=p\nunique_subject=no\ncopy_extensions=copy\n[p]\ncommonName=supplied\n")

    def make(self, name, host="IP:127.0.0.1", begin=-1, end=1):
        """A certificate that is valid from and to so many days from now."""
        now = datetime.datetime.now(datetime.timezone.utc)
        dates = [(now + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ") for days in (begin, end)]
        self._openssl("req", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=broker", "-addext",
                      f"subjectAltName={host}")
        self._openssl("ca", "-config", "ca.conf", "-batch", "-in", f"{name}.csr", "-out", f"{name}.crt", "-cert",
                      "ca.crt", "-keyfile", "ca.key", "-startdate", dates[0], "-enddate", dates[1])

    def show(self, name):
        for suffix in ("crt", "key"):
            shutil.copy(os.path.join(self.folder, f"{name}.{suffix}"), os.path.join(self.folder, f"now.{suffix}"))
            os.chmod(os.path.join(self.folder, f"now.{suffix}"), 0o644)

    def _openssl(self, *words):
        found = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        if found.returncode != 0:
            raise Failure(found.stderr)


KEY = ["-newkey", "rsa:2048", "-nodes"]


@fault("F19", "certificate of the broker expired, not yet valid, or for another host")
def bad_certificates(options):
    verdict = Verdict("never connected, no plaintext, CPU ≤ 1 % (of a core, besides what the radio costs), 0 lost once it"
                      " is right, connected ≤ 90 s", runs=0, recovery=90)
    span = 8 if options.quick else 60
    for name, keys in CERTIFICATES[:1] if options.quick else CERTIFICATES:
        with Bench(options, SecureBroker) as bench:
            bench.broker.make("good")
            bench.broker.make("bad", **keys)
            bench.proxy.target = bench.broker.secure_port
            bench.gateway.configuration["sinks"][1]["config"] |= {
                "tls": True, "ca_file": os.path.join(bench.folder, "ca.crt")}
            bench.broker.show("good")
            bench.begin(span + 300, warm_up=2)
            start, used = time.monotonic(), bench.gateway.processor_time()
            time.sleep(4 if options.quick else 20)
            usual = (bench.gateway.processor_time() - used) / (time.monotonic() - start)
            bench.kill_broker()
            bench.broker.show("bad")
            start, used = time.monotonic(), bench.gateway.processor_time()
            bench.start_broker()
            time.sleep(span)
            cost = (bench.gateway.processor_time() - used) / (time.monotonic() - start) - usual
            verdict.must(f"{name}: connected all the same", not any(birth > start for birth in bench.recorder.births))
            # The processor's time is counted in hundredths of a second.
            verdict.must_measure(f"{name}: {cost:.2%} of a core more than before", cost <= 0.01 + 0.02 / span)
            bench.kill_broker()
            bench.broker.show("good")
            back = time.monotonic()
            bench.start_broker()
            born = await_birth(bench, back, 120)
            verdict.recovered(born and born - back, name)
            verdict.must(f"{name}: something else than a TLS handshake was sent: {bench.proxy.first_octets}",
                         bench.proxy.first_octets == {0x16})
            verdict.notes.append(f"{name}: {cost:+.2%} of a core, connected {(born or 0) - back:.1f} s after it was right")
            verdict.runs += 1
            bench.finish(verdict)
    verdict.allowed_duplicates = WINDOW * verdict.runs
    return verdict


CERTIFICATES = [
    ("expired", {"begin": -3, "end": -2}),
    ("not yet valid", {"begin": 1, "end": 2}),
    ("another host", {"host": "DNS:broker.example"}),
]
