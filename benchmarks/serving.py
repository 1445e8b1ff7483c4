"""Requests per second and latency of `sapwood serve`, compared with FastAPI around a model.

Three servers answer the same requests, one after the other in turns: `sapwood serve` with its log
(fsync before every acknowledgement), metrics and JSON logs; a FastAPI service of twenty lines
around the same model, without any of these; and the same service around a tree of river. Eight
connections predict single rows or batches of 100, while another one sends 1,000 rows a second to be
learned. All addresses are loopback ones, and requests are bounded in number and time. Client and
server share the machine, so the CPU time of the server's process is measured as well: other work on the
machine does not lengthen it.

A full run writes all measurements to ``docs/benchmarks/results/serving.csv``.
"""

import asyncio
import json
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import Answer, Cell, Table
from sapwood import HoeffdingTreeRegressor, streams

__all__ = ["run"]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "serving.csv"
"""Where a full run writes its measurements; the documentation shows the medians."""
TRAINED = 20_000
CONNECTIONS = 8
REQUESTS = {1: 4_000, 100: 800}
"""How many requests are sent, by the rows of each."""
QUICK = 4
REPEATS, QUICK_REPEATS = 3, 1
LEARNED_AT_ONCE, LEARNED_A_SECOND = 100, 1_000
PATIENCE = 120.0
TICKS = os.sysconf("SC_CLK_TCK")
SAPWOOD, FASTAPI, RIVER = "sapwood serve", "FastAPI, the same model", "FastAPI, river"

TWENTY_LINES = """
import pickle, sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Rows(BaseModel):
    rows: list[dict[str, float]]
class Labelled(Rows):
    y: list[float]

app, model = FastAPI(), pickle.load(open(sys.argv[1], "rb"))
at_once = hasattr(model, "learn_telling") or type(model).__module__.startswith("sapwood")

@app.post("/predict")
async def predict(body: Rows):
    if at_once and len(body.rows) > 1:
        return {"predictions": model.predict_many(body.rows).tolist()}
    return {"predictions": [model.predict_one(row) for row in body.rows]}
@app.post("/learn")
async def learn(body: Labelled):
    if at_once: model.learn_many(body.rows, body.y)
    else: [model.learn_one(x, y) for x, y in zip(body.rows, body.y)]
    return {"learned": len(body.y)}

uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False)
"""


class Record(NamedTuple):
    """One measurement: latencies are in milliseconds."""

    server: str
    rows: int
    requests: int
    per_second: float
    median: float
    p99: float
    cpu_us: float
    learned_per_second: float


def run(quick: bool = False) -> Answer:
    """Measure all servers in turns.

    Parameters
    ----------
    quick : bool
        A quarter of the requests, once; no file is written.
    """
    pairs = [({str(name): value for name, value in x.items()}, y) for x, y in _rows()]
    records: list[Record] = []
    with TemporaryDirectory() as folder:
        files = _models(Path(folder), pairs)
        for _ in range(QUICK_REPEATS if quick else REPEATS):
            for name, path in files.items():
                for rows, requests in REQUESTS.items():
                    count = requests // QUICK if quick else requests
                    with _server(name, path) as (port, process):
                        load = _Load(name, port, process, pairs)
                        records.append(asyncio.run(load.measured(rows, count)))
    if not quick:
        Table("", Record._fields, records).write_csv(FILE)
        shown_table(records).write_csv(FILE.with_name("serving-medians.csv"))
    return Answer([_table(records)], Table("", Record._fields, records))


def shown_table(records: Sequence[Record]) -> Table:
    """Return the medians as the documentation shows them."""
    rows = []
    for (name, size), own in _medians(records).items():
        digits = (f"{own[0]:,.0f}", f"{own[1]:.1f}", f"{own[2]:.0f}", f"{own[3]:,.0f}")
        rows.append([name, str(size), *digits])
    columns = ("server", "rows", "requests/s", "median ms", "p99 ms", "CPU µs a request")
    return Table("", columns, rows)


def _medians(records: Sequence[Record]) -> dict[tuple[str, int], list[float]]:
    """Return the medians of all repeats, by server and rows of a request."""
    found: dict[tuple[str, int], list[float]] = {}
    for size in REQUESTS:
        for name in dict.fromkeys(record.server for record in records):
            each = [one[3:] for one in records if one.server == name and one.rows == size]
            found[name, size] = [float(np.median(values)) for values in zip(*each, strict=True)]
    return found


def _rows() -> Any:
    return streams.friedman(rows=TRAINED)


def _models(folder: Path, pairs: Sequence[tuple[dict[str, float], float]]) -> dict[str, Path]:
    from river import tree

    rows, y = [x for x, _ in pairs], [target for _, target in pairs]
    own, other = HoeffdingTreeRegressor(), tree.HoeffdingTreeRegressor()
    own.learn_many(rows, y)
    for x, target in pairs:
        other.learn_one(x, target)
    own.save(folder / "model.sapwood")
    for name, model in (("sapwood", own), ("river", other)):
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(model))
    return {
        SAPWOOD: folder / "model.sapwood",
        FASTAPI: folder / "sapwood.pickle",
        RIVER: folder / "river.pickle",
    }


def _table(records: Sequence[Record]) -> Table:
    shown: list[tuple[Cell, ...]] = []
    medians = _medians(records)
    for (name, rows), values in medians.items():
        own = medians[SAPWOOD, rows]
        ratios = own[0] / values[0], values[2] / own[2], values[3] / own[3]
        shown.append((name, rows, *values, *ratios))
    columns = (
        *("server", "rows", "requests/s", "median ms", "p99 ms", "CPU µs/request", "learned/s"),
        *("requests/s: ratio", "p99: ratio", "CPU: ratio"),
    )
    title = "Medians of runs; ratios above 1: sapwood serve is better"
    return Table(title, columns, shown)


# -- servers ---------------------------------------------------------------------------------------


@contextmanager
def _server(name: str, path: Path) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Start a server, and wait until it accepts connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", TWENTY_LINES, str(path), str(port)]
    if name == SAPWOOD:
        command = [sys.executable, "-m", "sapwood", "serve", str(path), "--port", str(port)]
    with (path.parent / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait(port, process)
            yield port, process
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the server has not started") from None
            time.sleep(0.05)


# -- clients ---------------------------------------------------------------------------------------


class _Load:
    """Clients of one server.

    Parameters
    ----------
    name : str
        The server.
    port : int
        Where it listens.
    process : Popen
        Its process.
    pairs : sequence
        Rows and targets.
    """

    def __init__(
        self,
        name: str,
        port: int,
        process: "subprocess.Popen[bytes]",
        pairs: Sequence[tuple[dict[str, float], float]],
    ) -> None:
        self._name, self._port, self._process, self._pairs = name, port, process, pairs
        self._seconds: list[float] = []
        self._learned = 0

    async def measured(self, rows: int, requests: int) -> Record:
        """Send requests while rows are learned."""
        parts = [self._pairs[start : start + rows] for start in range(0, 50 * rows, rows)]
        bodies = [self._request("/predict", self._predicting([x for x, _ in p])) for p in parts]
        async with asyncio.timeout(PATIENCE):
            await self._send(bodies, max(1, requests // 20))  # to warm up
            self._seconds.clear()
            learner = asyncio.create_task(self._learn())
            began, cpu = time.perf_counter(), self._cpu()
            each = requests // CONNECTIONS
            await asyncio.gather(*(self._send(bodies, each) for _ in range(CONNECTIONS)))
            took, cpu = time.perf_counter() - began, self._cpu() - cpu
            learner.cancel()
        sent = each * CONNECTIONS
        median, p99 = np.percentile(self._seconds, [50, 99]) * 1e3
        return Record(
            *(self._name, rows, sent, sent / took, float(median), float(p99)),
            *(1e6 * cpu / sent, self._learned / took),
        )

    def _cpu(self) -> float:
        """Return the CPU seconds of the server's process."""
        text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def _predicting(self, rows: Sequence[dict[str, float]]) -> Any:
        return {"rows": [{"x": row} for row in rows] if self._name == SAPWOOD else list(rows)}

    def _learning(self, pairs: Sequence[tuple[dict[str, float], float]]) -> Any:
        if self._name == SAPWOOD:
            return {"rows": [{"x": x, "y": y} for x, y in pairs]}
        return {"rows": [x for x, _ in pairs], "y": [y for _, y in pairs]}

    def _request(self, path: str, content: Any) -> bytes:
        body = json.dumps(content).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def _send(self, bodies: Sequence[bytes], count: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        for number in range(count):
            began = time.perf_counter()
            await _exchanged(reader, writer, bodies[number % len(bodies)])
            self._seconds.append(time.perf_counter() - began)
        writer.close()

    async def _learn(self) -> None:
        """Send rows to be learned, so many a second."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        began, sent = time.perf_counter(), 0
        while True:
            start = sent % (len(self._pairs) - LEARNED_AT_ONCE)
            part = self._pairs[start : start + LEARNED_AT_ONCE]
            await _exchanged(reader, writer, self._request("/learn", self._learning(part)))
            sent += LEARNED_AT_ONCE
            self._learned = sent
            due = began + sent / LEARNED_A_SECOND
            await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def _exchanged(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> bytes:
    """Send a request, and return the body of the answer."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.partition(b"\r\n")[0].decode())
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return await reader.readexactly(int(length))
