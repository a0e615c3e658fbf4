# SPDX-License-Identifier: Apache-2.0
"""A Home Assistant of one release with a folder of its own on a loopback port, and its interfaces."""

import os
import subprocess
import time

from support import end, free_port, wait_until
from web import WebSocket, request

# What a browser would send: the page that the login returns to.
USER, PASSWORD = "tester", "beacond-test"


def untouched(form):
    """What a browser sends of the fields of a form that nobody touched."""
    answer = {}
    for field in form:
        if not field.get("required"):
            continue
        selector = field.get("selector", {})
        if field.get("type") == "expandable":
            answer[field["name"]] = untouched(field["schema"])
        elif "default" in field:
            answer[field["name"]] = field["default"]
        elif "boolean" in selector:
            answer[field["name"]] = False
        elif "select" in selector:
            answer[field["name"]] = selector["select"]["options"][0]
    return answer


class HomeAssistant:
    """Everything that it says goes into one log, however often it is started."""

    def __init__(self, release, home, folder):
        """`home`: what .ci/home-assistant made; `folder`: where it keeps its state."""
        self.release = release
        self.home = home
        self.folder = folder
        self.port = free_port()
        self.process = None
        self.token = None
        self.tokens = None
        self.log_path = os.path.join(os.path.dirname(folder), "home-assistant.log")
        self.client = f"http://127.0.0.1:{self.port}/"
        os.makedirs(folder, exist_ok=True)

    @property
    def number(self):
        """The release as numbers that can be compared: (2026, 2)."""
        return tuple(int(part) for part in self.release.split(".")[:2])

    def configure(self, text):
        """`text`: what configuration.yaml has besides the interfaces."""
        with open(os.path.join(self.folder, "configuration.yaml"), "w", encoding="utf-8") as file:
            file.write(
                f"http:\n  server_host: 127.0.0.1\n  server_port: {self.port}\n"
                "homeassistant:\n  name: Home\n  latitude: 52.0\n  longitude: 5.0\n  elevation: 0\n"
                "  unit_system: metric\n  time_zone: Europe/Amsterdam\n  country: NL\n  currency: EUR\n"
                "frontend:\nconfig:\nhistory:\nlogbook:\nperson:\nsystem_log:\nlogger:\n  default: info\n" + text
            )

    def start(self):
        """Starts it and returns when its interface answers."""
        venv = os.path.join(self.home, "venv")
        options = ["-m", "homeassistant", "--skip-pip", "--log-no-color"]
        if os.path.isdir(os.path.join(self.home, "etc")):
            script = (
                'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mkdir -p "$1/config" && '
                'mount --bind "$2" "$1/config" && exec chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 '
                'PATH=/usr/sbin:/usr/bin:/sbin:/bin "${@:3}"'
            )
            command = ["unshare", "--mount", "--propagation", "private", "bash", "-c", script, "-"]
            command += [self.home, self.folder, "/venv/bin/python", *options, "--config", "/config"]
        else:
            command = [os.path.join(venv, "bin", "python"), *options, "--config", self.folder]
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if not wait_until(self._answers, 180, 0.2):
            raise RuntimeError(f"Home Assistant {self.release} does not answer:\n{self.log()[-3000:]}")

    def _answers(self):
        if self.process.poll() is not None:
            return False
        try:
            if self.token:
                status, answer = request(self.port, "GET", "/api/config", token=self.token)
                return status == 200 and answer.get("state") == "RUNNING"
            return request(self.port, "GET", "/api/onboarding")[0] == 200
        except OSError:
            return False

    def stop(self):
        """As its service is stopped: SIGTERM, so that it writes what it knows."""
        if self.process is not None:
            end(self.process, 60)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def post(self, path, body, token=None):
        status, answer = request(self.port, "POST", path, body, token or self.token)
        if status not in (200, 201):
            raise RuntimeError(f"{path}: {status} {answer}")
        return answer

    def onboard(self):
        """What the first visitor does on the pages of the first start."""
        user = {"name": "Ada", "username": USER, "password": PASSWORD, "language": "en", "client_id": self.client}
        code = self.post("/api/onboarding/users", user)["auth_code"]
        form = {"grant_type": "authorization_code", "code": code, "client_id": self.client}
        status, self.tokens = request(self.port, "POST", "/auth/token", form, form=True)
        assert status == 200, self.tokens
        self.token = self.tokens["access_token"]
        # Older ones also begin integrations here whose packages nobody needs for this, and fail after the rest is done.
        request(self.port, "POST", "/api/onboarding/core_config", {}, self.token)
        self.post("/api/onboarding/analytics", {})
        self.post("/api/onboarding/integration", {"client_id": self.client, "redirect_uri": self.client})
        # The first one holds for half an hour.
        answer = self.ask({"type": "auth/long_lived_access_token", "client_name": "test", "lifespan": 1})
        self.token = answer

    def add_mqtt(self, port):
        """The integration as a person adds it: the form with the broker."""
        flow = self.post("/api/config/config_entries/flow", {"handler": "mqtt", "show_advanced_options": False})
        path = f"/api/config/config_entries/flow/{flow['flow_id']}"
        if flow["type"] == "menu":
            flow = self.post(path, {"next_step_id": "broker"})
        result = self.post(path, untouched(flow["data_schema"]) | {"broker": "127.0.0.1", "port": port})
        if result.get("type") != "create_entry":
            raise RuntimeError(f"the MQTT form was not accepted: {result}")

    def ask(self, *commands):
        """The results of commands of the WebSocket interface; of a single one, its result."""
        connection = WebSocket(self.port, "/api/websocket")
        try:
            connection.receive()
            connection.send({"type": "auth", "access_token": self.token})
            if (answer := connection.receive())["type"] != "auth_ok":
                raise RuntimeError(f"no entry: {answer}")
            results = []
            for number, command in enumerate(commands, 1):
                connection.send({"id": number} | command)
                while (answer := connection.receive()).get("id") != number or answer["type"] != "result":
                    pass
                if not answer["success"]:
                    raise RuntimeError(f"{command['type']}: {answer['error']}")
                results.append(answer["result"])
            return results[0] if len(commands) == 1 else results
        finally:
            connection.close()

    def states(self):
        """All states by entity id."""
        status, answer = request(self.port, "GET", "/api/states", token=self.token)
        if status != 200:
            raise RuntimeError(f"states: {status} {answer}")
        return {state["entity_id"]: state for state in answer}

    def registry(self):
        """The entities of MQTT by unique id, each with its device under `device`."""
        entities, devices = self.ask(
            {"type": "config/entity_registry/list"}, {"type": "config/device_registry/list"}
        )
        by_id = {device["id"]: device for device in devices}
        return {
            entity["unique_id"]: entity | {"device": by_id.get(entity["device_id"])}
            for entity in entities
            if entity["platform"] == "mqtt"
        }

    def wait_for_log(self, text, seconds, since=0):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if text in self.log()[since:]:
                return True
            time.sleep(0.2)
        return False
