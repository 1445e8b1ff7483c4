"""Classifiers as a service: labels in, classes and probabilities out, scores of both."""

import io
import json
import math

import pyarrow as pa
import pytest

import sapwood
from sapwood.serve.class_scoring import ClassScoreboard
from sapwood.serve.rows import TargetError, check_classes
from sapwood.serve.target_scores import DECAY
from serve_cases import class_rows_of, comparable, saved, serving, state_of, trained, until

ARROW = "application/vnd.apache.arrow.stream"
MODELS = ["HoeffdingTreeClassifier", "ForestClassifier", "AdaptiveTreeClassifier"]


def posted(client, path, body, status=200):
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.parametrize("kind", MODELS)
def test_predictions_are_those_of_the_classifier(tmp_path, kind):
    model, items = getattr(sapwood, kind)(), class_rows_of(1_500)
    model.learn_many([item["x"] for item in items], [item["y"] for item in items])
    path = tmp_path / "model.sapwood"
    model.save(path)
    rows = [item["x"] for item in class_rows_of(60, seed=7)]
    with serving(path) as (_, client):
        found = posted(client, "/predict", {"rows": [{"x": row} for row in rows]})
        one = posted(client, "/predict", {"x": rows[0]})
        described = client.get("/model").json()
    assert found["classes"] == described["classes"] == model.classes
    assert found["predictions"] == model.predict_many(rows, record=False).tolist()
    expected = model.predict_proba_many(rows, record=False)
    assert found["probabilities"] == expected.tolist()
    assert one["probabilities"] == [found["probabilities"][0]]
    assert (described["task"], described["explains"]) == ("classes", True)


def test_labels_are_learned_and_scored_as_they_were_issued(tmp_path):
    path = saved(tmp_path, 1_500, "classes")
    model, items = trained(1_500, "classes"), class_rows_of(40, seed=3)
    with serving(path) as (server, client):
        first = posted(client, "/predict", {"rows": [{"x": items[0]["x"], "id": "late"}]})
        issued = dict(zip(first["classes"], first["probabilities"][0], strict=True))
        posted(client, "/learn", {"rows": items})
        posted(client, "/learn", items[1])
        found = posted(client, "/labels", {"labels": [{"id": "late", "y": "low"}]})
        assert (found["learned"], found["rows"]) == (1, 1_542)
        until(lambda: client.get("/model").json()["scores"]["rows"] == 42)
        scores = client.get("/model").json()["scores"]
        metrics = client.get("/metrics").text
        assert server.stop() == 0
    model.predict_proba_many([items[0]["x"]], ids=["late"])
    p = model.predict_proba_learn_many([i["x"] for i in items], [i["y"] for i in items])
    shares = [float(row[model.classes.index(i["y"])]) for row, i in zip(p, items, strict=True)]
    right = [model.classes[row.argmax()] == i["y"] for row, i in zip(p, items, strict=True)]
    last = model.predict_proba_one(items[1]["x"])
    model.learn_one(items[1]["x"], items[1]["y"])
    model.learn_one(items[0]["x"], "low", id="late")
    shares += [last[items[1]["y"]], issued["low"]]
    right += [max(last, key=last.get) == items[1]["y"], max(issued, key=issued.get) == "low"]
    weights = [DECAY ** (41 - row) for row in range(42)]
    accuracy = sum(w * ok for w, ok in zip(weights, right, strict=True)) / sum(weights)
    losses = [-math.log(max(share, 1e-6)) for share in shares]
    loss = sum(w * each for w, each in zip(weights, losses, strict=True)) / sum(weights)
    assert scores["errors"]["y"]["accuracy"] == pytest.approx(accuracy)
    assert scores["errors"]["y"]["log_loss"] == pytest.approx(loss)
    assert scores["baselines"]["y"]["majority"]["accuracy"] < accuracy
    assert f'sapwood_accuracy{{target="y"}} {scores["errors"]["y"]["accuracy"]}' in metrics
    assert "sapwood_log_loss{" in metrics
    assert 'sapwood_baseline_accuracy{baseline="majority",target="y"}' in metrics
    assert "sapwood_mae" not in metrics
    assert sapwood.load(path).to_bytes() == model.to_bytes()


def test_wrong_labels_are_rejected_and_change_nothing(tmp_path):
    path = saved(tmp_path, 500, "classes")
    before, row = path.read_bytes(), class_rows_of(1)[0]["x"]
    with serving(path) as (server, client):
        for label, hint in (
            ("hihg", "did you mean 'high'?"),
            ("elsewhere", "--new-classes"),
            (1.5, "use a regressor for numbers"),
            (None, "leave out a row whose label is missing"),
            ({"y": "low"}, "must be a string"),
            ("x" * 2_000, "shorten or hash it"),
        ):
            found = posted(client, "/learn", {"x": row, "y": label}, 422)
            assert hint in found["error"]["message"]
        metrics = client.get("/metrics").text
        assert 'sapwood_rejected_rows_total{reason="bad_target"} 6.0' in metrics
        [why] = posted(client, "/predict?explain=true", {"x": row})["explanations"]
        assert sum(why["probabilities"].values()) == pytest.approx(1.0)
        assert all(f"rating of class {label!r}" in why["text"] for label in why["ratings"])
        assert client.get("/model").json()["rows"] == 500
        server.stop()
    assert path.read_bytes() == before


def test_new_classes_are_learned_if_that_is_allowed(tmp_path):
    path = saved(tmp_path, 0, "classes")
    row = class_rows_of(1)[0]["x"]
    with serving(path, "--new-classes") as (server, client):
        assert posted(client, "/predict", {"x": row})["predictions"] == [None]
        posted(client, "/predict", {"x": row, "id": "first"})
        for label in ("a", 7, True):
            posted(client, "/learn", {"rows": [{"x": row, "y": label}] * 3})
            posted(client, "/predict", {"x": row, "id": f"after {label}"})
        until(lambda: posted(client, "/predict", {"x": row})["classes"] == ["a", 7, True])
        ids = ["first", "after a", "after 7"]
        answer = posted(client, "/labels", {"labels": [{"id": each, "y": 7} for each in ids]})
        assert answer["learned"] == 3
        kept = posted(client, "/predict", {"x": row, "id": "after True"})
        assert len(kept["probabilities"][0]) == 3
        server.kill()
    killed = state_of(path)
    with serving(path, "--new-classes") as (server, client):
        assert client.get("/model").json()["classes"] == ["a", 7, True]
        server.stop()
    again = state_of(path)
    assert killed[1]["model"] == again[1]["model"]
    points = json.loads(again[1]["scores.scoring"])["points"]
    assert points[0][2:] == [-1.0, 0.0, None, None]  # before any class was known


def test_arrow_batches_of_labels(tmp_path):
    path, items = saved(tmp_path, 500, "classes"), class_rows_of(30, seed=4)
    columns = {name: [item["x"][name] for item in items] for name in items[0]["x"]}
    table, sink = pa.table({**columns, "label": [item["y"] for item in items]}), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"content-type": ARROW, "accept": ARROW}
    with serving(path) as (_, client):
        learned = client.post("/learn?target=label", content=sink.getvalue(), headers=headers)
        assert learned.json()["learned"] == 30
        rows = posted(client, "/predict", {"rows": [{"x": item["x"]} for item in items]})
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns))
        answer = client.post("/predict", content=sink.getvalue(), headers=headers)
    found = pa.ipc.open_stream(answer.content).read_all()
    names = [f"probability_{label}" for label in rows["classes"]]
    assert found.column_names == ["prediction", *names]
    assert found["prediction"].to_pylist() == rows["predictions"]


def test_scores_survive_a_checkpoint():
    from sapwood.serve.class_host import host_of
    from sapwood.serve.operations import Operation
    from sapwood.serve.state import ServiceState

    state = ServiceState(host_of(trained(300, "classes")))
    body = json.dumps({"rows": class_rows_of(150, seed=2)}).encode()
    state.apply(Operation("learn", body), 1.0)
    assert isinstance(state.scores, ClassScoreboard)
    header, arrays = state.to_state()
    other = ServiceState.from_state(header, arrays)
    assert comparable(other) == comparable(state)
    for each in (state, other):
        each.apply(Operation("learn", body), 2.0)
    assert comparable(other) == comparable(state)


def test_a_class_of_another_type_is_suggested():
    with pytest.raises(TargetError, match="did you mean '1'"):
        check_classes([1], ["0", "1"])


def test_leaves_of_naive_bayes_do_not_explain(tmp_path):
    model = sapwood.HoeffdingTreeClassifier(leaf="naive_bayes")
    model.learn_many([[0.0], [1.0]] * 20, ["a", "b"] * 20)
    path = tmp_path / "bayes.sapwood"
    model.save(path)
    with serving(path) as (_, client):
        assert client.get("/model").json()["explains"] is False
        found = posted(client, "/predict?explain=true", {"x": {"0": 0.0}}, 422)
        assert "leave explain out" in found["error"]["message"]
