"""The command line on topics of Kafka: every message is learned once, whatever happens."""

import itertools
import json
import random
import signal

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

import sapwood
from cases import PATIENCE
from cli_cases import assert_fails, invoke, read_csv, run, start, stop, wait_until
from kafka_cases import PARTITIONS, broker, rows_of, send, spread
from sapwood.evaluate.checkpoint import KIND as CHECKPOINT
from sapwood.storage import container
from sapwood.streams import kafka_topic

NUMBERS = itertools.count()
KILLS = pytest.mark.parametrize(
    ("kills", "rows"), [(2, 3_000), pytest.param(10, 12_000, marks=pytest.mark.long)]
)


@pytest.fixture(scope="module")
def address():
    with broker() as (address, _):
        yield address


@pytest.fixture
def url(address):
    """A topic that is there as soon as something is sent to it."""
    return f"kafka://{address}/cli-{next(NUMBERS)}"


def fill(url, messages, **times):
    address, _, topic = url.removeprefix("kafka://").partition("/")
    send(address, topic, messages, **times)


def rows_in(checkpoint, count="rows_read"):
    """How many rows are behind the newest checkpoint that is whole, 0 if there is none."""
    for path in (checkpoint, checkpoint.with_name(f"{checkpoint.name}.previous")):
        try:
            header, _ = container.read(str(path), CHECKPOINT)
        except FileNotFoundError:
            continue
        return header["run"][count]
    return 0


def values_of(url):
    """The messages of a topic, each with its key."""
    address, _, topic = url.removeprefix("kafka://").partition("/")
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "tests", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    found, ended = [], 0
    while ended < PARTITIONS:
        message = consumer.poll(PATIENCE)
        if message.error():
            ended += 1
        else:
            found.append((message.key(), json.loads(message.value())))
    consumer.close()
    return found


def with_faults(rows):
    """Messages, some of which are tombstones, no JSON, or have no target."""
    sent = spread(rows)
    for place in range(300, len(sent), 400):
        partition, row = sent[place]
        sent[place] = [(partition, None), (partition, b"{"), (partition, {**row, "y": None})][
            place // 400 % 3
        ]
    return sent


# -- every message once ----------------------------------------------------------------------------

OUTPUTS = ("--predictions", "predictions.csv", "--bad-rows", "bad.csv", "--on-bad-row", "skip")


@KILLS
def test_every_message_is_learned_once_however_often_a_run_is_killed(url, tmp_path, kills, rows):
    sent = with_faults(rows_of(rows))
    fill(url, sent)
    tombstones = sum(value is None for _, value in sent)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    command = ("evaluate", url, "-t", "y", *OUTPUTS, "--save", "model", "--json")
    expected = run(*command, "--until-end", cwd=whole)
    assert expected.code == 0, expected.stderr
    command += ("--checkpoint", "C", "--every", "100")
    checkpoint, seen, draw = killed / "C", [], random.Random(3)
    for _ in range(kills):
        process = start(*command, cwd=killed)  # it never ends, as the topic is followed
        # On a machine that lets it come to the end, there is nothing more to wait for.
        enough = min(rows_in(checkpoint) + draw.randint(1, 800), rows - tombstones - 100)
        wait_until(lambda least=enough: rows_in(checkpoint) >= least, process)
        assert stop(process, signal.SIGKILL).code == -signal.SIGKILL
        seen.append(rows_in(checkpoint))
    assert seen == sorted(seen)
    found = run(*command, "--until-end", cwd=killed)
    assert found.code == 0, found.stderr
    assert found.json() == expected.json()
    told = found.json()["rows"]
    assert told["read"] == told["learned"] + told["refused"] + told["without_target"]
    for name in ("model", "predictions.csv", "bad.csv"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    places = [(row["partition"], row["offset"]) for row in read_csv(killed / "predictions.csv")]
    bad = {tuple(row["place"].split(", ")) for row in read_csv(killed / "bad.csv")}
    assert len(places) == len(set(places)) == told["learned"] + told["without_target"]
    assert len(places) + len(bad) + tombstones == rows


def test_an_interrupted_run_says_how_to_go_on_and_ends_with_what_is_there(url, tmp_path):
    fill(url, spread(rows_of(2_000)))
    command = ("train", url, "-t", "y", "--save", "model", "--checkpoint", "C", "--every", "500")
    process = start(*command, cwd=tmp_path)
    assert wait_until(lambda: rows_in(tmp_path / "C") >= 1_500, process)
    ended = stop(process, signal.SIGINT)
    assert ended.code == 130
    assert " rows: the same command resumes there" in ended.stderr
    assert not (tmp_path / "model").exists()
    fill(url, spread(rows_of(500, seed=5)), first_time=9_000)
    assert run(*command, "--until-end", cwd=tmp_path).code == 0
    model = sapwood.load(tmp_path / "model")
    fill(f"{url}-again", [*spread(rows_of(2_000)), *spread(rows_of(500, seed=5))])
    assert (
        invoke("train", f"{url}-again", "-t", "y", "--until-end", "--save", tmp_path / "b").code
        == 0
    )
    assert model.to_bytes() == (tmp_path / "b").read_bytes()


def test_several_targets_are_learned_once_although_a_run_is_killed(url, tmp_path):
    rows = rows_of(1_500)
    for place, row in enumerate(rows):
        row["z"] = None if place % 7 == 3 else round(10.0 - 2.0 * row["y"] + row["a"], 4)
        row["y"] = None if place % 11 == 5 else row["y"]
    fill(url, spread(rows))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    command = ("evaluate", url, "-t", "y", "-t", "z", "--predictions", "p.csv", "--save", "model")
    expected = run(*command, "--until-end", "--json", cwd=whole)
    assert expected.code == 0, expected.stderr
    assert expected.json()["rows"]["read"] == 1_500
    command += ("--json", "--checkpoint", "C", "--every", "100")
    process = start(*command, cwd=killed)
    assert wait_until(lambda: rows_in(killed / "C") >= 500, process)
    assert stop(process, signal.SIGKILL).code == -signal.SIGKILL
    found = run(*command, "--until-end", cwd=killed)
    assert found.code == 0, found.stderr
    assert found.json() == expected.json()
    assert set(found.json()["targets"]) == {"y", "z"}
    for name in ("model", "p.csv"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    places = [(row["partition"], row["offset"]) for row in read_csv(killed / "p.csv")]
    assert len(places) == len(set(places)) == 1_500


def test_a_run_goes_on_although_its_first_messages_are_removed_and_stops_if_unread_ones_are(
    url, tmp_path
):
    padded = [json.dumps(row).encode()[:-1] + b" " * 20_000 + b"}" for row in rows_of(400)]
    fill(url, [(0, each) for each in padded[:100]])
    checkpoint = ("--checkpoint", tmp_path / "C", "--until-end", "--json")
    assert invoke("evaluate", url, "-t", "y", *checkpoint).json()["rows"]["learned"] == 100
    fill(url, [(0, each) for each in padded[100:300]])
    # The first messages are gone now, and what is left has other keys.
    fill(url, [(0, {"a": 1.0, "new": 2.0, "y": 1.0})], first_time=9_000)
    ended = invoke("evaluate", url, "-t", "y", *checkpoint, "--on-bad-row", "error")
    assert_fails(ended, f"{url}, partition 0, offset 300, column 'new': unknown column")
    fill(url, [(0, each) for each in padded * 2], first_time=10_000)
    ended = invoke("evaluate", url, "-t", "y", *checkpoint)
    assert_fails(ended, "partition 0: offset 100 is not there any more", "another checkpoint")


def test_labels_may_come_later_in_the_topic(url, tmp_path):
    rows = rows_of(300)
    plain = [{"order": f"o{place}", **row} for place, row in enumerate(rows)]
    unlabelled = [(place % 4, {**row, "y": None}) for place, row in enumerate(plain)]
    labels = [
        (place % 4, {"order": row["order"], "y": row["y"]}) for place, row in enumerate(plain)
    ]
    fill(url, [*unlabelled, *labels])
    found = invoke("evaluate", url, "-t", "y", "--id", "order", "--until-end", "--json").json()
    assert found["rows"]["labels_joined"] == found["rows"]["learned"] == 300
    assert found["rows"]["read"] == 600


def test_faults_of_a_topic_are_told_in_one_line(address, url, tmp_path, monkeypatch):
    fill(url, spread(rows_of(20)))
    assert_fails(invoke("evaluate", f"{url}-none", "-t", "y"), "there is no topic 'cli-")
    assert_fails(invoke("evaluate", url, "--until-end"), "perhaps -t y? Columns are a, b, city, y")
    assert_fails(invoke("evaluate", "a.csv", url, "-t", "y"), "cannot be one of several files")
    assert_fails(invoke("compare", url, "-t", "y"), "so save it to a file of JSON lines")
    assert_fails(
        invoke("evaluate", "mv", "--until-end"), "--until-end is for files, and mv is comp"
    )
    monkeypatch.setattr(kafka_topic, "FIRST_PATIENCE", 0.2)
    monkeypatch.setattr(kafka_topic, "ASKED_FOR", 0.1)
    ended = invoke("evaluate", "kafka://127.0.0.1:1/a", "-t", "y")
    assert ended.code == 2
    assert "no broker has answered for 0.2 seconds" in ended.stderr
    checkpoint = ("--checkpoint", tmp_path / "C", "--until-end", "-q")
    assert invoke("evaluate", url, "-t", "y", *checkpoint).code == 0
    fill(f"{url}-other", spread(rows_of(20)))
    ended = invoke("evaluate", f"{url}-other", "-t", "y", *checkpoint)
    assert_fails(ended, "belongs to another run, whose stream differed")


# -- predictions -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    tree = sapwood.HoeffdingTreeRegressor()
    rows = rows_of(2_000)
    tree.learn_many(
        {name: [row[name] for row in rows] for name in ("a", "b", "city")},
        [row["y"] for row in rows],
    )
    tree.save(path)
    return path


def test_predictions_go_to_a_topic_with_the_places_of_their_messages(url, model, tmp_path):
    rows = [{"order": f"o{place}", **row} for place, row in enumerate(rows_of(200, seed=9))]
    sent = spread(rows)
    sent[50] = (sent[50][0], b"no JSON")
    fill(url, sent)
    command = ("predict", model, url, "--until-end", "--on-bad-row", "skip", "--id", "order")
    ended = invoke(*command, "--to", f"{url}-said")
    assert (ended.code, ended.stdout) == (0, "")
    assert ended.stderr == "rows: 200 read, 199 predicted, 1 rejected\n"
    tree, counts = sapwood.load(model), [0] * PARTITIONS
    expected = {}
    for (partition, value), row in zip(sent, rows, strict=True):
        place = {"partition": partition, "offset": counts[partition]}
        counts[partition] += 1
        if isinstance(value, dict):
            told = {"id": {"order": row["order"]}, "prediction": tree.predict_one(features(row))}
            expected[f'["{row["order"]}"]'.encode()] = {**place, **told}
    found = values_of(f"{url}-said")
    assert len(found) == 199
    assert dict(found) == expected
    assert invoke(*command, "-o", tmp_path / "said.csv").code == 0
    written = [row for row in read_csv(tmp_path / "said.csv") if row["order"]]
    assert {row["order"]: float(row["prediction"]) for row in written} == {
        told["id"]["order"]: told["prediction"] for told in expected.values()
    }


def features(row):
    return {name: row[name] for name in ("a", "b", "city")}


def test_rows_of_a_file_can_be_sent_too_with_bounds(address, url, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows_of(1_000))), encoding="utf-8")
    assert invoke("train", file, "-t", "y", "--interval", "0.9", "--save", tmp_path / "m").code == 0
    ended = invoke("predict", tmp_path / "m", file, "--interval", "0.9", "--to", f"{url}-said")
    assert ended.code == 0, ended.stderr
    found = [value for _, value in values_of(f"{url}-said")]
    assert sorted(value["line"] for value in found) == list(range(1, 1_001))
    assert all(value["lower"] < value["prediction"] < value["upper"] for value in found)


@KILLS
def test_every_prediction_arrives_at_least_once_and_once_in_files(
    url, model, tmp_path, kills, rows
):
    fill(url, spread(rows_of(rows, seed=4)))
    draw = random.Random(5)
    for output in (("--to", f"{url}-said"), ("-o", "said.csv")):
        checkpoint = tmp_path / f"C{output[0]}"
        command = ("predict", model, url, *output, "--checkpoint", checkpoint, "--every", "100")
        for _ in range(kills):
            process = start(*command, cwd=tmp_path)
            enough = min(predicted_in(checkpoint) + draw.randint(1, 800), rows - 100)
            wait_until(lambda c=checkpoint, least=enough: predicted_in(c) >= least, process)
            stop(process, signal.SIGKILL)
        ended = run(*command, "--until-end", cwd=tmp_path)
        assert ended.code == 0, ended.stderr
        assert f"rows: {rows:,} read" in ended.stderr
    whole = tmp_path / "whole.csv"
    assert invoke("predict", model, url, "--until-end", "-o", whole).code == 0
    assert (tmp_path / "said.csv").read_bytes() == whole.read_bytes()
    found = [(v["partition"], v["offset"]) for _, v in values_of(f"{url}-said")]
    assert len(set(found)) == rows


def predicted_in(checkpoint):
    return rows_in(checkpoint, "predicted")


def test_places_for_predictions_that_cannot_be_meant_are_refused(url, model, tmp_path):
    fill(url, spread(rows_of(20)))
    assert_fails(invoke("predict", model, url, "--to", "a.csv"), "kafka://HOST:PORT/TOPIC is expe")
    assert_fails(invoke("predict", model, url, "--to", url), "the same topic is read, name another")
    assert_fails(
        invoke("predict", model, url, "--to", f"{url}x", "-o", tmp_path / "a"), "already, name one"
    )
    assert_fails(invoke("predict", model, url, "--to", "kafka://a/b"), "'a' is no broker")
    checkpoint = ("--checkpoint", tmp_path / "C")
    assert_fails(invoke("predict", model, url, *checkpoint), "- cannot be resumed, name a file by")
    done = invoke("predict", model, url, *checkpoint, "--until-end", "-o", tmp_path / "a")
    assert done.code == 0, done.stderr
    ended = invoke("predict", model, url, *checkpoint, "--until-end", "-o", tmp_path / "b")
    assert_fails(ended, "belongs to another run, whose outputs differed")


def test_brokers_that_take_no_predictions_are_told(url, model, monkeypatch):
    monkeypatch.setattr(kafka_topic, "PATIENCE", 1.0)
    fill(url, spread(rows_of(20)))
    ended = invoke("predict", model, url, "--until-end", "--to", "kafka://127.0.0.1:1/said")
    assert ended.code == 2
    words = "kafka://127.0.0.1:1/said: predictions could not be delivered within 1 seconds: "
    assert words in ended.stderr.splitlines()[-1]
