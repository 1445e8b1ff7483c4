"""Learning from a topic next to HTTP: every message once, also after a kill."""

import random

import sapwood
from kafka_cases import broker, rows_of, send, spread
from serve_cases import Server, serving, state_of, until


def model_of(path):
    tree = sapwood.HoeffdingTreeRegressor()
    rows = rows_of(200, seed=9)
    tree.learn_many(
        [{name: row[name] for name in ("a", "b", "city")} for row in rows],
        [row["y"] for row in rows],
    )
    tree.save(path)


def learned(client):
    return client.get("/model").raise_for_status().json()["rows"]


def test_messages_are_learned_once_whatever_happens(tmp_path):
    path = tmp_path / "model.sapwood"
    model_of(path)
    rows, draw = spread(rows_of(3_000)), random.Random(1)
    with broker() as (address, _):
        options = ("--follow", f"kafka://{address}/rows", "--target", "y")
        options += ("--checkpoint-every", "0.3s")
        sent = 0
        for stop in (1_000, 2_000, 3_000):
            send(address, "rows", rows[sent:stop], first_time=1_000 + sent)
            before, sent = sent, stop
            with serving(path, *options) as (server, client):
                # The server is killed while it reads, and the next one resumes where it was.
                some = draw.randrange(before + 1, stop)
                until(lambda some=some, client=client: learned(client) >= 200 + some)
                server.kill()
        with serving(path, *options) as (server, client):
            until(lambda: learned(client) >= 3_200)
            answer = client.post("/learn", json={"x": {"a": 0.5}, "y": 1.0})
            assert answer.json()["rows"] == 3_201
            send(
                address, "rows", [(0, b"junk"), (1, {"a": "hunter2", "y": 1.0}), *rows[:10]], 9_000
            )
            until(lambda: learned(client) >= 3_211)
            assert server.stop() == 0
        assert any(line["event"] == "following" for line in server.lines)
        bad = [line for line in server.lines if line["event"] == "bad_rows"]
        assert sum(line["rows"] for line in bad) == 2
        assert all(line["reason"] and line["place"] for line in bad)
        assert "hunter" not in "".join(server.text)  # no value of a row is logged
        header, _ = state_of(path)
        assert header["rows"] == 3_211
        assert sum(v for k, v in header["position"]["position"].items() if k[0] == "p") == 3_012


def test_another_topic_is_noticed(tmp_path):
    path = tmp_path / "model.sapwood"
    model_of(path)
    with broker() as (address, _):
        for topic in ("rows", "other"):
            send(address, topic, spread(rows_of(50)))
        with serving(path, "--follow", f"kafka://{address}/rows", "--target", "y") as (
            server,
            client,
        ):
            until(lambda: learned(client) >= 250)
            server.stop()
        server = Server(path, "--follow", f"kafka://{address}/other", "--target", "y")
        assert server.wait() == 2
        assert "follow the same topic" in "".join(server.text).replace("\n", " ")
