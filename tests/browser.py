"""A real browser for the tests: Debian's chromium, driven through chromedriver's HTTP interface (W3C WebDriver)."""

import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.mlflow_server import free_port
from tests.sweeps import wait_for

INSTALLED = bool(shutil.which("chromium") and shutil.which("chromedriver"))
_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1600,1200",
]


class Browser:
    """One window."""

    def __init__(self, session: str):
        self._session = session

    def open(self, address: str) -> None:
        _call("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a piece of JavaScript returns."""
        return _call("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def resize(self, width: int) -> None:
        _call("POST", f"{self._session}/window/rect", {"width": width, "height": 1200})

    def complaints(self) -> list[str]:
        """Return the errors and warnings on the console since the last call."""
        entries = _call("POST", f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def text(self) -> str:
        return self.run("return document.body.innerText")


@contextmanager
def browser() -> Iterator[Browser]:
    """Open a window, and close everything at the end."""
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(lambda: _is_ready(address))
            options = {"binary": shutil.which("chromium"), "args": [*_OPTIONS, f"--user-data-dir={profile}"]}
            log = {"goog:loggingPrefs": {"browser": "ALL"}}
            wanted = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options, **log}}
            session = f"{address}/session/{_call('POST', f'{address}/session', {'capabilities': wanted})['sessionId']}"
            yield Browser(session)
            _call("DELETE", session)
        finally:
            driver.terminate()
            driver.wait()


def _is_ready(address: str) -> bool:
    try:
        return _call("GET", f"{address}/status")["ready"]
    except OSError:
        return False


def _call(method: str, address: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["value"]
