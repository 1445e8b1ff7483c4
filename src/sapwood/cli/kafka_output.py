"""Predictions as messages of a Kafka topic."""

import json
import time
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from sapwood.cli.outputs import bound_names
from sapwood.streams import kafka_topic
from sapwood.streams.kafka_address import address_of
from sapwood.streams.kafka_config import Config
from sapwood.streams.kafka_topic import client_of, logger
from sapwood.streams.labelled import keys_of
from sapwood.streams.stream import StreamError, numbers_by_name

if TYPE_CHECKING:
    from sapwood.streams.stream import Chunk, Stream

__all__ = ["PredictionTopic"]


class PredictionTopic:
    """A topic to which a JSON object is sent for each prediction.

    It contains the partition and offset (or line, or row) of what was predicted, the ids, the
    prediction and its bounds. Each arrives at least once: the producer itself neither loses nor
    repeats any, but what was sent since a checkpoint is sent again if a run is killed.

    - `levels`: levels of the prediction intervals that are sent.
    """

    def __init__(
        self, url: str, stream: "Stream", levels: tuple[float, ...], config: Config
    ) -> None:
        self.path = url
        self._address = address_of(url, config)
        self._stream, self._names = stream, ["prediction", *bound_names(levels)]
        self._failed: KafkaError | None = None
        self._producer: Producer

    def open(self, length: int | None) -> Self:
        """Start to send; what was sent before stays, whatever its length."""
        self._producer = client_of(
            Producer,
            self._address,
            **{
                "enable.idempotence": True,
                "message.timeout.ms": int(1_000 * kafka_topic.PATIENCE),
            },
        )
        return self

    def write(self, chunk: "Chunk", predicted: list[list[float | str]], bad: bool = True) -> None:
        """Send the predictions of a chunk; there is no message for a row that is bad."""
        places = numbers_by_name(self._stream.unit, chunk.numbers)
        ids = keys_of(chunk.ids) if chunk.ids else None
        for row, values in enumerate(zip(*predicted, strict=True)):
            message: dict[str, Any] = {name: int(counted[row]) for name, counted in places.items()}
            key = None
            if ids is not None:
                message["id"] = dict(zip(chunk.ids, ids[row], strict=True))
                key = json.dumps(ids[row])
            known = [None if value == "" else value for value in values]
            message.update(zip(self._names, known, strict=True))
            self._send(json.dumps(message), key)
        self._check()

    def _send(self, value: str, key: str | None) -> None:
        while True:
            try:
                self._producer.produce(
                    self._address.topic, value, key, on_delivery=self._note_delivery
                )
                break
            except BufferError:  # of a queue that is full
                self._producer.poll(0.1)
                self._check()
            except KafkaException as error:
                self._failed = error.args[0]
                self._check()
        self._producer.poll(0)

    def _note_delivery(self, error: KafkaError | None, _: Any) -> None:
        if error is not None and self._failed is None:
            self._failed = error

    def _check(self) -> None:
        if self._failed is not None:
            reason = self._address.config.without_values(self._failed.str())
            raise StreamError(
                f"{self.path}: predictions could not be delivered within {kafka_topic.PATIENCE:g} "
                f"seconds: {reason}; check the address, the topic and its brokers"
            )

    def secure(self) -> int:
        """Wait until all has arrived."""
        began, warned = time.monotonic(), False
        while self._producer.flush(kafka_topic.ASKED_FOR):
            self._check()
            if not warned:
                warned = True
                logger.warning("sapwood: %s: no broker answers; waiting for it", self.path)
            if time.monotonic() - began > 2 * kafka_topic.PATIENCE:
                raise StreamError(f"{self.path}: brokers do not take predictions; check them")
        self._check()
        return 0

    def close(self) -> None:
        """Wait until all has arrived that can."""
        self.secure()
