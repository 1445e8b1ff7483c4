"""A browser that is driven by chromedriver over the WebDriver protocol, without a library."""

import base64
import shutil
import socket
import subprocess
import time

import httpx
import pytest

from cases import PATIENCE

DRIVER = shutil.which("chromedriver")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"tab": "\ue004", "enter": "\ue007", "space": " ", "down": "\ue015"}

needs_browser = pytest.mark.skipif(
    DRIVER is None or BROWSER is None, reason="chromedriver or chromium is not installed"
)


class Browser:
    """A window of a browser.

    Parameters
    ----------
    folder : Path
        For its profile.
    """

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)
        self._session = ""
        self._wait_for_driver()
        options = {
            "binary": BROWSER,
            "args": [
                *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"),
                f"--user-data-dir={folder / 'profile'}",
            ],
        }
        wanted = {"browserName": "chrome", "goog:chromeOptions": options}
        wanted["goog:loggingPrefs"] = {"browser": "ALL"}
        made = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"

    def _wait_for_driver(self):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._http.get("/status").raise_for_status()
                return
            except httpx.HTTPError:
                assert time.monotonic() < end, "chromedriver does not answer"
                time.sleep(0.05)

    def _post(self, path, body):
        answer = self._http.post(f"{self._session}{path}", json=body)
        found = answer.json()["value"]
        assert answer.is_success, found
        return found

    def close(self):
        try:
            self._http.delete(self._session)
        finally:
            self._http.close()
            self._driver.terminate()
            self._driver.wait()

    def open(self, url):
        self._post("/url", {"url": url})

    def run(self, script, *arguments):
        """Run the body of a function in the page; return what it returns."""
        return self._post("/execute/sync", {"script": script, "args": list(arguments)})

    def look(self, width, height=900, dark=False):
        """Let the window be so wide, light or dark."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", {"features": [scheme]})

    def devtools(self, command, params):
        return self._post("/goog/cdp/execute", {"cmd": command, "params": params})

    def press(self, *keys):
        """Press keys one after the other, by name or letter."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self._post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def complaints(self):
        """Return what the browser has logged since the last call, such as faults of scripts."""
        found = self._post("/se/log", {"type": "browser"})
        return [entry["message"] for entry in found if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path=None, whole=True):
        """Return a picture of the page, as PNG."""
        found = self.devtools(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole}
        )
        data = base64.b64decode(found["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def until(self, script, *arguments):
        """Wait until a script returns something true; return it."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.run(script, *arguments)
            if found:
                return found
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)
