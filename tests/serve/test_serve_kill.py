"""A server that is killed under load: no acknowledged label is lost, and none is learned twice."""

import random
import shutil
import threading

import httpx
import pytest

from sapwood.serve.class_host import host_from_bytes
from sapwood.serve.operations import Operation
from sapwood.serve.state import ServiceState
from sapwood.serve.wal import WriteAheadLog
from serve_cases import Server, comparable, rows_of, saved, state_of, until

KEEP_ALL_SEGMENTS = (
    "-c",
    "import sapwood.serve.wal as wal, sapwood.cli\n"
    "wal.WriteAheadLog.remove_before = lambda log, seq: None\n"
    "sapwood.cli.main()",
)
"""A server whose log keeps all operations, so that they can be replayed from the first."""


class Load:
    """Clients that send rows until they are acknowledged, to whatever server there is."""

    def __init__(self, seed):
        self.server = None
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.acknowledged = set()
        self.duplicates = self.failed = 0
        self.faults = []
        self._threads = [
            threading.Thread(target=self._guarded, args=(send, seed * 10 + place))
            for place, send in enumerate((self._learn, self._learn, self._label))
        ]

    def start(self):
        for thread in self._threads:
            thread.start()

    def join(self):
        self.stopping.set()
        for thread in self._threads:
            thread.join()
        assert not self.faults, self.faults[0]

    def _guarded(self, send, seed):
        try:
            draw, batch = random.Random(seed), 0
            while not self.stopping.is_set():
                send(draw, f"{seed}.{batch}", rows_of(draw.choice([1, 1, 7, 20]), seed=batch))
                batch += 1
        except Exception as error:
            self.faults.append(error)

    def _post(self, path, body):
        """Send a request until it is answered, however often the server is killed meanwhile."""
        while True:
            server = until(lambda: self.server)
            try:
                answer = httpx.post(f"{server.url}{path}", json=body, timeout=60)
            except httpx.HTTPError:
                self.failed += 1
                continue
            if answer.status_code != 503:
                return answer

    def _learn(self, draw, name, items):
        rows = [{**item, "id": f"{name}.{place}"} for place, item in enumerate(items)]
        found = self._post("/learn", {"rows": rows}).raise_for_status().json()
        assert found["learned"] + found["duplicates"] == len(rows)
        self._note([row["id"] for row in rows], found["duplicates"])

    def _label(self, draw, name, items):
        """Predict rows, and send their labels later."""
        ids = [f"{name}.{place}" for place in range(len(items))]
        rows = [{"x": item["x"], "id": each} for item, each in zip(items, ids, strict=True)]
        self._post("/predict", {"rows": rows}).raise_for_status()
        labels = [{"id": each, "y": item["y"]} for item, each in zip(items, ids, strict=True)]
        found = self._post("/labels", {"labels": labels}).raise_for_status().json()
        assert not found["unknown"]
        self._note(ids, len(found["duplicates"]))

    def _note(self, ids, duplicates):
        with self.lock:
            self.acknowledged.update(ids)
            self.duplicates += duplicates


def replayed(folder, model):
    """The state after all operations of a log, from the first on, without any checkpoint."""
    state = ServiceState(host_from_bytes(model))
    log = WriteAheadLog(folder)
    for record in log.open(0):
        state.apply(Operation.from_bytes(record.payload), record.time)
        state.seq = record.seq
    log.close()
    return state


def killed_under_load(folder, kills, kind, seed=1):
    path = saved(folder, 300, kind)
    first = path.read_bytes()
    draw, load = random.Random(seed), Load(seed)
    options = ("--checkpoint-every", "0.3s")
    load.start()
    try:
        for _ in range(kills):
            server = Server(path, *options, program=KEEP_ALL_SEGMENTS)
            assert server.url is not None, "".join(server.text)
            load.server = server
            enough = len(load.acknowledged) + draw.choice([1, 5, 60, 200])
            until(lambda enough=enough: len(load.acknowledged) >= enough or load.faults)
            load.server = None
            server.kill()
        # What was acknowledged until now is in what the next server would start with.
        known = set(load.acknowledged)
        copy = folder / "copy"
        copy.mkdir()
        shutil.copy(path, copy)
        shutil.copytree(f"{path}.serve", f"{copy / path.name}.serve")
        header, _ = state_of(copy / path.name)
        assert header["rows"] >= 300 + len(known)
        server = Server(path, *options, program=KEEP_ALL_SEGMENTS)
        load.server = server
        until(lambda: len(load.acknowledged) >= len(known) + 20 or load.faults)
    finally:
        load.stopping.set()
    load.join()
    with server.client() as client:
        rows = client.get("/model").raise_for_status().json()["rows"]
    assert server.stop() == 0
    return path, first, load, rows


def check(folder, kills, kind):
    path, first, load, rows = killed_under_load(folder, kills, kind)
    counts = f"{kills} kills, {len(load.acknowledged)} labels, {load.failed} requests cut off"
    print(f"{counts}, {load.duplicates} labels sent again")
    # Each label counts once: none is lost, none is learned twice.
    assert rows == 300 + len(load.acknowledged)
    assert load.failed > 0
    header, arrays = state_of(path)
    whole = comparable(replayed(path.with_name(f"{path.name}.serve"), first))
    assert header == whole[0]
    assert [name for name in arrays if arrays[name] != whole[1][name]] == []


@pytest.mark.parametrize("kind", ["tree", "intervals"])
def test_killed_servers_lose_no_label_and_learn_none_twice(tmp_path, kind):
    check(tmp_path, 3, kind)


@pytest.mark.long
def test_fifty_kills(tmp_path):
    check(tmp_path, 50, "intervals")
