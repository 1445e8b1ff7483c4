"""Shared by the tests of Kafka: brokers that librdkafka plays, over real sockets."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
from confluent_kafka import Producer

from cases import PATIENCE

PARTITIONS = 4
"""How many each topic of such a broker has."""
HOST = """
import sys
from confluent_kafka import Producer
host = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
[broker] = host.list_topics(timeout=60).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


@contextmanager
def broker():
    """A broker in a process of its own: its address, and the process."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", HOST], **pipes)
    try:
        yield process.stdout.readline().decode().strip(), process
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)
            process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def send(address, topic, messages, first_time=1_000, times=None):
    """Send messages: pairs of a partition and bytes, a dict or None.

    Each has a time of its own, or is a millisecond later than the one before.
    """
    messages = list(messages)
    times = range(first_time, first_time + len(messages)) if times is None else times
    failed = []
    producer = Producer(
        {
            "bootstrap.servers": address,
            "log_level": 0,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for place, (moment, (partition, value)) in enumerate(zip(times, messages, strict=True)):
        sent = json.dumps(value).encode() if isinstance(value, dict) else value
        producer.produce(
            topic,
            sent,
            key=str(place),
            partition=partition,
            timestamp=moment,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(PATIENCE) == 0
    assert not failed


def rows_of(count, seed=1):
    """Rows that something can be learned from."""
    draw = np.random.default_rng(seed)
    a, b = draw.random((2, count)).round(4)
    cities = draw.integers(0, 3, count)
    y = (3.0 * a * b + cities + draw.normal(0.0, 0.1, count)).round(4)
    columns = (a.tolist(), b.tolist(), cities.tolist(), y.tolist())
    return [
        {"a": left, "b": right, "city": ("Oslo", "Bonn", "Rome")[city], "y": target}
        for left, right, city, target in zip(*columns, strict=True)
    ]


def spread(rows, partitions=PARTITIONS, seed=2):
    """Rows, each with a partition by chance."""
    draw = np.random.default_rng(seed)
    return list(zip(draw.integers(0, partitions, len(rows)).tolist(), rows, strict=True))
