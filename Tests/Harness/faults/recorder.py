# SPDX-License-Identifier: Apache-2.0
"""A subscriber that records what it reads and judges its order; and what the broker may be."""

import json
import socket
import struct
import subprocess
import threading
import time

from support import Broker, end, find_program, wait_until


class Stream:
    """The numbers of one stream of an outbox, as they came."""

    def __init__(self):
        self.seen, self.named = {}, set()  # what was seen by number, as a hash of its content
        self.highest = self.duplicates = self.inversions = self.contradictions = 0

    def take(self, event):
        """Whether it came for the first time."""
        number = event["seq"]
        if event["event"] == "gap":
            self.named.update(range(event["first_seq"], event["last_seq"] + 1))
        content = hash(json.dumps({key: event[key] for key in event if key != "replayed"}, sort_keys=True))
        if number in self.seen:
            self.duplicates += 1
            self.contradictions += self.seen[number] != content
            return False
        self.seen[number] = content
        self.inversions += number < self.highest
        self.highest = max(self.highest, number)
        return True

    def lost(self, last):
        """The numbers through `last` that never came. Those that a gap event names are lost as well."""
        return (set(range(1, last + 1)) | self.named) - self.seen.keys()


class Recorder:
    """Reads everything below a topic at QoS 0, which a broker passes on before it acknowledges it to the publisher.

    At QoS 1 a broker may keep what it has acknowledged until this subscriber has room, and a broker that is killed then
    takes with it what nobody can ask the gateway for.
    """

    def __init__(self, port, root):
        self.port, self.root = port, root
        self.streams = {}
        self.states, self.times = {}, {}  # by topic: the newest state, and when it began
        self.regressions = []
        self.last_turns = {}  # by topic: the last enter or exit
        self.repeated_turns = []  # enters of who was there, and exits of who was not
        self.kinds = {}  # how many events of each kind
        self.messages = {}  # how many of each last level
        self.topics = set()
        self.births = []  # when each birth came that was not retained
        self.is_ready = False
        self.judges_time = True
        self.keeps = False  # whether events are kept, with the times of their arrival
        self.kept, self.arrivals = [], []
        self.stopping = False
        self.socket = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    # MARK: What was read

    @property
    def highest(self):
        return max((stream.highest for stream in self.streams.values()), default=0)

    @property
    def duplicates(self):
        return sum(stream.duplicates for stream in self.streams.values())

    @property
    def inversions(self):
        return sum(stream.inversions for stream in self.streams.values())

    # MARK: The connection

    def stop(self):
        self.stopping = True
        connection = self.socket
        if connection is not None:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join()

    def _run(self):
        while not self.stopping:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 2) as connection:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
                    self.socket = connection
                    self._read(connection)
            except OSError:
                pass
            self.is_ready = False
            self.socket = None
            time.sleep(0.05)

    def _read(self, connection):
        name = b"recorder"
        body = struct.pack(">H", 4) + b"MQTT\x04\x02\x00\x00" + struct.pack(">H", len(name)) + name
        topic = (self.root + "#").encode()
        subscribe = struct.pack(">HH", 1, len(topic)) + topic + b"\0"
        connection.sendall(bytes([0x10, len(body)]) + body)
        connection.settimeout(None)
        data = b""
        while not self.stopping:
            chunk = connection.recv(1 << 16)
            if not chunk:
                return
            data += chunk
            while (packet := first_packet(data)) is not None:
                head, start, stop = packet
                if head >> 4 == 2:
                    if data[start + 1] != 0:
                        return
                    connection.sendall(bytes([0x82, len(subscribe)]) + subscribe)
                elif head >> 4 == 9:
                    self.is_ready = True
                elif head >> 4 == 3:
                    length = struct.unpack_from(">H", data, start)[0]
                    self._take(data[start + 2:start + 2 + length].decode(), data[start + 2 + length:stop], head & 1 == 1)
                data = data[stop:]

    def _take(self, topic, payload, is_retained):
        last = topic.rsplit("/", 1)[-1]
        self.messages[last] = self.messages.get(last, 0) + 1
        self.topics.add(topic)
        if not payload:
            return
        value = json.loads(payload)
        if last == "status" and not is_retained and value["state"] == "online":
            self.births.append(time.monotonic())
        elif last == "event":
            self.kinds[value["event"]] = self.kinds.get(value["event"], 0) + 1
            if self.streams.setdefault(value["stream"], Stream()).take(value):
                self._follow(topic, value)
            if self.keeps:
                self.kept.append(value)
                self.arrivals.append(time.time())
        elif last == "presence":
            before = self.times.get(topic, "")
            if self.judges_time and value["time"] < before:
                self.regressions.append(f"{topic}: {value['state']} since {value['time']}, read one since {before}")
            self.states[topic], self.times[topic] = value["state"], value["time"]

    def _follow(self, topic, event):
        kind = event["event"]
        if kind in ("enter", "exit", "region_enter", "region_exit"):
            if self.last_turns.get(topic) == kind:
                self.repeated_turns.append(f"{topic}: {kind} twice, the second at {event['time']}, number {event['seq']}")
            self.last_turns[topic] = kind


def first_packet(data):
    """The first octet, where the body begins and where it ends; None while the packet is not complete."""
    length = 0
    for index in range(1, 5):
        if index >= len(data):
            return None
        length |= (data[index] & 0x7F) << (7 * (index - 1))
        if data[index] < 0x80:
            stop = index + 1 + length
            return (data[0], index + 1, stop) if len(data) >= stop else None
    raise ValueError("no MQTT packet")


class NATS(Broker):
    """nats-server in mosquitto's place. What is retained outlives it on disk, as JetStream has it."""

    def __init__(self, folder):
        super().__init__(folder)
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(
                f'server_name: faults\nlisten: "127.0.0.1:-1"\njetstream {{ store_dir: "{folder}/nats" }}\n'
                f'mqtt {{ listen: "127.0.0.1:{self.port}" }}\n')

    def start(self):
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [find_program("nats-server"), "-c", self.configuration], stdout=log, stderr=log)
        if not wait_until(self._answers, 20):
            with open(self.log_path, encoding="utf-8") as log:
                raise SystemExit(f"nats-server does not answer on port {self.port}:\n{log.read()}")
