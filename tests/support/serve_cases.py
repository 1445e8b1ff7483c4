"""Shared by the tests of the service: models, servers in processes of their own, and clients."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import numpy as np

import sapwood
from cases import PATIENCE
from sapwood.lags import LaggedModel, Lags

CITIES = ("Oslo", "Rome", "Bonn")


def rows_of(count, seed=1):
    """Rows as JSON has them, with targets that can be learned."""
    draw = np.random.default_rng(seed)
    a, b = draw.random((2, count)).round(4).tolist()
    city = [CITIES[place] for place in draw.integers(0, 3, count)]
    noise = draw.normal(0, 0.05, count).tolist()
    return [
        {
            "x": {"a": a[i], "b": b[i], "city": city[i]},
            "y": 3 * a[i] * b[i] + len(city[i]) + noise[i],
        }
        for i in range(count)
    ]


def class_rows_of(count, seed=1):
    """The same rows with one of three classes."""
    return [
        {**item, "y": "high" if item["y"] > 5.2 else "middle" if item["y"] > 4.5 else "low"}
        for item in rows_of(count, seed)
    ]


def target_rows_of(count, seed=1):
    """The same rows with two targets."""
    return [
        {**item, "y": {"low": item["y"] - 1.0, "high": 2.0 * item["y"]}}
        for item in rows_of(count, seed)
    ]


def trained(rows=2_000, kind="tree"):
    """A model that has learned some rows."""
    made = {
        "tree": sapwood.HoeffdingTreeRegressor,
        "intervals": lambda: sapwood.IntervalRegressor(sapwood.HoeffdingTreeRegressor()),
        "forest": lambda: sapwood.ForestRegressor(members=3),
        "lags": lambda: LaggedModel(
            sapwood.IntervalRegressor(sapwood.ForestRegressor(members=3)), Lags([1, 2], target="y")
        ),
        "targets": sapwood.HoeffdingTreeRegressor,
        "classes": sapwood.HoeffdingTreeClassifier,
        "hybrid": lambda: sapwood.HybridRegressor(min_rows=200, background=False),
    }[kind]()
    if rows:
        items = {"targets": target_rows_of, "classes": class_rows_of}.get(kind, rows_of)(rows)
        made.learn_many([item["x"] for item in items], [item["y"] for item in items])
    return made


def saved(folder, rows=2_000, kind="tree"):
    """The path of such a model."""
    path = folder / "model.sapwood"
    trained(rows, kind).save(path)
    return path


class Server:
    """A server in a process of its own.

    Attributes
    ----------
    url : str
        Where it listens.
    lines : list of dicts
        What it has logged so far.
    """

    def __init__(self, path, *options, env=None, program=("-m", "sapwood")):
        command = [sys.executable, *program, "serve", path, "--port", "0"]
        self.process = subprocess.Popen(
            [*map(str, command), *map(str, options)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.lines, self.text = [], []
        self._started = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self._started.get(timeout=PATIENCE)

    def _read(self):
        for line in self.process.stderr:
            self.text.append(line)
            try:
                found = json.loads(line)
            except ValueError:
                continue
            self.lines.append(found)
            if found.get("event") == "listening":
                self._started.put(found["url"])
        self._started.put(None)  # it has ended before it listened

    def client(self, **options):
        return httpx.Client(base_url=self.url, timeout=PATIENCE, **options)

    def kill(self):
        """Kill it at once."""
        self.process.kill()
        return self.wait()

    def stop(self):
        """Let it stop by itself."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        self.process.stderr.close()
        return code


@contextmanager
def serving(path, *options, **more):
    """A server, and a client of it."""
    server = Server(path, *options, **more)
    try:
        assert server.url is not None, "".join(server.text)
        with server.client() as client:
            yield server, client
    finally:
        if server.process.poll() is None:
            server.kill()


def until(condition, seconds=PATIENCE):
    """Wait until a condition holds; return what it returned."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, "it has never become true"
        time.sleep(0.02)


def state_of(path, **options):
    """The state that a server would start with, as comparable values; nothing is changed."""
    from sapwood.serve.store import Store

    store = Store(path, **options)
    try:
        return comparable(store.open())
    finally:
        store.close()


def comparable(state):
    """A state as values that are equal if and only if all bits are."""
    header, arrays = state.to_state()
    return header, {name: array.tobytes() for name, array in arrays.items()}
