"""Throughput of a Kafka topic, compared with the same rows from a file of JSON lines.

The broker is the one that librdkafka plays, in a process of its own on this machine: what is
measured is our side of the socket. The topic has four partitions, whose messages are merged by
their times, and lz4. CPU time of all threads of the process that reads, those of librdkafka
included, and the wall clock, which other work on the machine lengthens: the best of several that
alternate. To open a stream, in which 1,000 rows are looked at, is apart.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.tables import Answer, Table
from sapwood import HoeffdingTreeRegressor, streams
from sapwood.evaluate import prequential
from sapwood.streams import Stream

__all__ = ["run"]

ROWS, QUICK_ROWS = 100_000, 20_000
"""As many as a topic of that broker keeps: it has 5 MB a partition."""
REPEATS, QUICK_REPEATS = 5, 2
TOPIC, PARTITIONS = "rows", 4
BROKER = """
import sys
from confluent_kafka import Producer
host = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
[broker] = host.list_topics(timeout=60).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


class Record(NamedTuple):
    """What was done with which source, the seconds to open it, and those that the work took."""

    source: str
    work: str
    rows: int
    opened: float
    seconds: float
    cpu_seconds: float


def run(quick: bool = False) -> Answer:
    """Read and learn the same rows from a file and from a topic.

    Parameters
    ----------
    quick : bool
        A fifth of the rows, and fewer repetitions.
    """
    rows = QUICK_ROWS if quick else ROWS
    lines = [
        json.dumps({**{name: round(value, 6) for name, value in x.items()}, "y": round(y, 6)})
        for x, y in streams.friedman(rows=rows)
    ]
    records: list[Record] = []
    with TemporaryDirectory() as folder, _broker() as address:
        file = Path(folder, "rows.jsonl")
        file.write_text("\n".join(lines), encoding="utf-8")
        _fill(address, lines)
        sources = {"JSON lines": str(file), "Kafka": f"kafka://{address}/{TOPIC}"}
        works = {"read": _read, "read, predicted and learned": _learn}
        for _ in range(QUICK_REPEATS if quick else REPEATS):
            for name, source in sources.items():
                for work, done in works.items():
                    records.append(_measured(name, source, work, done, rows))
            records.append(_bare(address, rows))
    shown = []
    for pair in dict.fromkeys((record.source, record.work) for record in records):
        of_pair = [record for record in records if (record.source, record.work) == pair]
        opened, wall, cpu = (min(values) for values in zip(*(r[3:] for r in of_pair), strict=True))
        shown.append((*pair, rows / cpu, 1e6 * cpu / rows, rows / wall, opened))
    columns = ("source", "rows are", "rows a CPU second", "CPU µs a row", "rows/s", "s to open")
    title = f"{rows:,} rows of 10 numbers, {len(lines[0])} bytes each"
    return Answer([Table(title, columns, shown)], Table("", Record._fields, records))


def _measured(
    name: str, source: str, work: str, done: Callable[[Stream], int], rows: int
) -> Record:
    began = time.perf_counter()
    stream = streams.open_stream(source, target="y", until_end=source.startswith("kafka:"))
    opened, used = time.perf_counter(), time.process_time()
    assert done(stream) == rows
    took = time.perf_counter() - opened, time.process_time() - used
    return Record(name, work, rows, opened - began, *took)


def _read(stream: Stream) -> int:
    return sum(map(len, stream.chunks()))


def _learn(stream: Stream) -> int:
    return prequential(HoeffdingTreeRegressor(), stream).rows_learned


def _bare(address: str, rows: int) -> Record:
    """Take all messages, and do nothing with them."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False}
    began, used = time.perf_counter(), time.process_time()
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    taken = 0
    while taken < rows:
        taken += len([message.value() for message in consumer.consume(10_000, 0.01)])
    took = time.perf_counter() - began, time.process_time() - used
    consumer.close()
    return Record("confluent-kafka alone", "taken, not parsed", rows, 0.0, *took)


def _fill(address: str, lines: list[str]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "compression.type": "lz4", "linger.ms": 50})
    for place, line in enumerate(lines):
        producer.produce(TOPIC, line, partition=place % PARTITIONS, timestamp=1 + place)
        producer.poll(0)
    assert producer.flush(60) == 0


@contextmanager
def _broker() -> Iterator[str]:
    command = [sys.executable, "-c", BROKER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()
