"""A headless Chromium driven over its debugging pipe: no driver, no port and no library in between."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--remote-debugging-pipe"]  # fmt: skip


class Tab:
    """One page: what it logged, which addresses it asked for, and what its scripts answer."""

    def __init__(self, send: Callable[[str, dict[str, Any]], Any], receive: Callable[[], dict[str, Any]]) -> None:
        self._send, self._receive = send, receive
        self.events: list[dict[str, Any]] = []

    def open(self, file: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Open a file in a window of this size and wait until it has loaded; what was seen before is forgotten."""
        self.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=file.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def resize(self, width: int, height: int) -> None:
        """Give the page another size, as a phone where it is narrow."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def ask(self, method: str, **parameters: Any) -> Any:
        """One command of the protocol and its result; events that come meanwhile are kept."""
        return self._send(method, parameters)

    def run(self, script: str) -> Any:
        """The value of an expression in the page. Raises AssertionError where it throws."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG file."""
        import base64

        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def of(self, method: str) -> list[dict[str, Any]]:
        """The events of one kind so far."""
        return [event["params"] for event in self.events if event["method"] == method]


@contextmanager
def tab() -> Iterator[Tab]:
    """A fresh browser with one page, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        shell = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
        command = ["bash", "-c", shell, _binary(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            command, pass_fds=(to_read, from_write), stderr=subprocess.DEVNULL, env=os.environ | {"TMPDIR": profile}
        )
        os.close(to_read)
        os.close(from_write)
        try:
            yield _attach(to_write, from_read)
        finally:
            os.close(to_write)
            process.terminate()
            process.wait(10)
            os.close(from_read)


def _binary() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found, "no Chromium: apt-get install chromium"
    return found


def _attach(to: int, source: int) -> Tab:
    lines, numbers, session = _messages(source), iter(range(1, 1_000_000)), dict[str, str]()
    events: list[dict[str, Any]] = []

    def send(method: str, parameters: dict[str, Any]) -> Any:
        number = next(numbers)
        os.write(to, json.dumps({"id": number, "method": method, "params": parameters, **session}).encode() + b"\0")
        for message in lines:
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return message["result"]
            events.append(message)
        raise AssertionError("the browser went away")

    targets = send("Target.getTargets", {})["targetInfos"]
    page = next(target for target in targets if target["type"] == "page")
    session["sessionId"] = send("Target.attachToTarget", {"targetId": page["targetId"], "flatten": True})["sessionId"]
    made = Tab(send, lambda: next(lines))
    made.events = events
    return made


def _messages(source: int) -> Iterator[dict[str, Any]]:
    left = b""
    while chunk := os.read(source, 1 << 16):
        *whole, left = (left + chunk).split(b"\0")
        yield from (json.loads(message) for message in whole)
