# SPDX-License-Identifier: Apache-2.0
"""Pictures of pages of Home Assistant, taken by a headless Chromium through its DevTools protocol."""

import base64
import json
import os
import subprocess
import tempfile
import time

from support import end, find_program, free_port, wait_until
from web import WebSocket, request


# Newer releases ask at the first login whether the port that the test chose is right.
CONFIRM = """
(function press(root) {
  for (const node of root.querySelectorAll("*")) {
    if (/button/i.test(node.tagName) && node.textContent.trim() === "Confirm") { node.click(); return true; }
    if (node.shadowRoot && press(node.shadowRoot)) { return true; }
  }
  return false;
})(document)
"""


class Page:
    def __init__(self, port):
        page = request(port, "PUT", "/json/new?about:blank")[1]
        self.connection = WebSocket(port, page["webSocketDebuggerUrl"].split(str(port), 1)[1])
        self.count = 0

    def call(self, method, **parameters):
        self.count += 1
        self.connection.send({"id": self.count, "method": method, "params": parameters})
        while (answer := self.connection.receive()).get("id") != self.count:
            pass
        return answer.get("result", {})

    def open(self, address, seconds):
        self.call("Page.navigate", url=address)
        time.sleep(seconds)


def take_picture(home, path, file, width=1100, height=900):
    """What somebody who has logged in sees at a path, as PNG."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="beacond-chromium-") as folder:
        browser = subprocess.Popen(
            [find_program("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--window-size={width},{height}", f"--remote-debugging-port={port}", f"--user-data-dir={folder}/profile"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"HOME": folder})

        def answers():
            try:
                return request(port, "GET", "/json/version")[0] == 200
            except OSError:
                return False

        try:
            if not wait_until(answers, 30, 0.2):
                raise RuntimeError("chromium does not answer")
            page = Page(port)
            # Any page of the same origin, to leave there what the page of the login would.
            page.open(home.client + "manifest.json", 2)
            tokens = home.tokens | {
                "hassUrl": home.client.rstrip("/"), "clientId": home.client,
                "expires": int(time.time() * 1000) + 1_500_000}
            page.call("Runtime.evaluate", expression=f"localStorage.hassTokens = {json.dumps(json.dumps(tokens))}")
            page.open(home.client.rstrip("/") + path, 15)
            page.call("Runtime.evaluate", expression=CONFIRM)
            time.sleep(3)
            picture = page.call("Page.captureScreenshot", format="png")["data"]
            with open(file, "wb") as output:
                output.write(base64.b64decode(picture))
        finally:
            end(browser)
