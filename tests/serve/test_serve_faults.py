"""What is served although something is missing or goes wrong around it."""

import subprocess
import sys
import threading

import httpx
import pytest

import sapwood
from cases import PATIENCE
from sapwood.serve import follow
from sapwood.serve.app import make_app
from sapwood.serve.follow import TopicFollower
from sapwood.serve.service import Service
from sapwood.serve.settings import Settings
from sapwood.serve.store import Snapshot, Store
from sapwood.streams.memory import as_stream
from serve_cases import rows_of, saved, serving, target_rows_of, trained, until

ROW = {"a": 0.5, "b": 0.5, "city": "Oslo"}


# -- explanations ----------------------------------------------------------------------------------


def test_lags_around_intervals_explain(tmp_path):
    with serving(saved(tmp_path, 400, "lags")) as (server, client):
        assert client.get("/model").json()["explains"] is True
        answer = client.post("/predict?explain=true&intervals=true", json={"x": ROW})
        assert answer.status_code == 200, answer.text
        found = answer.json()
        explained = found["explanations"][0]["prediction"]
        assert explained == pytest.approx(found["predictions"][0])
        assert not [line for line in server.lines if line["level"] == "error"]


def test_a_model_that_does_not_explain_states_so(tmp_path):
    path = tmp_path / "model.sapwood"
    trained(600, "hybrid").save(path)
    with serving(path) as (_, client):
        assert client.get("/model").json()["explains"] is False
        answer = client.post("/predict?explain=true", json={"x": ROW})
        assert answer.status_code == 422
        assert "leave explain out" in answer.json()["error"]["message"]
        parameters = client.get("/openapi.json").json()["paths"]["/predict"]["post"]["parameters"]
        [explain] = [each for each in parameters if each["name"] == "explain"]
        assert explain["schema"]["enum"] == ["false"]
        assert client.post("/predict?explain=false", json={"x": ROW}).status_code == 200


# -- rejected rows ---------------------------------------------------------------------------------


def test_rejected_rows_are_counted_by_reason(tmp_path):
    path = saved(tmp_path, 200)
    with serving(path, "--max-rows", "3", "--max-learn-rate", "1") as (_, client):
        learn = {"x": ROW, "y": 1.0}
        for body, remedy in (
            ({**learn, "y": None}, "fix the value, or drop the row"),
            ({**learn, "y": "4"}, "fix the value, or drop the row"),
            ({**learn, "w": -1}, "drop the row"),
            ({**learn, "id": ""}, "send a text"),
            ({"x": {**ROW, "cty": 1}, "y": 1.0}, "did you mean 'city'?"),
            ({"x": {**ROW, "a": "warm"}, "y": 1.0}, "turn text into numbers"),
            ({"rows": [learn] * 4}, "send fewer at once"),
        ):
            answer = client.post("/learn", json=body)
            assert answer.status_code in (413, 422)
            assert remedy in answer.json()["error"]["message"], answer.text
        statuses = [client.post("/learn", json=learn).status_code for _ in range(4)]
        limited = statuses.count(429)
        assert limited
        found = client.get("/metrics").text
        for reason, rows in {
            "bad_target": 2,
            "bad_weight": 1,
            "bad_id": 1,
            "unknown_feature": 1,
            "bad_row": 1,
            "too_large": 1,
            "rate_limit": limited,
        }.items():
            assert f'sapwood_rejected_rows_total{{reason="{reason}"}} {float(rows)}' in found


def test_targets_of_rows_that_are_not_learned_are_checked_too(tmp_path):
    path = saved(tmp_path, 200, "targets")
    with serving(path) as (_, client):
        for y in ({"low": 1.0, "other": 2.0}, 3.0):
            answer = client.post("/labels", json={"labels": [{"id": "nobody's", "y": y}]})
            assert answer.status_code == 422
            assert "send" in answer.json()["error"]["message"]
        answer = client.post("/labels", json={"labels": [{"id": "nobody's", "y": {"low": 1.0}}]})
        assert answer.json()["unknown"] == ["nobody's"]


def test_batches_with_ids_of_lags_around_intervals(tmp_path):
    items = rows_of(6, seed=2)
    with serving(saved(tmp_path, 400, "lags")) as (_, client):
        rows = [{"x": item["x"], "id": str(place)} for place, item in enumerate(items)]
        answer = client.post("/predict?intervals=0.9", json={"rows": rows})
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["intervals"]["0.9"]["upper"]) == 6
        labels = [{"id": str(place), "y": item["y"]} for place, item in enumerate(items)]
        assert client.post("/labels", json={"labels": labels}).json()["learned"] == 6


# -- a model that is replaced while it is served ---------------------------------------------------


def test_a_model_that_others_replace_is_kept(tmp_path):
    path = saved(tmp_path, 500)
    with serving(path, "--checkpoint-every", "0.2s") as (server, client):
        client.post("/learn", json={"rows": rows_of(5)}).raise_for_status()
        until(lambda: sapwood.load(path).summary.rows == 505)
        other = trained(900)
        other.save(path)
        client.post("/learn", json={"rows": rows_of(5)}).raise_for_status()
        until(lambda: sapwood.load(path).summary.rows == 510)
        kept = tmp_path / "model.sapwood.replaced-1"
        assert kept.read_bytes() == other.to_bytes()
        errors = [line for line in server.lines if line["level"] == "error"]
        assert "was replaced by another process" in errors[0]["message"]
        assert "sapwood_replaced_models_total 1.0" in client.get("/metrics").text
        assert server.stop() == 0
    with serving(path) as (_, client):
        assert client.get("/model").json()["rows"] == 510


def test_each_model_that_others_put_there_is_kept(tmp_path):
    path = saved(tmp_path, 100)
    store = Store(path)
    state = store.open()
    for number in (1, 2):
        trained(100 + number).save(path)
        expected = path.read_bytes()
        store.write(Snapshot(state))
        assert (tmp_path / f"model.sapwood.replaced-{number}").read_bytes() == expected
    store.write(Snapshot(state))
    path.unlink()
    store.write(Snapshot(state))
    assert store.replaced == 2
    assert sorted(each.name for each in tmp_path.glob("*.replaced-*"))[-1].endswith("2")
    store.close()


# -- topics ----------------------------------------------------------------------------------------


class Topic:
    """A topic that fails some times before it yields its rows."""

    def __init__(self, stream, failures):
        self._stream, self._failures = stream, failures
        self.name, self.targets, self.sample = stream.name, stream.targets, None
        self.fingerprint = "a topic"
        self.open, self.started = threading.Event(), threading.Event()

    def chunks(self, start, most_rows):
        if self._failures:
            self._failures -= 1
            raise OSError("the broker has gone: secret-address")
        self.started.set()
        assert self.open.wait(PATIENCE)
        yield from self._stream.chunks(None, most_rows)


def followed(path, topic):
    service = Service(Settings(path=path))
    source = TopicFollower(service, lambda model, sample: topic)
    service.start()
    source.start()
    return service, source


def client_of(service):
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(make_app(service)), base_url="http://127.0.0.1"
    )


def test_a_topic_that_cannot_be_read_is_visible_and_tried_again(tmp_path, monkeypatch):
    import asyncio

    async def get(path):
        async with client_of(service) as client:
            return await client.get(path)

    monkeypatch.setattr(follow, "FIRST_RETRY", 0.01)
    items = rows_of(50)
    stream = as_stream([item["x"] for item in items], [item["y"] for item in items])
    topic = Topic(stream, failures=3)
    service, source = followed(saved(tmp_path, 200), topic)
    try:
        assert topic.started.wait(PATIENCE)
        assert source.errors == 3
        answer = asyncio.run(get("/readyz"))
        assert answer.status_code == 503
        assert "topic cannot be read" in answer.text
        assert "secret-address" not in answer.text
        assert asyncio.run(get("/healthz")).status_code == 200
        metrics = asyncio.run(get("/metrics")).text
        assert "sapwood_following 0.0" in metrics
        assert "sapwood_follow_errors_total 3.0" in metrics
        topic.open.set()
        until(lambda: service.rows == 250)
        until(lambda: source.failure is None)
        assert asyncio.run(get("/readyz")).status_code == 200
        assert "sapwood_following 1.0" in asyncio.run(get("/metrics")).text
    finally:
        source.stop()
        service.stop()


def test_a_topic_without_messages_recovers_too(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "FIRST_RETRY", 0.01)
    monkeypatch.setattr(follow, "RECOVERED", 0.05)
    topic = Topic(as_stream([{"a": 1.0}], [1.0]), failures=1)
    service, source = followed(saved(tmp_path, 200), topic)
    try:
        assert topic.started.wait(PATIENCE)
        until(lambda: source.failure is None)
        assert source.errors == 1
    finally:
        topic.open.set()
        source.stop()
        service.stop()


def test_the_targets_of_a_topic_have_to_be_those_of_the_model(tmp_path):
    path = saved(tmp_path, 100, "targets")
    for options in (["--target", "low"], ["--target", "low", "--target", "other"]):
        command = [sys.executable, "-m", "sapwood", "serve", path, "--port", "0"]
        command += ["--follow", "kafka://127.0.0.1:1/rows", *options]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 2
        assert "predicts low, high" in " ".join(done.stderr.split())


def test_rows_of_several_targets_are_followed(tmp_path):
    from kafka_cases import broker, send

    items = target_rows_of(300, seed=6)
    messages = [(0, {**item["x"], **item["y"]}) for item in items]
    messages[7][1]["low"] = None
    path = saved(tmp_path, 100, "targets")
    model = sapwood.load(path)
    rows = [item["x"] for item in items]
    y = [[message["low"], message["high"]] for _, message in messages]
    y = [[float("nan") if each is None else each for each in row] for row in y]
    model.predict_learn_many(rows, y)
    with broker() as (address, _):
        send(address, "rows", messages)
        with serving(path, "--follow", f"kafka://{address}/rows") as (server, client):
            until(lambda: client.get("/model").json()["rows"] == 400)
            assert server.stop() == 0
    assert sapwood.load(path).to_bytes() == model.to_bytes()


def test_labels_of_a_topic_are_followed(tmp_path):
    from kafka_cases import broker, send
    from serve_cases import class_rows_of

    items = class_rows_of(300, seed=6)
    messages = [(0, {**item["x"], "grade": item["y"]}) for item in items]
    messages[3][1]["grade"] = "unheard of"
    messages[4][1]["grade"] = None
    path = saved(tmp_path, 200, "classes")
    with broker() as (address, _):
        send(address, "rows", messages)
        options = ("--follow", f"kafka://{address}/rows", "--target", "grade")
        with serving(path, *options) as (server, client):
            until(lambda: client.get("/model").json()["rows"] == 498)
            found = client.get("/metrics").text
            assert 'sapwood_rejected_rows_total{reason="bad_target"} 1.0' in found
            assert client.get("/model").json()["classes"] == sapwood.load(path).classes
            assert server.stop() == 0
