"""Topics of Kafka as streams: what is read, in which order, and what is refused."""

import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from cases import PATIENCE
from kafka_cases import PARTITIONS, broker, rows_of, send, spread
from sapwood.streams import BadRowError, StreamError, kafka_merge, kafka_topic, open_stream
from sapwood.streams.stream import message_number, numbers_by_name

NUMBERS = itertools.count()
WAITING = "no messages yet; waiting for the first"
BIG = b'{"x": 1.0, "y": 1.0%s}' % (b" " * 10_000)
"""A message; of such, these brokers keep some hundred."""


@pytest.fixture(scope="module")
def address():
    with broker() as (address, _):
        yield address


@pytest.fixture
def topic():
    return f"topic-{next(NUMBERS)}"


def opened(address, topic, until_end=True, **read_options):
    return open_stream(
        f"kafka://{address}/{topic}", target="y", until_end=until_end, **read_options
    )


def places_of(chunks):
    """The partition and offset of each good row."""
    by_name = [numbers_by_name("offset", chunk.numbers) for chunk in chunks]
    pairs = [zip(each["partition"], each["offset"], strict=True) for each in by_name]
    return [(int(partition), int(offset)) for part in pairs for partition, offset in part]


# -- rows and their order --------------------------------------------------------------------------


def test_messages_are_read_as_lines_of_a_file_in_the_order_of_their_times(address, topic, tmp_path):
    rows = rows_of(5_000)
    rows[17]["a"] = None
    del rows[18]["city"]
    send(address, topic, spread(rows))
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    stream, lines = opened(address, topic), open_stream(file, target="y")
    assert stream.features == lines.features
    assert stream.column_notes == lines.column_notes
    assert (stream.size, stream.unit, stream.name) == (
        5_000,
        "offset",
        f"kafka://{address}/{topic}",
    )
    assert all(one == other for one, other in zip(stream, lines, strict=True))


def test_the_order_is_the_same_however_and_from_wherever_messages_are_read(address, topic):
    # Times go back now and then, and many are equal, so that offsets and partitions tell.
    sent = spread(rows_of(3_000))
    send(address, topic, sent, times=[1_000 + place // 3 * 7 % 400 for place in range(3_000)])
    stream = opened(address, topic)
    expected = places_of(stream.chunks())
    assert len(set(expected)) == 3_000
    by_partition = [[o for p, o in expected if p == each] for each in range(PARTITIONS)]
    assert all(offsets == list(range(len(offsets))) for offsets in by_partition)
    position, found = None, []
    for most, chunks in ((7, 20), (300, 3), (8192, 99)):
        reading = stream.chunks(position, most)
        taken = list(itertools.islice(reading, chunks))
        reading.close()
        assert all(len(chunk) <= most for chunk in taken)
        found += taken
        position = taken[-1].next
    assert places_of(found) == expected
    assert list(stream.chunks(position)) == []


def test_the_oldest_next_message_of_all_partitions_is_the_next(address, topic):
    times = {0: [5, 1, 9], 1: [2, 2, 8], 2: [2, 7, 7]}
    sent = [(partition, {"x": 1.0, "y": 1.0}) for partition in times for _ in times[partition]]
    send(address, topic, sent, times=itertools.chain(*times.values()))
    places = places_of(opened(address, topic).chunks())
    # Offset 1 of partition 0 is older than what was before it, and comes as soon as it can.
    assert places == [
        (1, 0),
        (2, 0),
        (1, 1),
        (0, 0),
        (0, 1),
        (2, 1),
        (2, 2),
        (1, 2),
        (0, 2),
    ]


def test_a_topic_that_is_followed_gives_messages_as_they_come(address, topic):
    rows = rows_of(30)
    send(address, topic, spread(rows[:10]))
    stream = opened(address, topic, until_end=False)
    assert stream.size is None
    reading = stream.chunks()
    found = []
    for start in (0, 10, 20):
        if start:
            send(address, topic, spread(rows[start : start + 10]), first_time=2_000 + start)
        while sum(map(len, found)) < start + 10:
            found.append(next(reading))
    reading.close()
    targets = np.concatenate([chunk.y for chunk in found])
    assert sorted(targets) == sorted(row["y"] for row in rows)


def test_what_comes_after_the_start_is_not_read_until_the_end(address, topic):
    send(address, topic, spread(rows_of(20)))
    stream = opened(address, topic)
    send(address, topic, spread(rows_of(50)), first_time=10)
    assert sum(map(len, stream.chunks())) == 20


def test_an_empty_topic_is_waited_for_or_told(address, topic, caplog):
    send(address, topic, [(1, None)])
    with pytest.raises(StreamError, match=f"{topic} has no messages: there is nothing to read"):
        opened(address, topic)
    later = threading.Thread(
        target=lambda: (
            waiting.wait(PATIENCE),
            send(address, topic, [(2, {"x": 1.5, "y": 2.5})]),
        )
    )
    waiting = threading.Event()
    handler = logging.Handler()
    handler.emit = lambda record: waiting.set()
    logging.getLogger("sapwood").addHandler(handler)
    later.start()
    stream = opened(address, topic, until_end=False)
    later.join()
    logging.getLogger("sapwood").removeHandler(handler)
    assert caplog.messages == [f"sapwood: kafka://{address}/{topic}: {WAITING}"]
    reading = stream.chunks()
    chunk = next(reading)
    reading.close()
    assert (chunk.columns["x"].tolist(), chunk.y.tolist()) == ([1.5], [2.5])
    assert chunk.next == {"partition 0": 0, "partition 1": 1, "partition 2": 1, "partition 3": 0}


# -- messages that are no rows ---------------------------------------------------------------------


def test_bad_messages_are_told_by_topic_partition_and_offset(address, topic):
    rows = rows_of(40)
    sent = spread(rows)
    sent[20:20] = [
        (3, b"\x00\x00\x00\x00\x07Avro"),
        (2, b'{"a": 1'),
        (1, {"a": 1, "b": "x", "y": 1}),
        (0, {"a": 1, "y": "much"}),
        (0, b"[1, 2]"),
        (0, b'{"a": 1, "y": "two\nlines"}'),
    ]
    send(address, topic, sent)
    chunks = list(opened(address, topic).chunks())
    bad = [each for chunk in chunks for each in chunk.bad]
    counts = [sum(p == each for p, _ in sent[:20]) for each in range(PARTITIONS)]
    name = f"kafka://{address}/{topic}"
    json_object = "send one JSON object a message"
    assert [str(each) for each in bad][:2] == [
        f"{name}, partition 3, offset {counts[3]}: malformed JSON ('Expecting value: column 1'); "
        f"{json_object}",
        f"{name}, partition 2, offset {counts[2]}: malformed JSON (\"Expecting ',' delimiter: "
        f'column 8"); {json_object}',
    ]
    assert [(each.number, each.reason, each.column) for each in bad[2:]] == [
        (message_number(1, counts[1]), "not a number", "b"),
        (message_number(0, counts[0]), "target is not a number", "y"),
        (message_number(0, counts[0] + 1), "malformed JSON", None),
        (message_number(0, counts[0] + 2), "malformed JSON", None),
    ]
    assert [each.text for each in bad] == [
        value if isinstance(value, bytes) else json.dumps(value).encode()
        for _, value in sent[20:26]
    ]
    assert sum(map(len, chunks)) == 40
    with pytest.raises(BadRowError, match=f"partition 3, offset {counts[3]}: malformed JSON"):
        list(opened(address, topic))


def test_keys_that_the_first_messages_do_not_have_are_told(address, topic):
    send(address, topic, spread(rows_of(10)))
    stream = opened(address, topic)
    send(address, topic, [(2, {"a": 1, "new": 1, "y": 1})], first_time=5_000)
    later = opened(address, topic, sample=stream.sample)
    assert "new" not in later.features
    [bad] = [each for chunk in later.chunks() for each in chunk.bad]
    assert (bad.reason, bad.column, bad.value) == ("unknown column", "new", "1")
    assert bad.remedy == "leave the key out, or start over once the first messages have it"
    assert "new" in opened(address, topic).features


def test_tombstones_and_blank_messages_are_passed_over(address, topic):
    sent = spread(rows_of(30))
    for place in (0, 11, 12, len(sent)):
        sent.insert(place, (place % PARTITIONS, None))
    sent.append((1, b" \n"))
    send(address, topic, sent)
    chunks = list(opened(address, topic).chunks())
    assert sum(map(len, chunks)) == 30
    assert not any(chunk.bad for chunk in chunks)


def test_a_message_may_have_several_lines(address, topic):
    text = json.dumps({"x": 1.5, "y": 2.5}, indent=2).encode()
    send(address, topic, [(0, text)] * 20)
    [chunk] = opened(address, topic).chunks()
    assert chunk.y.tolist() == [2.5] * 20


def test_a_topic_without_json_is_told_by_its_first_message(address, topic):
    send(address, topic, [(2, b"\x00Avro"), (2, b"more")])
    with pytest.raises(StreamError, match=r"no JSON object in its first messages: partition 2, of"):
        opened(address, topic)


def test_messages_that_are_no_objects_do_not_hide_those_behind_them(address, topic):
    send(address, topic, [(0, b"no JSON"), (1, None), (2, b"[]"), (3, {"x": 1.5, "y": 2.5})])
    for known in (None, {"x": "number"}):
        [chunk] = opened(address, topic, known=known).chunks()
        assert (chunk.columns["x"].tolist(), len(chunk.bad)) == ([1.5], 2)


def test_no_more_than_the_first_messages_are_looked_at_for_columns(address, topic):
    send(address, topic, [*[(0, b"no JSON")] * 1_000, (0, {"x": 1.5, "y": 2.5})])
    with pytest.raises(
        StreamError, match="no JSON object in its first messages: partition 0, offs"
    ):
        opened(address, topic)


def test_a_model_that_is_there_needs_one_message_alone(address, topic):
    send(address, topic, [(0, {"x": "yes", "when": "2026-11-16"})])
    known = {"x": "category", "flag": "number"}
    stream = open_stream(f"kafka://{address}/{topic}", known=known)
    send(address, topic, [(1, {"flag": True, "other": 1})], first_time=2_000)
    reading = stream.chunks(most_rows=1)
    first, second = next(reading), next(reading)
    reading.close()
    assert (first.columns["x"], second.columns["x"]) == (["yes"], [None])
    assert second.columns["flag"].tolist() == [1.0]
    assert "boolean: flag" in second.next
    assert "boolean: flag" not in first.next
    again = open_stream(f"kafka://{address}/{topic}", known=known, sample=stream.sample)
    reading = again.chunks({**second.next, "partition 1": 0})
    assert next(reading).next["boolean: flag"] == 1
    reading.close()


# -- going on --------------------------------------------------------------------------------------


def test_a_position_goes_on_with_partitions_that_are_new_since(address, topic):
    rows = rows_of(400)
    send(address, topic, spread(rows))
    stream = opened(address, topic)
    everything = places_of(stream.chunks())
    counts = [sum(p == each for p, _ in everything) for each in range(PARTITIONS)]
    old = {"partition 0": counts[0], "partition 1": counts[1] - 1}
    rest = places_of(stream.chunks(old))
    assert rest == [(p, o) for p, o in everything if p > 1 or (p == 1 and o == counts[1] - 1)]


def test_partitions_that_are_made_meanwhile_are_read_from_their_beginning(
    address, topic, monkeypatch
):
    send(address, topic, spread(rows_of(100)))
    known = kafka_topic.Topic.partitions
    hidden = {3}
    monkeypatch.setattr(
        kafka_topic.Topic, "partitions", lambda self: [p for p in known(self) if p not in hidden]
    )
    monkeypatch.setattr(kafka_merge, "CHECK_EVERY", 0.0)
    stream = opened(address, topic, until_end=False)
    reading = stream.chunks(most_rows=10)
    found = [next(reading)]
    hidden.clear()
    while sum(map(len, found)) < 100:
        found.append(next(reading))
    reading.close()
    assert len(set(places_of(found))) == 100
    assert "partition 3" not in found[0].next
    assert found[-1].next["partition 3"] == sum(p == 3 for p, _ in places_of(found))


def test_partitions_run_ahead_of_others_only_so_far(address, topic, monkeypatch):
    # All of partition 0 is older than the rest, so that the others have to wait for it.
    monkeypatch.setattr(kafka_merge, "FEW", 40)
    monkeypatch.setattr(kafka_merge, "MOST_WAITING", 40)
    monkeypatch.setattr(kafka_merge, "AT_ONCE", 10)
    rows = rows_of(400)
    sent = [(0 if place < 200 else 1 + place % 3, row) for place, row in enumerate(rows)]
    send(address, topic, sent)
    chunks = list(opened(address, topic).chunks(most_rows=50))
    assert np.concatenate([chunk.y for chunk in chunks]).tolist() == [row["y"] for row in rows]


def test_messages_that_were_removed_before_they_were_read_are_never_passed_over(address, topic):
    send(address, topic, [(0, BIG)] * 10)
    stream = opened(address, topic)
    [*_, chunk] = stream.chunks()
    position = {**chunk.next, "partition 0": 3}
    assert sum(map(len, stream.chunks(position))) == 7
    following = opened(address, topic, until_end=False)
    send(address, topic, [(0, BIG)] * 1_000)
    with pytest.raises(
        StreamError, match=r"partition 0: offset 3 is not there any more: [\d,]+ me"
    ):
        list(stream.chunks(position))
    # The beginning is where the topic begins now, unless a position tells otherwise.
    reading = following.chunks()
    first = places_of([next(reading)])[0]
    reading.close()
    assert first[1] > 3
    with pytest.raises(StreamError, match="offset 5000 is not there, as the partition ends at 10"):
        list(stream.chunks({**position, "partition 0": 5_000}))
    with pytest.raises(StreamError, match="partition 9 was read before, and is not there any mor"):
        list(stream.chunks({"partition 9": 1}))


def test_messages_that_are_removed_while_a_reader_is_behind_stop_it(address, topic, monkeypatch):
    monkeypatch.setattr(kafka_topic, "QUEUED", 1)
    monkeypatch.setattr(kafka_merge, "AT_ONCE", 1)
    send(address, topic, [(0, BIG)] * 400)
    reading = opened(address, topic, until_end=False).chunks(most_rows=1)
    assert places_of([next(reading)]) == [(0, 0)]
    for _ in range(4):
        send(address, topic, [(0, BIG)] * 400)
    found = []
    with pytest.raises(StreamError, match=r"partition 0: offset \d+ is not there any more"):
        found.extend(reading)
    assert places_of(found) == [(0, offset) for offset in range(1, len(found) + 1)]


# -- brokers ---------------------------------------------------------------------------------------


def test_a_broker_that_is_away_is_waited_for_with_a_word(topic, monkeypatch, caplog):
    monkeypatch.setattr(kafka_merge, "CHECK_EVERY", 0.1)
    monkeypatch.setattr(kafka_topic, "ASKED_FOR", 0.3)
    rows = rows_of(20)
    with broker() as (address, process):
        name = f"sapwood: kafka://{address}/{topic}"
        send(address, topic, spread(rows[:10]))
        reading = opened(address, topic, until_end=False).chunks()
        found = [next(reading)]
        while sum(map(len, found)) < 10:
            found.append(next(reading))
        os.kill(process.pid, signal.SIGSTOP)
        handler = logging.Handler()
        handler.emit = lambda record: os.kill(process.pid, signal.SIGCONT)
        logging.getLogger("sapwood").addHandler(handler)
        sender = None
        while sum(map(len, found)) < 20:
            if sender is None:
                sender = threading.Thread(target=send, args=(address, topic, spread(rows[10:])))
                sender.start()
            found.append(next(reading))
        sender.join()
        logging.getLogger("sapwood").removeHandler(handler)
        assert caplog.messages[:2] == [
            f"{name}: no broker answers; waiting for 60 seconds",
            f"{name}: brokers answer again",
        ]
        assert len(set(places_of(found))) == 20
        monkeypatch.setattr(kafka_topic, "PATIENCE", 0.5)
        process.kill()
        process.wait()
        with pytest.raises(
            StreamError, match=r"no broker has answered for \S+ seconds \(.+\); che"
        ):
            next(reading)


def test_a_broker_that_is_not_there_is_told_sooner(topic, monkeypatch, caplog):
    monkeypatch.setattr(kafka_topic, "FIRST_PATIENCE", 0.5)
    monkeypatch.setattr(kafka_topic, "ASKED_FOR", 0.2)
    with pytest.raises(StreamError, match=r"no broker has answered for 0.5 seconds \(.*\); check"):
        opened("127.0.0.1:1", topic)
    assert caplog.messages == [
        f"sapwood: kafka://127.0.0.1:1/{topic}: no broker answers; waiting for 0.5 seconds"
    ]


# -- what was asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "kafka://localhost/topic",
        "kafka://localhost:x/topic",
        "kafka://localhost:99999/topic",
        "kafka://localhost:0/topic",
        "kafka:///topic",
        "kafka://a:1,b/topic",
        "kafka://a b:1/topic",
    ],
)
def test_an_address_without_brokers_is_refused(url):
    with pytest.raises(StreamError, match="is no broker; kafka://HOST:PORT/TOPIC is expected"):
        open_stream(url, target="y")


@pytest.mark.parametrize("topic", ["", "a/b", "a?b=1", "a b", ".", "..", "é", "x" * 250])
def test_an_address_without_a_topic_is_refused(topic):
    with pytest.raises(StreamError, match="is no topic; kafka://HOST:PORT/TOPIC is expected"):
        open_stream(f"kafka://localhost:9092/{topic}", target="y")


def test_a_topic_that_is_not_there_is_told(address, topic):
    with pytest.raises(StreamError, match=f"there is no topic '{topic}' there; check its name"):
        opened(address, topic)


def test_what_makes_no_sense_for_a_topic_is_refused(address, topic, tmp_path):
    url = f"kafka://{address}/{topic}"
    with pytest.raises(StreamError, match="encoding is for files of text, and kafka:"):
        open_stream(url, encoding="cp1252")
    with pytest.raises(StreamError, match="header is for CSV files, and kafka:"):
        open_stream(url, header=False)
    with pytest.raises(StreamError, match="cannot be read as csv: messages of a topic are JSON"):
        open_stream(url, format="csv")
    with pytest.raises(StreamError, match="a topic cannot be one of several files: name it alone"):
        open_stream([url, url])
    (tmp_path / "a.csv").write_text("a,y\n1,2\n")
    with pytest.raises(StreamError, match="until_end is for topics of Kafka, and"):
        open_stream(tmp_path / "a.csv", until_end=True)


def test_without_its_client_a_topic_is_told_what_to_install():
    code = (
        "import sys; sys.modules['confluent_kafka'] = None; sys.argv[0] = 'sapwood'\n"
        "from sapwood.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "evaluate", "kafka://localhost:9092/a", "-t", "y"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    words = "sapwood: confluent-kafka is not installed: pip install 'sapwood[kafka]'\n"
    assert ended.stderr == words
