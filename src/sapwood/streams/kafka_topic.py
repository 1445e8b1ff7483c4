"""A topic of Kafka: which partitions it has, and requests to its brokers with timeouts.

Nothing is kept in the broker: no group is joined, and no offset is committed.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sapwood.streams.kafka_address import Address
from sapwood.streams.stream import StreamError

__all__ = ["Extent", "Topic", "client_of", "logger"]

Answer = TypeVar("Answer")
Client = TypeVar("Client")

PATIENCE = 60.0
"""Seconds for which brokers that have gone away are waited for."""
FIRST_PATIENCE = 15.0
"""The same at the start, where a wrong address is likelier than a broker that comes back."""
ASKED_FOR = 2.0
"""Seconds for which one question waits, so that Ctrl-C does not for longer."""
QUEUED = 16 * 1024
"""Kilobytes that librdkafka may fetch ahead."""
WAITS = 100
"""Milliseconds for which a broker waits for messages, and librdkafka for space in its queue."""
ABSENT = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
REFUSALS = (KafkaError._AUTHENTICATION, KafkaError._SSL)
"""Errors of authentication or encryption, caused by wrong settings of the client."""
AWAY = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
)
"""Errors that may pass by themselves."""

logger = logging.getLogger("sapwood")


class Extent(NamedTuple):
    """The first offset of a partition, and the one behind its last."""

    start: int
    end: int


def client_of(kind: Callable[[dict[str, Any]], Client], address: Address, **further: Any) -> Client:
    """Return a client of librdkafka that writes no log of its own.

    - `address`: the address, with the settings of the user.
    - Raises StreamError if there is no such setting, or it cannot have such a value.
    """
    own = {"bootstrap.servers": address.servers, "log_level": 0, **further}
    try:
        return kind({**address.config, **own})
    except KafkaException as error:
        message = address.config.without_values(error.args[0].str())
        raise StreamError(f"{address}: a setting of the client is wrong: {message}") from None


class Topic:
    """A topic, and the consumer that reads it.

    - `cluster`: what the cluster calls itself; "" if it does not.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._has_answered = False
        self._last_error = ""
        self.cluster = ""
        self._refusal = ""
        self.consumer: Consumer = client_of(
            Consumer,
            address,
            **{
                "group.id": "sapwood",  # required by the client, and not used
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "queued.max.messages.kbytes": QUEUED,
                "fetch.wait.max.ms": WAITS,
                "fetch.queue.backoff.ms": WAITS,
                "error_cb": self._note,
            },
        )

    @property
    def patience(self) -> float:
        """For how many seconds brokers are waited for: longer once they have answered."""
        return PATIENCE if self._has_answered else FIRST_PATIENCE

    def close(self) -> None:
        """Leave the brokers."""
        self.consumer.close()

    def _note(self, error: KafkaError) -> None:
        if error.code() in REFUSALS:
            self._refusal = self._message_of(error)
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._last_error:
            self._last_error = self._message_of(error)

    def _message_of(self, error: KafkaError) -> str:
        return self.address.config.without_values(error.str())

    def _learn_why(self) -> None:
        """Have the client call back with the errors it has noted; no partition is assigned yet."""
        self.consumer.poll(0)

    def partitions(self) -> list[int]:
        """Return the partitions that there are now.

        - Raises StreamError if there is no such topic, or no broker answers.
        """
        name = self.address.topic
        found = self.ask(lambda wait: self._described(name, wait))
        self.cluster = found.cluster_id or ""
        return sorted(found.topics[name].partitions)

    def _described(self, name: str, wait: float) -> Any:
        found = self.consumer.list_topics(name, timeout=wait)
        error = found.topics[name].error
        if error is not None:
            raise KafkaException(error)
        return found

    def extents(self, partitions: list[int]) -> dict[int, Extent]:
        """Return where partitions begin and end now."""
        return {partition: self.ask(self._extent_of(partition)) for partition in partitions}

    def _extent_of(self, partition: int) -> Callable[[float], Extent]:
        place = TopicPartition(self.address.topic, partition)
        return lambda wait: Extent(*self.consumer.get_watermark_offsets(place, timeout=wait))

    def known_end(self, partition: int) -> int:
        """Return where a partition ended when something was read from it; no request is sent."""
        place = TopicPartition(self.address.topic, partition)
        return int(self.consumer.get_watermark_offsets(place, cached=True)[1])

    def ask(self, question: Callable[[float], Answer]) -> Answer:
        """Return what brokers answer; if none does, wait for them with a word.

        - `question`: sends the request, and waits for so many seconds.
        - Raises StreamError if they reject the client, or do not answer for that long.
        """
        began = time.monotonic()
        has_warned = False
        while True:
            try:
                answer = question(ASKED_FOR)
            except KafkaException as error:
                found = error.args[0]
            else:
                self._has_answered = True
                if has_warned:
                    logger.warning("sapwood: %s: brokers answer again", self.address)
                return answer
            if not self._has_answered:
                self._learn_why()
            if self._refusal:
                raise StreamError(
                    f"{self.address}: the broker does not let this client in: {self._refusal}; "
                    "check the settings of the client (--kafka-config)"
                )
            if found.code() not in AWAY:
                self.fail(found)
            if time.monotonic() - began > self.patience:
                raise StreamError(
                    f"{self.address}: no broker has answered for {self.patience:g} seconds "
                    f"({self._last_error or self._message_of(found)}); check the address, and that the "
                    "brokers run"
                )
            if not has_warned:
                has_warned = True
                words = "sapwood: %s: no broker answers; waiting for %g seconds"
                logger.warning(words, self.address, self.patience)
            time.sleep(0.1)  # as some errors come at once

    def fail(self, error: KafkaError, partition: int | None = None) -> NoReturn:
        """Raise a StreamError for a permanent error."""
        if error.code() in ABSENT:
            raise StreamError(
                f"{self.address}: there is no topic {self.address.topic!r} there; check its name, "
                "or make it first"
            )
        place = "" if partition is None else f", partition {partition}"
        raise StreamError(
            f"{self.address}{place}: the broker rejects the client: {self._message_of(error)}; "
            "check what this client may do there"
        )
