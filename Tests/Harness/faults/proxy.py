# SPDX-License-Identifier: Apache-2.0
"""The network between the gateway and the broker, which can be as bad as one likes."""

import select
import socket
import struct
import threading
import time

from recorder import first_packet

PUBLISH = 3


class Proxy:
    """Joins each connection to its port to one of the broker's.

    - The door: closed, nobody listens and connections are refused.
    - The hole: connections stay, and nothing passes in either direction.
    - The rate: messages a second that pass towards the broker.
    """

    def __init__(self, target):
        self.target = target
        self.listener = None
        self.hole = False
        self.rate = None
        self.connections = []
        self.first_octets = set()  # of what clients sent
        self.lock = threading.Lock()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def open_door(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # What the slow road holds counts as on its way, so little of it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(16)
        self.listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close_door(self):
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def cut(self, reset=True):
        """Ends all connections: with RST, or in order."""
        for connection in self._living():
            connection.end(reset)

    def half_open(self):
        """The broker's ends go, and the gateway is not told: as behind a router that has forgotten."""
        for connection in self._living():
            connection.is_forgotten = True

    def stop(self):
        self.close_door()
        self.cut()

    def _living(self):
        with self.lock:
            self.connections = [connection for connection in self.connections if not connection.has_ended]
            return list(self.connections)

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            connection = Connection(self, client)
            with self.lock:
                self.connections.append(connection)
            threading.Thread(target=connection.run, daemon=True).start()


class Connection:
    def __init__(self, proxy, client):
        self.proxy, self.client, self.broker, self.thread = proxy, client, None, None
        self.has_ended = self.is_forgotten = False
        self.waiting = b""  # towards the broker, while there is a rate
        self.next_publish = 0.0
        self.lost_in_hole = False
        self.is_fresh = True

    def end(self, reset=False):
        self.has_ended = True
        for end in (self.client, self.broker):
            if end is None:
                continue
            try:
                if reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            if threading.current_thread() is not self.thread:
                continue
            end.close()

    def run(self):
        self.thread = threading.current_thread()
        reset = False
        try:
            self.broker = socket.create_connection(("127.0.0.1", self.proxy.target), 5)
            self.broker.settimeout(None)
            for end in (self.client, self.broker):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.has_ended and self._turn():
                pass
        except OSError:
            reset = True
        self.end(reset or self.has_ended)

    def _turn(self):
        """Passes on what is there; whether it goes on."""
        if self.proxy.hole:
            self.lost_in_hole = True
            time.sleep(0.05)
            return True
        if self.lost_in_hole and gone(self.client):
            return False
        self.lost_in_hole = False
        if self.is_forgotten:
            self.broker.close()
            while not self.has_ended and not gone(self.client):
                time.sleep(0.05)
            return False
        rate = self.proxy.rate
        if self.waiting and (rate is None or time.monotonic() >= self.next_publish):
            self._send_waiting(rate)
        sources = [self.broker] if rate is not None and len(self.waiting) > 4096 else [self.client, self.broker]
        for source in select.select(sources, [], [], 0.02)[0]:
            data = source.recv(4096 if rate is not None else 1 << 16)
            if not data:
                return False
            if source is self.broker:
                # As the gateway itself does: the broker holds back further acknowledgements until it hears of this one.
                self.broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                self.client.sendall(data)
                continue
            if self.is_fresh:
                self.proxy.first_octets.add(data[0])
                self.is_fresh = False
            if rate is None and not self.waiting:
                self.broker.sendall(data)
            else:
                self.waiting += data
                self._send_waiting(rate)
        return True

    def _send_waiting(self, rate):
        """Whole packets only, one message in its time."""
        if rate is None:
            self.broker.sendall(self.waiting)
            self.waiting = b""
        while (packet := first_packet(self.waiting)) is not None:
            head, _, stop = packet
            if head >> 4 == PUBLISH:
                now = time.monotonic()
                if now < self.next_publish:
                    return
                self.next_publish = now + 1 / rate
            self.broker.sendall(self.waiting[:stop])
            self.waiting = self.waiting[stop:]


def gone(end):
    """Whether the other side has closed."""
    poll = select.poll()
    poll.register(end, select.POLLRDHUP)
    return bool(poll.poll(0))
