# SPDX-License-Identifier: Apache-2.0
"""HTTP with JSON, and a WebSocket (RFC 6455) that sends and receives text, with the standard library."""

import base64
import http.client
import json
import os
import socket
import struct
import urllib.parse


def request(port, method, path, body=None, token=None, form=False, timeout=60):
    """One request to a server on loopback: the status, and the answer read as JSON where it is some."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    headers = {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if form:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = urllib.parse.urlencode(body)
    elif body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(body)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text
    finally:
        connection.close()


class WebSocket:
    """A client of one connection. It answers no pings: connections here are short."""

    def __init__(self, port, path, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self.socket.sendall(head.encode())
        self.file = self.socket.makefile("rb")
        status = self.file.readline()
        if b" 101 " not in status:
            raise OSError(f"no WebSocket at {path}: {status.decode('latin-1').strip()}")
        while self.file.readline().strip():
            pass

    def send(self, value):
        data = json.dumps(value).encode()
        if len(data) < 126:
            length = bytes([0x80 | len(data)])
        elif len(data) < 65536:
            length = b"\xfe" + struct.pack(">H", len(data))
        else:
            length = b"\xff" + struct.pack(">Q", len(data))
        mask = os.urandom(4)
        masked = bytes(octet ^ mask[index % 4] for index, octet in enumerate(data))
        self.socket.sendall(b"\x81" + length + mask + masked)

    def receive(self):
        """The next message, put together from its frames."""
        message = b""
        while True:
            first, second = self._exactly(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", self._exactly(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._exactly(8))
            data = self._exactly(length)
            opcode = first & 0x0F
            if opcode == 8:
                raise OSError("the server closed the WebSocket")
            if opcode in (9, 10):
                continue
            message += data
            if first & 0x80:
                return json.loads(message)

    def _exactly(self, count):
        data = self.file.read(count)
        if len(data) != count:
            raise OSError("the WebSocket ended")
        return data

    def close(self):
        self.file.close()
        self.socket.close()
