"""The service over HTTP: what it answers, what it rejects, and what survives."""

import io
import json
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pytest

import sapwood
from cases import PATIENCE
from sapwood.lags import LaggedModel, Lags
from serve_cases import Server, rows_of, saved, serving, state_of, trained, until

ARROW = "application/vnd.apache.arrow.stream"
TOKEN, LEARN_TOKEN = "read-0123456789abcdef", "learn-0123456789abcdef"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of a model with prediction intervals, and a client of it."""
    path = saved(tmp_path_factory.mktemp("served"), 2_000, "intervals")
    with serving(path) as found:
        yield found


def posted(client, path, body, status=200, **more):
    answer = client.post(path, json=body, **more)
    assert answer.status_code == status, answer.text
    return answer.json()


def message(answer):
    found = answer.json() if isinstance(answer, httpx.Response) else answer
    return found["error"]["message"]


# -- predicting ------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_model(tmp_path):
    path = saved(tmp_path, 2_000, "intervals")
    model = sapwood.load(path)
    items = rows_of(50, seed=7)
    rows = [item["x"] for item in items]
    values, bounds = model.predict_intervals_many(rows)
    with serving(path) as (_, client):
        many = posted(client, "/predict?intervals=true", {"rows": [{"x": row} for row in rows]})
        assert many["predictions"] == values.tolist()
        assert many["intervals"]["0.9"]["lower"] == bounds[:, 1, 0].tolist()
        assert many["intervals"]["0.5"]["upper"] == bounds[:, 0, 1].tolist()
        assert many["model_rows"] == 2_000
        for row, value in zip(rows[:5], values, strict=False):
            assert posted(client, "/predict", {"x": row})["predictions"] == [value]
        one = posted(client, "/predict?intervals=0.9&explain=true", {"x": rows[0]})
        assert one["explanations"][0]["prediction"] == pytest.approx(values[0])
        assert "root" in one["explanations"][0]["text"]


def test_arrow_batches_are_predicted_and_learned(served):
    _, client = served
    items = rows_of(40, seed=3)
    columns = {name: [item["x"][name] for item in items] for name in items[0]["x"]}
    expected = posted(client, "/predict?intervals=0.9", {"rows": [{"x": i["x"]} for i in items]})

    def stream(**more):
        table, sink = pa.table({**columns, **more}), io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=15)
        return sink.getvalue()

    headers = {"content-type": ARROW, "accept": ARROW}
    answer = client.post("/predict?intervals=0.9", content=stream(), headers=headers)
    found = pa.ipc.open_stream(answer.content).read_all()
    assert found.column_names == ["prediction", "lower_0.9", "upper_0.9"]
    assert found["prediction"].to_pylist() == expected["predictions"]
    y, ids = [item["y"] for item in items], [f"arrow-{place}" for place in range(40)]
    answer = client.post(
        "/learn?target=label&id=key",
        content=stream(label=y, key=ids),
        headers={"content-type": ARROW},
    )
    assert answer.json()["learned"] == 40
    again = client.post(
        "/learn?target=label&id=key",
        content=stream(label=y, key=ids),
        headers={"content-type": ARROW},
    )
    assert (again.json()["learned"], again.json()["duplicates"]) == (0, 40)
    for wrong in (b"", b"junk", stream()[:100], stream(label=y)):
        answer = client.post("/learn", content=wrong, headers={"content-type": ARROW})
        assert answer.status_code in (400, 422), answer.text


def test_labels_are_scored_against_the_prediction_that_was_issued(tmp_path):
    path = saved(tmp_path, 2_000)
    with serving(path) as (_, client):
        row = {"a": 0.5, "b": 0.5, "city": "Oslo"}
        issued = posted(client, "/predict", {"x": row, "id": "late"})["predictions"][0]
        again = posted(client, "/predict", {"x": row, "id": "late"})["predictions"][0]
        assert again == issued
        posted(client, "/learn", {"rows": [{"x": row, "y": 99.0}] * 50})
        assert posted(client, "/predict", {"x": row})["predictions"][0] != issued
        found = posted(client, "/labels", {"labels": [{"id": "late", "y": 5.0}]})
        assert found["learned"] == 1
        found = posted(
            client, "/labels", {"labels": [{"id": "late", "y": 5.0}, {"id": "?", "y": 1}]}
        )
        assert (found["learned"], found["duplicates"], found["unknown"]) == (0, ["late"], ["?"])
        answer = client.post("/predict", json={"x": row, "id": "late"})
        assert answer.status_code == 409
    header, arrays = state_of(path)
    points = json.loads(arrays["scores.scoring"])["points"]
    assert points[-1][2:4] == [issued, 5.0]
    assert header["rows"] == 2_051


def test_models_with_lags_and_several_targets_are_served(tmp_path):
    lagged = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 2], target="y"))
    several = sapwood.HoeffdingTreeRegressor()
    items = rows_of(300)
    for place, item in enumerate(items):
        lagged.learn_one(item["x"], float(place % 7))
        several.learn_one(item["x"], {"low": item["y"] - 1, "high": item["y"] + 1})
    rows = [item["x"] for item in items[:3]]
    for name, model in {"lagged": lagged, "several": several}.items():
        path = tmp_path / f"{name}.sapwood"
        model.save(path)
        twin = sapwood.load(path)
        with serving(path) as (_, client):
            found = posted(client, "/predict", {"rows": [{"x": row} for row in rows]})
            expected = twin.predict_many(rows)
            if name == "several":
                expected = [dict(zip(("low", "high"), row, strict=True)) for row in expected]
            assert found["predictions"] == list(expected)
            y = 3.0 if name == "lagged" else {"low": 1.0, "high": 2.0}
            assert posted(client, "/learn", {"x": rows[0], "y": y})["learned"] == 1
            assert posted(client, "/learn", {"rows": [{"x": row, "y": y} for row in rows]})
            posted(client, "/predict?explain=true", {"x": rows[0], "id": "i"})
            assert posted(client, "/labels", {"id": "i", "y": y})["learned"] == 1
            assert client.get("/model/tree").json()["nodes"]
            names = ("low", "high") if name == "several" else ("y",)
            for part in ("sapwood_mae{", 'sapwood_baseline_mae{baseline="last",'):
                for each in names:
                    label = f'{part}target="{each}"'
                    until(lambda label=label, client=client: label in client.get("/metrics").text)


def test_a_model_of_arrays_is_served_by_the_numbers_of_columns(tmp_path):
    model = sapwood.HoeffdingTreeRegressor()
    X = np.random.default_rng(1).random((500, 2))
    model.learn_many(X, X[:, 0] * 3)
    model.save(tmp_path / "model.sapwood")
    with serving(tmp_path / "model.sapwood") as (_, client):
        found = posted(client, "/predict", {"x": {"0": X[0, 0], "1": X[0, 1]}})
        assert found["predictions"] == [model.predict_one({0: X[0, 0], 1: X[0, 1]})]
        assert posted(client, "/learn", {"x": {"0": 0.5, "1": 0.5}, "y": 1.5})["learned"] == 1


# -- what is rejected ------------------------------------------------------------------------------

GOOD = {"x": {"a": 0.5}, "y": 1.0}
BAD_BODIES = {
    "empty": (b"", 400),
    "not JSON": (b"{", 400),
    "NaN": (b'{"x": {"a": NaN}, "y": 1}', 400),
    "Infinity": (b'{"x": {"a": 1}, "y": -Infinity}', 400),
    "not UTF-8": (b'{"x": {"a": "\xff"}, "y": 1}', 400),
    "deep": (b'{"x":' * 100_000, 400),
    "a list": (b"[1]", 422),
    "no rows": (b'{"rows": []}', 422),
    "rows of numbers": (b'{"rows": [1]}', 422),
    "an unknown key": (b'{"x": {"a": 1}, "y": 1, "z": 1}', 422),
    "no target": (b'{"x": {"a": 1}}', 422),
    "null target": (b'{"x": {"a": 1}, "y": null}', 422),
    "text target": (b'{"x": {"a": 1}, "y": "1"}', 422),
    "huge target": (b'{"x": {"a": 1}, "y": 1e300}', 422),
    "endless target": (b'{"x": {"a": 1}, "y": 1' + b"0" * 4_000 + b"}", 422),
    "endless number": (b'{"x": {"a": 1' + b"0" * 4_000 + b'}, "y": 1}', 422),
    "too many digits": (b'{"x": {"a": 1' + b"0" * 5_000 + b'}, "y": 1}', 400),
    "nested value": (b'{"x": {"a": [1]}, "y": 1}', 422),
    "text for a number": (b'{"x": {"a": "warm"}, "y": 1}', 422),
    "unknown feature": (b'{"x": {"aa": 1}, "y": 1}', 422),
    "no features": (b'{"x": {}, "y": 1}', 422),
    "weight": (b'{"x": {"a": 1}, "y": 1, "w": 0}', 422),
    "number as id": (b'{"x": {"a": 1}, "y": 1, "id": 5}', 422),
    "half a letter": (b'{"x": {"a": 1}, "y": 1, "id": "\\ud800"}', 422),
    "one bad of two": (b'{"rows": [{"x": {"a": 1}, "y": 1}, {"x": {"a": "b"}, "y": 1}]}', 422),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_rows_are_rejected_and_change_nothing(served, name):
    server, client = served
    body, status = BAD_BODIES[name]
    before = client.get("/model").json()
    answer = client.post("/learn", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    assert set(answer.json()["error"]) == {"status", "reason", "message", "request_id"}
    assert "Traceback" not in answer.text
    assert str(Path(sapwood.__file__).parent) not in answer.text
    assert client.get("/model").json() == before
    assert server.process.poll() is None


def test_messages_of_bad_rows_are_those_of_the_model(served):
    _, client = served
    model = trained(2_000, "intervals")
    with pytest.raises(ValueError, match="must be a number") as raised:
        model.learn_one({"a": "warm"}, 1.0)
    answer = client.post("/learn", json={"x": {"a": "warm"}, "y": 1.0})
    assert message(answer) == str(raised.value)
    answer = client.post("/predict", json={"x": {"cty": "Oslo"}})
    assert message(answer).endswith("which the model does not know; did you mean 'city'?")


def test_other_requests_are_rejected(served):
    _, client = served
    plain = {"content-type": "text/plain"}
    assert client.post("/learn", content=json.dumps(GOOD), headers=plain).status_code == 415
    zipped = {"content-type": "application/json", "content-encoding": "gzip"}
    assert client.post("/learn", content=b"x", headers=zipped).status_code == 415
    assert client.get("/learn").status_code == 405
    assert client.get("/learn").headers["allow"] == "POST"
    assert client.get("/nothing").status_code == 404
    assert client.head("/events").headers["content-type"].startswith("text/event-stream")
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e%2fapp.py").status_code == 404
    assert client.get("/model/tree?member=7").status_code == 404
    assert client.post("/predict?intervals=0.8", json={"x": {"a": 1}}).status_code == 422
    for text in ("", "true,", "0.9,x"):
        answer = client.post(f"/predict?intervals={text}", json={"x": {"a": 1}})
        assert answer.status_code == 422
    assert client.post("/predict?explain=maybe", json={"x": {"a": 1}}).status_code == 422
    foreign = client.post("/learn", json=GOOD, headers={"host": "evil.example"})
    assert foreign.status_code == 421


def test_answers_have_ids_of_requests_and_logs_have_no_secret(served):
    server, client = served
    answer = client.get("/model?password=hunter2", headers={"x-request-id": "my.request-1"})
    assert answer.headers["x-request-id"] == "my.request-1"
    odd = client.get("/model", headers={"x-request-id": 'a"b c'})
    assert re.fullmatch(r"[0-9a-f]{16}", odd.headers["x-request-id"])
    client.get("/model", headers={"authorization": "Bearer hunter3"})
    [line] = until(
        lambda: [each for each in server.lines if each.get("request_id") == "my.request-1"]
    )
    assert (line["path"], line["status"], line["method"]) == ("/model", 200, "GET")
    assert "hunter" not in "".join(server.text)


def test_metrics_count_rows_rejections_and_errors(tmp_path):
    from prometheus_client.parser import text_string_to_metric_families as families

    with serving(saved(tmp_path, 2_000, "intervals")) as (_, client):
        posted(client, "/learn", {"rows": rows_of(30)})
        posted(client, "/predict", {"rows": [{"x": {"a": 0.1}, "id": f"{i}"} for i in range(4)]})
        posted(client, "/labels", {"id": "1", "y": 3.0})
        client.post("/learn", json={"x": {"a": "b"}, "y": 1})

        def found():
            text = client.get("/metrics").text
            samples = [sample for family in families(text) for sample in family.samples]
            return {(each.name, *sorted(each.labels.values())): each.value for each in samples}

        until(lambda: found()["sapwood_pending_labels",] == 3)
        now = found()
        assert now["sapwood_rows_total", "learn"] == 30
        assert now["sapwood_rows_total", "predict"] == 4
        assert now["sapwood_rows_total", "labels"] == 1
        assert now["sapwood_rejected_rows_total", "bad_row"] == 1
        assert now["sapwood_rejected_requests_total", "bad_row"] == 1
        assert now["sapwood_requests_total", "/learn", "422"] == 1 or (
            now["sapwood_requests_total", "422", "/learn"] == 1
        )
        assert now["sapwood_model_rows",] == 2_031
        assert 0 < now["sapwood_mae", "y"] < 2
        assert 0 <= now["sapwood_coverage", "0.9", "y"] <= 1
        assert now["sapwood_checkpoint_age_seconds",] >= 0
        assert now["sapwood_request_seconds_count", "/learn"] == 2


# -- limits ----------------------------------------------------------------------------------------


def test_sizes_rates_and_waiting_labels_are_bounded(tmp_path):
    options = ["--max-body", "20kB", "--max-rows", "50", "--max-pending", "3"]
    with serving(saved(tmp_path), *options, "--max-learn-rate", "40") as (_, client):
        big = {"rows": [{"x": {"a": 1.0}}] * 51}
        assert client.post("/predict", json=big).status_code == 413
        long = b'{"x": {"a": 1}}' + b" " * 30_000
        headers = {"content-type": "application/json"}
        assert client.post("/predict", content=long, headers=headers).status_code == 413
        parts = (long[place : place + 1_000] for place in range(0, len(long), 1_000))
        with suppress(httpx.HTTPError):  # if the connection is closed before all was sent
            assert client.post("/predict", content=parts, headers=headers).status_code == 413
        for place in range(5):
            posted(client, "/predict", {"x": {"a": 1.0}, "id": f"{place}"})
        found = posted(client, "/labels", {"labels": [{"id": f"{i}", "y": 1.0} for i in range(5)]})
        assert found["unknown"] == ["0", "1"]
        rows = {"rows": [{"x": {"a": 1.0}, "y": 1.0}] * 45}
        answers = [client.post("/learn", json=rows) for _ in range(4)]
        late = [answer for answer in answers if answer.status_code == 429]
        assert late
        assert int(late[0].headers["retry-after"]) >= 1


def test_slow_clients_are_left(tmp_path):
    program = (
        "-c",
        "import sapwood.serve.server as server, sapwood.serve.settings as settings\n"
        "import sapwood.cli\n"
        "server.HEAD_SECONDS = 0.6\n"
        "made = settings.Settings.__init__\n"
        "made.__defaults__ = tuple(0.6 if each == 30.0 else each for each in made.__defaults__)\n"
        "sapwood.cli.main()",
    )
    with serving(saved(tmp_path), program=program) as (server, client):
        address = httpx.URL(server.url)

        def answer_to(*parts):
            with closing(socket.create_connection((address.host, address.port), PATIENCE)) as link:
                found = b""
                with suppress(ConnectionError):  # if it is closed while something is sent
                    for part in parts:
                        link.sendall(part)
                    while part := link.recv(4096):
                        found += part
                return found

        assert answer_to() == b""
        assert answer_to(b"POST /learn HTTP/1.1\r\nHost: local") == b""
        head = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        late = answer_to(head + b"Content-Length: 50\r\n\r\n", b'{"x"')
        assert late.startswith(b"HTTP/1.1 408")
        assert answer_to(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000)[:12] in (b"", b"HTTP/1.1 400")
        assert answer_to(b"\x00\xff\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert client.get("/healthz").status_code == 200


def test_a_disk_that_is_full_is_503_and_recovers(tmp_path):
    limits = (
        "-c",
        "import resource, sapwood.cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))\n"
        "sapwood.cli.main()",
    )
    path = saved(tmp_path, 0)
    with serving(path, "--no-monitor", program=limits) as (server, client):
        learned = 0
        while True:
            answer = client.post("/learn", json={"rows": rows_of(40, seed=learned)})
            if answer.status_code != 200:
                break
            learned += 40
        assert answer.status_code == 503
        assert message(answer) == "the log cannot be written (File too large)"
        assert answer.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200
        assert len(posted(client, "/predict", {"x": {"a": 0.5}})["predictions"]) == 1
        wide = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, wide)
        assert posted(client, "/learn", GOOD)["rows"] == learned + 1
        server.kill()
    assert state_of(path, monitor=False)[0]["rows"] == learned + 1


# -- security --------------------------------------------------------------------------------------


def test_tokens_are_required(tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    env = {"SAPWOOD_LEARN_TOKEN": LEARN_TOKEN}
    path = saved(tmp_path)
    with serving(path, "--token-file", tmp_path / "token", env=env) as (server, client):
        read = {"authorization": f"Bearer {TOKEN}"}
        learn = {"authorization": f"Bearer {LEARN_TOKEN}"}
        for route in ("/model", "/metrics", "/openapi.json", "/events", "/nothing"):
            answer = client.get(route)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert client.get(route, headers={"authorization": TOKEN}).status_code == 401
        for route in ("/", "/healthz", "/readyz", "/static/page.js"):
            assert client.get(route).status_code == 200
        assert client.get("/model", headers=read).status_code == 200
        assert client.post("/predict", json={"x": {"a": 1}}, headers=read).status_code == 200
        assert client.post("/predict", json={"x": {"a": 1}}, headers=learn).status_code == 200
        assert client.post("/learn", json=GOOD, headers=read).status_code == 401
        assert client.post("/learn", json=GOOD, headers=learn).status_code == 200
        assert client.get("/openapi.json", headers=read).json()["security"] == [{"token": []}]
        text = "".join(server.text)
        assert TOKEN not in text
        assert LEARN_TOKEN not in text


@pytest.mark.parametrize(
    ("options", "env", "words"),
    [
        (["--host", "0.0.0.0"], {}, "can be reached from other machines"),
        ([], {"SAPWOOD_TOKEN": "short"}, "a token of at least 16"),
        (["--checkpoint-every", "10"], {}, "a time is expected"),
        (["--follow", "topic"], {}, "kafka://HOST:PORT/TOPIC is expected"),
        (["--follow", "kafka://a:1/b", "--read-only"], {}, "leave one of them out"),
        (["--max-body", "large"], {}, "bytes are expected"),
    ],
)
def test_wrong_options_are_told_in_one_line(tmp_path, options, env, words):
    path = saved(tmp_path, 100)
    server = Server(path, *options, env=env)
    assert server.url is None
    assert server.wait() == 2
    assert words in "".join(server.text)
    assert "Traceback" not in "".join(server.text)


def test_what_is_no_model_is_told(tmp_path):
    from sapwood.drift import Monitor

    Monitor().save(tmp_path / "monitor")
    (tmp_path / "junk").write_bytes(b"junk")
    for name, words in {
        "monitor": "a Monitor cannot be served",
        "junk": "junk",
        "none": "no such file",
    }.items():
        server = Server(tmp_path / name)
        assert server.wait() == 2
        assert words in "".join(server.text).replace("\n", " ")


def test_learning_can_be_switched_off(tmp_path):
    with serving(saved(tmp_path), "--no-learn") as (_, client):
        assert client.post("/learn", json=GOOD).status_code == 403
        assert client.post("/labels", json={"id": "a", "y": 1}).status_code == 403
        assert client.post("/predict", json={"x": {"a": 1}, "id": "a"}).status_code == 403
        assert len(posted(client, "/predict", {"x": {"a": 1}})["predictions"]) == 1
        assert "/learn" not in client.get("/openapi.json").json()["paths"]


# -- processes -------------------------------------------------------------------------------------


def test_a_second_process_reads_the_model_and_reloads_it(tmp_path):
    path = saved(tmp_path, 300)
    row = {"a": 0.5, "b": 0.5, "city": "Oslo"}
    with serving(path) as (writer, client), serving(path, "--read-only") as (_, reader):
        rival = Server(path)
        assert rival.wait() == 2
        assert "is served by another process" in "".join(rival.text).replace("\n", " ")
        before = posted(reader, "/predict", {"x": row})
        assert before == posted(client, "/predict", {"x": row})
        assert reader.post("/learn", json=GOOD).status_code == 403
        posted(client, "/learn", {"rows": [{"x": row, "y": 50.0}] * 100})
        after = posted(client, "/predict", {"x": row})
        assert after["predictions"] != before["predictions"]
        assert writer.stop() == 0  # which writes a checkpoint
        until(lambda: posted(reader, "/predict", {"x": row}) == after)
        path.write_bytes(b"junk")
        time.sleep(0)  # the reader keeps its model whatever it finds
        until(lambda: posted(reader, "/predict", {"x": row}) == after)
        assert reader.get("/readyz").status_code == 200


def test_a_server_that_is_terminated_does_what_it_has_accepted(tmp_path):
    path = saved(tmp_path, 100)
    answers, started = [], threading.Event()
    with serving(path) as (server, _):

        def send(place):
            with server.client() as client:
                for number in range(1_000):
                    rows = rows_of(20, seed=1_000 * place + number)
                    try:
                        answers.append(client.post("/learn", json={"rows": rows}))
                    except httpx.HTTPError:
                        return
                    started.set()

        threads = [threading.Thread(target=send, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        assert started.wait(PATIENCE)
        assert server.stop() == 0
        for thread in threads:
            thread.join()
    learned = sum(20 for answer in answers if answer.status_code == 200)
    assert learned > 0
    assert {answer.status_code for answer in answers} <= {200, 503}
    header, _ = state_of(path)
    assert learned + 100 <= header["rows"] <= learned + 100 + 4 * 20
    assert sapwood.load(path).summary.rows == header["rows"]  # the last checkpoint has all


def test_the_client_of_the_documentation_works(tmp_path):
    page = Path(__file__).resolve()
    while not (page / "docs").is_dir():
        page = page.parent
    text = (page / "docs" / "howto" / "serving.md").read_text(encoding="utf-8")
    [program] = re.findall(r"```python\n(import httpx.*?)```", text, re.DOTALL)
    assert len(program.strip().splitlines()) <= 20
    with serving(saved(tmp_path)) as (server, client):
        program = program.replace("http://127.0.0.1:8080", server.url)
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert client.get("/model").json()["rows"] > 2_000


def test_times_are_sent_as_they_stood_in_the_file(tmp_path):
    start = datetime(2024, 1, 1, tzinfo=UTC)
    moments = [start + timedelta(hours=hour) for hour in range(600)]
    forms = {"%d.%m.%Y %H:%M": "%d.%m.%Y %H:%M", None: "%Y-%m-%dT%H:%M"}
    for number, (format, form) in enumerate(forms.items()):
        file, path = tmp_path / "rows.csv", tmp_path / f"{number}.sapwood"
        lines = [f"{each.strftime(form)},{each.hour + 1.5}" for each in moments]
        file.write_text("\n".join(["sold,y", *lines]), encoding="utf-8")
        command = [sys.executable, "-m", "sapwood", "train", file, "-t", "y", "--save", path]
        subprocess.run([*command, "--quiet"], check=True, timeout=PATIENCE)
        model = sapwood.load(path)
        assert dict(model.schema.formats) == ({} if format is None else {"sold": format})
        moment = moments[-1] + timedelta(hours=5)
        row = {"sold": moment.timestamp(), "sold.hour": float(moment.hour)}
        season = np.cos(2 * np.pi / 365.25 * (moment.timetuple().tm_yday - 1))
        row |= {"sold.weekday": float(moment.weekday()), "sold.season": float(season)}
        expected = model.predict_one({name: row[name] for name in row if name in model.features})
        with serving(path) as (_, client):
            for value in (moment.strftime(form), moment.timestamp()):
                found = posted(client, "/predict", {"x": {"sold": value}})["predictions"][0]
                assert found == pytest.approx(expected)
            assert posted(client, "/learn", {"x": {"sold": moment.strftime(form)}, "y": 3.0})
            answer = client.post("/learn", json={"x": {"sold": "yesterday"}, "y": 3.0})
            assert answer.status_code == 422
            assert message(answer).startswith("x['sold'] = 'yesterday'")
