"""A browser without a window, driven by the WebDriver protocol of the W3C.

The standard library alone. `with Browser() as browser:` starts chromedriver and
chromium and ends both.
"""

import base64
import json
import os
import re
import struct
import subprocess
import tempfile
import urllib.error
import urllib.request
import zlib

# The key of an element in the protocol's JSON.
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.url = None
        try:
            for line in self.driver.stdout:
                if found := re.search(r"started successfully on port (\d+)", line):
                    self.url = f"http://127.0.0.1:{found[1]}/session"
                    break
            arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage",
                         "--hide-scrollbars", "--force-device-scale-factor=1",
                         "--window-size=1200,900",
                         f"--user-data-dir={self.folder.name}"]
            # Chromium has no sandbox for root, as containers are.
            if os.geteuid() == 0:
                arguments.append("--no-sandbox")
            options = {"args": arguments}
            answer = self._send("POST", "", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"}}}})
            self.url += "/" + answer["sessionId"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            if self.url and not self.url.endswith("/session"):
                self._send("DELETE", "")
        finally:
            self.driver.kill()
            self.driver.wait()
            self.folder.cleanup()

    def _send(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path, method=method,
            data=None if method != "POST" else json.dumps(body or {}).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {json.load(error)['value']['message']}")

    def open(self, path):
        self._send("POST", "/url", {"url": "file://" + os.path.abspath(path)})

    def run(self, script, *arguments):
        """What the body of a function returns, called with `arguments`."""
        return self._send("POST", "/execute/sync",
                          {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self._send("POST", "/element",
                          {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._send("POST", f"/element/{self.find(selector)}/click")

    def press(self, selector, keys):
        """Sends keys to an element, which takes the focus."""
        self._send("POST", f"/element/{self.find(selector)}/value", {"text": keys})

    def move_to(self, selector, x, y):
        """Moves the mouse to a point, from the middle of an element."""
        move = {"type": "pointerMove", "duration": 0, "x": x, "y": y,
                "origin": {ELEMENT: self.find(selector)}}
        self._send("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "actions": [move]}]})

    def get_messages(self):
        """The messages of the console since the last call."""
        return self._send("POST", "/se/log", {"type": "browser"})

    def send_to_page(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute",
                          {"cmd": command, "params": parameters})

    def screenshot(self, selector=None):
        """PNG bytes of an element or of the window."""
        path = f"/element/{self.find(selector)}/screenshot" if selector else "/screenshot"
        return base64.b64decode(self._send("GET", path))


def count_colours(png):
    """The number of pixels by their bytes, of a PNG of 8 bits without interlacing."""
    place, data, width, height, depth = 8, b"", 0, 0, 0
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place:place + 8])
        chunk = png[place + 8:place + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", chunk[:10])
            depth = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            data += chunk
        place += length + 12
    data = zlib.decompress(data)
    counts = {}
    previous = bytearray(width * depth)
    for y in range(height):
        begin = y * (width * depth + 1)
        kind, row = data[begin], bytearray(data[begin + 1:begin + 1 + width * depth])
        for i in range(len(row)) if kind else ():
            left = row[i - depth] if i >= depth else 0
            up = previous[i]
            corner = previous[i - depth] if i >= depth else 0
            if kind == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up),
                           (abs(guess - corner), 2, corner))[2]
            else:
                near = (0, left, up, (left + up) // 2)[kind]
            row[i] = (row[i] + near) & 255
        for x in range(0, len(row), depth):
            pixel = bytes(row[x:x + depth])
            counts[pixel] = counts.get(pixel, 0) + 1
        previous = row
    return counts
